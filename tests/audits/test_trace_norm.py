"""The censored trace-norm optimum against ADMM and its conditions of optimality.

The trace norm makes the problem convex and not smooth. Compared: objective, coefficients and σ with
those of an independent solver (``admm.py``: Newton's method for every task, singular value
thresholding, 10 digits), for the baseline in Olsen's coordinates, where σ is part of the convex
problem, and for SubspaceTobitRegressor, whose factors U and V know no trace norm but must end at
its optimum. And the certificate: the gradient G by the coefficients W = PSQᵀ has spectral norm α at
most, and PᵀG = −αQᵀ.

Agreement: factors: objective to 1e-12, coefficients to 1e-7, certificate to 1e-6; baseline (solved
to a certificate of 1e-8): objective to 1e-10, coefficients and σ to 1e-6, certificate to 1e-6; all
relative.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from deeptobit import CensoredTargets, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from paper.baselines.norms import CensoredProblem, TraceNorm
from tests.audits.admm import tasks_of, trace_norm_optimum
from tests.audits.problems import relative_error, shared_subspace

SHARES = pytest.mark.parametrize("share", [0.6, 0.2, 0.03])


class Standard(NamedTuple):
    """Features and outcomes in standard units."""

    X: FloatArray
    targets: CensoredTargets


def standard(n_rows: int = 80) -> Standard:
    """Outcomes with bounds below, above, on both sides and on none, a tenth of them missing.

    A value at its bound counts as the bound, so that bounds are moved along with the values.
    """
    X, Y, _ = shared_subspace(n_rows=n_rows)
    lower, upper = np.array([0.0, -np.inf, 0.5, -np.inf]), np.array([np.inf, np.inf, 2.0, 1.0])
    Y = np.clip(Y, lower, upper)
    Y[np.random.default_rng(1).random(Y.shape) < 0.1] = np.nan
    mean, spread = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    Y, lower, upper = ((values - mean) / spread for values in (Y, lower, upper))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Standard(X, CensoredTargets.from_bounds(Y, lower, upper))


def objective(
    data: Standard, W: FloatArray, c: FloatArray, sigma: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Mean nll at W (D, T), and its gradients by W and the intercepts."""
    tasks = tasks_of(data.X, data.targets.low, data.targets.high)
    points = np.vstack([W / sigma, c / sigma, 1.0 / sigma]).T
    parts = [task.evaluate(point) for task, point in zip(tasks, points, strict=True)]
    gradients = np.array([gradient for _, gradient, _ in parts]).T / sigma
    return sum(nll for nll, _, _ in parts), gradients[:-2], gradients[-2]


def violation(W: FloatArray, G: FloatArray, alpha: float) -> float:
    """By how much the conditions of optimality are missed, as a share of α."""
    left, sizes, right = np.linalg.svd(W, full_matrices=False)
    rank = int((sizes > 1e-6 * sizes[0]).sum())
    P, Q = left[:, :rank], right[:rank]
    aligned = max(np.abs(P.T @ G + alpha * Q).max(), np.abs(G @ Q.T + alpha * P).max())
    return float(max(np.linalg.norm(G, 2) - alpha, aligned)) / alpha


def trace_norm(W: FloatArray) -> float:
    return float(np.linalg.svd(W, compute_uv=False).sum())


@SHARES
def test_the_baseline_in_olsens_coordinates(share: float) -> None:
    data = standard()
    problem = CensoredProblem(data.X, data.targets.low, data.targets.high, TraceNorm())
    alpha = share * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-8)
    reference = trace_norm_optimum(data.X, data.targets.low, data.targets.high, alpha)
    sigma = 1.0 / found.theta
    nll, G, by_intercept = objective(data, found.coef * sigma, found.intercept * sigma, sigma)
    value = nll + alpha * trace_norm(found.coef)
    np.testing.assert_allclose(value, reference.objective, rtol=1e-10)
    assert relative_error(found.coef, reference.gamma) <= 1e-6
    np.testing.assert_allclose(found.theta, reference.theta, rtol=1e-6)
    assert violation(found.coef, G * sigma, alpha) <= 1e-6
    assert np.abs(by_intercept).max() <= 1e-7


@SHARES
@pytest.mark.parametrize("sigma", ["mle", [0.8, 0.5, 1.0, 0.7]], ids=["mle", "given"])
def test_factors_end_at_the_trace_norm_optimum_of_their_sigma(sigma: Any, share: float) -> None:
    data = standard()
    null = SubspaceTobitRegressor(4, sigma=sigma, solver="batch").fit(*data)
    alpha = share * null.history_["alpha_max"]
    model = SubspaceTobitRegressor(4, sigma=sigma, alpha=alpha, solver="batch", tol=1e-9)
    model.fit(*data)
    low, high = data.targets.low, data.targets.high
    reference = trace_norm_optimum(data.X, low, high, alpha, model.sigma_)
    nll, G, by_intercept = objective(data, model.coef_.T, model.intercept_, model.sigma_)
    value = nll + alpha * trace_norm(model.coef_)
    np.testing.assert_allclose(value, reference.objective, rtol=1e-12)
    assert relative_error(model.coef_.T, reference.gamma * model.sigma_) <= 1e-7
    assert violation(model.coef_.T, G, alpha) <= 1e-6
    assert np.abs(by_intercept).max() <= 1e-8
