"""Small censored problems, and numerical references for what is computed in closed form."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray

SPARSE_FORMATS = (csr_matrix, csc_matrix, csr_array, csc_array)


def censored(
    seed: int = 0, n_samples: int = 150, n_features: int = 3, n_tasks: int = 2
) -> tuple[FloatArray, FloatArray]:
    """Features and outcomes on a scale from 0 to 3, about a third of them at 0 and a tenth at 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    coef = rng.uniform(0.4, 0.9, size=(n_tasks, n_features)) * rng.choice([-1, 1], n_features)
    Y = np.clip(X @ coef.T + 0.7 + rng.normal(size=(n_samples, n_tasks)), 0.0, 3.0)
    return X, Y


def one_task(seed: int = 0, n_samples: int = 150) -> tuple[FloatArray, FloatArray]:
    """The same with a single outcome, 1-d."""
    X, Y = censored(seed, n_samples, n_tasks=1)
    return X, Y[:, 0]


def bounded(**settings: Any) -> TobitRegressor:
    """A Tobit for outcomes between 0 and 3."""
    return TobitRegressor(lower=0.0, upper=3.0, **settings)


def assert_close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    """Equal up to the tolerance of the solver."""
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def parameters(model: TobitRegressor) -> FloatArray:
    """(β, intercept, σ) of every task, (T, D + 2)."""
    return np.column_stack([model.coef_, model.intercept_, model.sigma_])


def moved(model: TobitRegressor, point: FloatArray) -> TobitRegressor:
    """A fitted one-task model whose (β, intercept, log σ) are replaced."""
    other = copy(model)
    other.coef_, other.intercept_ = point[None, :-2], point[[-2]]
    other.sigma_ = np.exp(point[[-1]])
    return other


def estimate(model: TobitRegressor) -> FloatArray:
    """(β, intercept, log σ) of a one-task model."""
    return np.asarray(np.r_[model.coef_[0], model.intercept_[0], np.log(model.sigma_[0])])


def jacobian(
    function: Callable[[FloatArray], Any], point: FloatArray, step: float = 1e-4
) -> FloatArray:
    """Central differences, with the derivative by each parameter as a column."""
    columns = []
    for j in range(len(point)):
        shift = np.zeros_like(point)
        shift[j] = step
        rise = np.atleast_1d(function(point + shift)) - np.atleast_1d(function(point - shift))
        columns.append(rise / (2.0 * step))
    return np.column_stack(columns)


def numerical_covariance(model: TobitRegressor, X: FloatArray, y: Any) -> FloatArray:
    """Inverse of the Hessian of N times the objective by (β, intercept, log σ), by differences."""

    def nll(point: FloatArray) -> float:
        gamma = point[:-2] * X.std(axis=0) / np.exp(point[-1])
        ridge = 0.5 * model.alpha * np.sum(gamma**2)
        return len(X) * float(ridge - moved(model, point).score_log(X, y))

    point = estimate(model)
    steps, hessian = 1e-3 * np.eye(len(point)), np.zeros((len(point), len(point)))
    middle = nll(point)
    for i, one in enumerate(steps):
        hessian[i, i] = (nll(point + 2.0 * one) - 2.0 * middle + nll(point - 2.0 * one)) / 4e-6
        for j, other in enumerate(steps[:i]):
            along = nll(point + one + other) + nll(point - one - other)
            across = nll(point + one - other) + nll(point - one + other)
            hessian[i, j] = hessian[j, i] = (along - across) / 4e-6
    return np.asarray(np.linalg.inv(hessian), dtype=np.float64)
