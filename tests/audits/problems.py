"""Data of the audits, and the estimators that they go through."""

from collections.abc import Callable
from typing import Any

import numpy as np

from deeptobit import (
    AutoTobitRegressor,
    CensoredTargets,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray
from tests.audits.exact_tobit import Exact, exact_tobit

LOWER, UPPER = 0.0, 4.0
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "tobit": TobitRegressor,
    "batch": lambda **bounds: SubspaceTobitRegressor(2, solver="batch", tol=1e-9, **bounds),
    "online": lambda **bounds: SubspaceTobitRegressor(2, solver="online", **bounds),
    "network": lambda **bounds: SubspaceNetworkRegressor(2, 2, joint_tuning=False, **bounds),
    "auto": lambda **bounds: AutoTobitRegressor(members=("stack",), cv=3, random_state=0, **bounds),
}


def shared_subspace(
    sigma: float = 0.7, *, n_rows: int = 200, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """X (N, 5), latent scores plus noise (N, 4) around 1, and their coefficients of rank 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    coef = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 5)) / 2.0
    return X, X @ coef.T + 1.0 + sigma * rng.normal(size=(n_rows, 4)), coef


def censored(Y: FloatArray) -> FloatArray:
    """The outcomes between their bounds, a multiple of 2⁻²⁰ each: a shift by 1e9 is exact."""
    return np.clip(np.round(Y * 2.0**20) / 2.0**20, LOWER, UPPER)


def exact(
    X: FloatArray,
    y: FloatArray,
    lower: float = -np.inf,
    upper: float = np.inf,
    *,
    alpha: float = 0.0,
) -> Exact:
    """The optimum for one outcome between bounds, from mpmath."""
    targets = CensoredTargets.from_bounds(y, lower, upper)
    return exact_tobit(X, targets.low[:, 0], targets.high[:, 0], alpha=alpha)


def distance(model: TobitRegressor, reference: Exact) -> float:
    """The largest error of β, b and σ of a model of one outcome, each relative to its size."""
    return max(
        relative_error(model.coef_[0], reference.coef),
        relative_error(model.intercept_, np.array([reference.intercept])),
        relative_error(model.sigma_, np.array([reference.sigma])),
    )


def relative_error(found: FloatArray, expected: FloatArray) -> float:
    """The largest error over the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())
