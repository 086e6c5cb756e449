"""The censored trace-norm optimum by ADMM: slow, plain, and without a line of the library's."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from deeptobit.arrays import FloatArray

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_RHO, _MAX_ROUNDS, _TOLERANCE = 0.3, 5000, 1e-10


class Optimum(NamedTuple):
    """Coefficients (D, T), intercepts and 1/σ (T,) in Olsen's coordinates, and the objective."""

    gamma: FloatArray
    c: FloatArray
    theta: FloatArray
    objective: float


class Task:
    """The mean nll of one task as a function of p = (γ, c, θ), with its derivatives."""

    def __init__(self, X: FloatArray, low: FloatArray, high: FloatArray, n_rows: int) -> None:
        known = ~np.isnan(low)
        X, low, high = X[known], low[known], high[known]
        self.observed = low == high
        self.sign = np.where(np.isneginf(low), 1.0, -1.0)
        edge = np.where(np.isneginf(low), high, low)
        self.rows = np.column_stack([-X, -np.ones(len(X)), edge])
        self.n_rows = n_rows

    def evaluate(self, p: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Mean nll, gradient (D + 2,) and Hessian."""
        z, theta = self.rows @ p, p[-1]
        log_cdf = log_ndtr(self.sign * z)
        mills = np.exp(-0.5 * z**2 - _LOG_SQRT_2PI - log_cdf)
        censored_slope, censored_bend = -self.sign * mills, mills * (mills + self.sign * z)
        nll = np.where(self.observed, 0.5 * z**2 + _LOG_SQRT_2PI - np.log(theta), -log_cdf)
        slope = np.where(self.observed, z, censored_slope)
        bend = np.where(self.observed, 1.0, censored_bend)
        gradient = self.rows.T @ slope
        hessian = self.rows.T @ (self.rows * bend[:, None])
        n_observed = float(self.observed.sum())
        gradient[-1] -= n_observed / theta
        hessian[-1, -1] += n_observed / theta**2
        return float(nll.sum()) / self.n_rows, gradient / self.n_rows, hessian / self.n_rows


def tasks_of(X: FloatArray, low: FloatArray, high: FloatArray) -> list[Task]:
    """One :class:`Task` for every column of the intervals (N, T)."""
    return [Task(X, *ends, len(X)) for ends in zip(low.T, high.T, strict=True)]


def trace_norm_optimum(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    alpha: float,
    sigma: FloatArray | None = None,
) -> Optimum:
    r"""Minimise the mean nll plus α times the trace norm of the coefficients, a convex problem.

    With ``sigma=None`` over (γ, c, θ) and :math:`\|\gamma\|_*`; with σ given over (γ, c) and
    :math:`\|W\|_*` of :math:`W = \gamma\,\mathrm{diag}(\sigma)`. Splits W from its copy Z: Newton's
    method for every task, singular value thresholding for Z, and a running sum of W − Z.
    """
    n_features, n_tasks = X.shape[1], low.shape[1]
    tasks, unit = tasks_of(X, low, high), np.ones(n_tasks) if sigma is None else sigma
    points = np.zeros((n_tasks, n_features + 2))
    points[:, -1] = 1.0 if sigma is None else 1.0 / sigma
    Z = total = np.zeros((n_features, n_tasks))
    for _ in range(_MAX_ROUNDS):
        for t, task in enumerate(tasks):
            aim = Z[:, t] - total[:, t]
            points[t] = _nearest(task, points[t], aim, unit[t], free_theta=sigma is None)
        W = (points[:, :n_features] * unit[:, None]).T
        left, sizes, right = np.linalg.svd(W + total, full_matrices=False)
        new = (left * np.maximum(sizes - alpha / _RHO, 0.0)) @ right
        total = total + W - new
        moved = max(np.abs(W - new).max(), np.abs(new - Z).max())
        Z = new
        if moved < _TOLERANCE:
            break
    else:
        raise RuntimeError("the reference did not converge")
    points[:, :n_features] = (Z / unit).T
    nll = sum(task.evaluate(p)[0] for task, p in zip(tasks, points, strict=True))
    norm = float(np.linalg.svd(Z, compute_uv=False).sum())
    return Optimum(points[:, :n_features].T, points[:, -2], points[:, -1], nll + alpha * norm)


def _nearest(
    task: Task, p: FloatArray, aim: FloatArray, unit: float, *, free_theta: bool
) -> FloatArray:
    """Minimise the task's nll plus (ρ/2)‖unit · γ − aim‖², by Newton's method."""
    n_features = len(aim)
    free = np.arange(len(p) if free_theta else len(p) - 1)

    def evaluate(at: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, hessian = task.evaluate(at)
        away = unit * at[:n_features] - aim
        gradient[:n_features] += _RHO * unit * away
        hessian[np.arange(n_features), np.arange(n_features)] += _RHO * unit**2
        return value + 0.5 * _RHO * float(away @ away), gradient[free], hessian[np.ix_(free, free)]

    value, gradient, hessian = evaluate(p)
    for _ in range(50):
        step = np.zeros_like(p)
        step[free] = -np.linalg.solve(hessian, gradient)
        if (
            -gradient @ step[free] < 1e-18
        ):  # after this step the error is of the order of its square
            return np.asarray(p + step)
        while p[-1] + step[-1] <= 0.0 or evaluate(p + step)[0] > value + 1e-12:
            step = 0.5 * step
        p = p + step
        value, gradient, hessian = evaluate(p)
    raise RuntimeError("the reference did not converge")
