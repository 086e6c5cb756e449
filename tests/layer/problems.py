"""A small multi-task problem with every kind of entry, dense or sparse."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.layer import BasisFeatures, Design, OlsenProblem, TargetScaling
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.targets import CensoredTargets

N_SAMPLES, N_FEATURES, N_TASKS = 700, 4, 3  # more rows than a block of 512 holds
TASKS = np.arange(N_TASKS)


def features(seed: int = 0) -> FloatArray:
    """Correlated columns of different scale, many of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, N_FEATURES)) @ rng.normal(size=(N_FEATURES, N_FEATURES))
    return np.asarray(np.where(rng.uniform(size=X.shape) < 0.4, 0.0, X * [1.0, 10.0, 0.1, 3.0]))


def outcomes(X: FloatArray, seed: int = 1) -> CensoredTargets:
    """Observed, left-, right-, interval-censored and missing entries."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(X.shape[1], N_TASKS)) / X.std(axis=0)[:, None]
    Y = X @ coef + rng.normal(size=(len(X), N_TASKS))
    Y = np.clip(Y, -2.0, [1.0, 3.0, np.inf])
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    at_bounds = CensoredTargets.from_bounds(Y, -2.0, [1.0, 3.0, None])
    wide = at_bounds.observed & (rng.uniform(size=Y.shape) < 0.1)
    return CensoredTargets.from_intervals(
        at_bounds.low - 0.5 * wide, at_bounds.high + 0.7 * wide, lower=-2.0, upper=[1.0, 3.0, None]
    )


def row_weights(seed: int = 2) -> FloatArray:
    weight = np.random.default_rng(seed).uniform(0.2, 2.0, size=N_SAMPLES)
    return np.asarray(weight / weight.sum())


def build_problem(
    *,
    sparse: bool = False,
    alpha: float = 0.3,
    noise: Noise | None = None,
    **changes: Any,
) -> OlsenProblem:
    X, weight = features(), row_weights()
    targets = outcomes(X)
    design = Design.build(csr_matrix(X) if sparse else X, weight, center=True, standardize=True)
    problem = OlsenProblem(
        features=BasisFeatures.whitened(design, alpha),
        targets=targets,
        scaling=TargetScaling.build(targets, weight, center=True),
        noise=Gaussian() if noise is None else noise,
        fit_intercept=True,
        free_sigma=np.ones(N_TASKS, dtype=np.bool_),
        max_theta=1e6,
    )
    return replace(problem, **changes)


def some_point(problem: OlsenProblem, seed: int = 3) -> FloatArray:
    point = np.random.default_rng(seed).normal(size=(problem.features.rank + 2, N_TASKS))
    point[-1] = [0.7, 1.3, 2.2]
    return point


def some_direction(problem: OlsenProblem, seed: int) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(problem.features.rank + 2, N_TASKS))


def take_rows(problem: OlsenProblem, rows: NDArray[np.intp], *, share: float) -> OlsenProblem:
    """The same problem on some rows, with a share of its penalty."""
    whole = problem.features
    assert whole.matrix is not None
    part = replace(
        whole,
        design=replace(whole.design, weight=problem.weight[rows]),
        ridge=share * whole.ridge,
        matrix=whole.matrix[rows],
    )
    return replace(problem, features=part, targets=problem.targets[rows])
