"""Between the subspace estimator and its batch solver: standard units in, the user's units out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective import (
    Design,
    Layer,
    SubspaceProblem,
    TargetScaling,
    subspace_features,
    to_standard,
    to_user,
)
from deeptobit.solvers import NullModel, SubspaceFit
from deeptobit.targets import CensoredTargets


def pose_layer(
    matrix: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    *,
    rank: int,
    alpha: float,
    feature_sparsity: float,
    noise: Noise,
    sigma: FloatArray | None,
    fit_intercept: bool,
    standardize: bool,
) -> SubspaceProblem:
    """The problem in standard units; ``sigma`` is in the user's, ``None`` if it is estimated."""
    share, n_tasks = weight / weight.sum(), len(targets.names)
    design = Design.build(matrix, share, center=fit_intercept, standardize=standardize)
    scaling = TargetScaling.build(targets, share, center=fit_intercept)
    features = subspace_features(design, feature_sparsity)
    return SubspaceProblem(
        features=features,
        targets=targets,
        scaling=scaling,
        noise=noise,
        rank=min(rank, features.rank),
        alpha=alpha,
        fit_intercept=fit_intercept,
        free_sigma=np.full(n_tasks, sigma is None),
        min_log_sigma=np.full(n_tasks, -np.inf),
        fixed_log_sigma=np.zeros(n_tasks) if sigma is None else np.log(sigma / scaling.scale),
        total_weight=float(weight.sum()),
        feature_sparsity=feature_sparsity,
    )


def user_units(
    null: NullModel, layer: Layer, rank: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """U (T, R), V (R, D), intercept and σ (T,), with empty components up to ``rank``."""
    return to_user(null.problem.features, null.problem.scaling, layer, rank)


def layer_of(
    null: NullModel, U: FloatArray, V: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> Layer:
    """A model in standard units: the inverse of :func:`user_units`."""
    problem = null.problem
    factors = U, V, intercept, sigma
    return to_standard(problem.features, problem.scaling, factors, problem.rank)


def warn_of_convergence(fit: SubspaceFit, tol: float) -> None:
    """Say how far the solver came and what to do."""
    warnings.warn(
        f"no convergence after {fit.n_iter} Newton steps (relative gradient norm "
        f"{fit.gradient_norm:.1e}, tol {tol:.1e}); increase max_iter, loosen tol, or set a larger "
        "alpha",
        ConvergenceWarning,
        stacklevel=4,
    )
