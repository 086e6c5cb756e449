"""A small network problem with every kind of entry, random layers, and a non-linear cohort."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.layer import Design, TargetScaling
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.network import NetworkLayer, NetworkProblem
from deeptobit.network.joint import JointProblem
from deeptobit.penalties import Ridge
from deeptobit.targets import CensoredTargets
from tests.layer.problems import N_TASKS, features, outcomes, row_weights

RANK = 2


def row_limits(X: FloatArray, seed: int = 4) -> CensoredTargets:
    """Outcomes between 0 and 3 whose lower limit differs from row to row, as assays have it."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(X.shape[1], N_TASKS)) / X.std(axis=0)[:, None]
    Y = np.clip(X @ coef + 1.0 + rng.normal(size=(len(X), N_TASKS)), 0.0, 3.0)
    limits = rng.uniform(0.0, 1.0, size=Y.shape)
    return CensoredTargets.from_bounds(np.maximum(Y, limits), 0.0, 3.0, entry_lower=limits)


def build(
    *,
    sparse: bool = False,
    noise: Noise | None = None,
    limits: bool = False,
    fit_intercept: bool = True,
    alphas: Sequence[float] = (0.3, 0.2, 0.1),
    **changes: Any,
) -> NetworkProblem:
    """Three layers on 700 weighted rows of observed, censored, interval and missing entries."""
    X, weight = features(), row_weights()
    targets = row_limits(X) if limits else outcomes(X)
    return replace(
        pose(csr_matrix(X) if sparse else X, targets, weight, alphas, fit_intercept=fit_intercept),
        noise=Gaussian() if noise is None else noise,
        **changes,
    )


def pose(
    X: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    alphas: Sequence[float],
    *,
    fit_intercept: bool = True,
) -> NetworkProblem:
    """The problem of given data, with σ to be estimated and skip connections."""
    share = weight / weight.sum()
    return NetworkProblem(
        design=Design.build(X, share, center=fit_intercept, standardize=True),
        targets=targets,
        scaling=TargetScaling.build(targets, share, center=fit_intercept),
        noise=Gaussian(),
        rank=RANK,
        alphas=tuple(alphas),
        penalty=Ridge(),
        skip_connection=True,
        fit_intercept=fit_intercept,
        sigma=None,
        calibrate=False,
        total_weight=float(len(weight)),
    )


def bent(
    n_samples: int = 300,
    *,
    alphas: Sequence[float] = (0.02, 0.02),
    fit_intercept: bool = True,
    **changes: Any,
) -> NetworkProblem:
    """A cohort whose outcomes are not linear in x before censoring."""
    X, Y, _ = make_subspace(
        n_samples,
        5,
        4,
        RANK,
        n_layers=2,
        skip_connection=True,
        latent_sd=3.0,
        sigma=0.5,
        hidden_sigma=0.1,
        random_state=0,
    )
    targets, weight = CensoredTargets.from_bounds(Y, 0.0), np.ones(n_samples)
    return replace(pose(X, targets, weight, alphas, fit_intercept=fit_intercept), **changes)


def joint(problem: NetworkProblem) -> JointProblem:
    return JointProblem(problem, problem.targets)


def some_layers(problem: NetworkProblem, seed: int = 3) -> tuple[NetworkLayer, ...]:
    """Random layers whose scores lie on both sides of the bounds."""
    rng = np.random.default_rng(seed)
    layers = []
    for depth in range(problem.n_layers):
        U = rng.normal(size=(problem.n_tasks, problem.rank))
        n_features = len(problem.design.scale) if problem.skip_connection or not depth else 0
        n_inputs = n_features + (problem.n_tasks if depth else 0)
        V = 0.5 * rng.normal(size=(problem.rank, n_inputs))
        intercept = rng.normal(size=problem.n_tasks) * problem.fit_intercept
        layers.append(NetworkLayer(U, V, intercept, rng.uniform(0.7, 2.0, problem.n_tasks)))
    return tuple(layers)


def take_rows(problem: NetworkProblem, rows: NDArray[np.intp], share: float) -> NetworkProblem:
    """The same problem on some rows, with a share of its penalties."""
    design = problem.design
    return replace(
        problem,
        design=replace(design, matrix=design.matrix[rows], weight=design.weight[rows]),
        targets=problem.targets[rows],
        alphas=tuple(share * alpha for alpha in problem.alphas),
    )
