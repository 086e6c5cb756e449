"""Between the subspace estimator and its batch solver: standard units in, the user's units out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective import Design, Layer, SubspaceProblem, TargetScaling, subspace_features
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
    features, scaling = null.problem.features, null.problem.scaling
    V = (features.coefficients(layer.Z) / features.design.scale[:, None]).T
    U = layer.U * scaling.scale[:, None]
    unused = rank - null.problem.rank  # features may span fewer directions than asked for
    U, V = np.pad(U, ((0, 0), (0, unused))), np.pad(V, ((0, unused), (0, 0)))
    shift = U @ (V @ features.design.mean)
    intercept = scaling.location + scaling.scale * layer.intercept - shift
    return U, V, intercept, scaling.scale * np.exp(layer.log_sigma)


def layer_of(
    null: NullModel, U: FloatArray, V: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> Layer:
    """A model in standard units: the inverse of :func:`user_units`."""
    features, scaling = null.problem.features, null.problem.scaling
    kept = slice(0, null.problem.rank)
    centred = intercept + U @ (V @ features.design.mean) - scaling.location
    return Layer(
        U=U[:, kept] / scaling.scale[:, None],
        Z=features.coordinates((V[kept] * features.design.scale).T),
        intercept=centred / scaling.scale,
        log_sigma=np.log(sigma / scaling.scale),
    )


def warn_of_convergence(fit: SubspaceFit, tol: float) -> None:
    """Say how far the solver came and what to do."""
    warnings.warn(
        f"no convergence after {fit.n_iter} Newton steps (relative gradient norm "
        f"{fit.gradient_norm:.1e}, tol {tol:.1e}); increase max_iter, loosen tol, or set a larger "
        "alpha",
        ConvergenceWarning,
        stacklevel=4,
    )
