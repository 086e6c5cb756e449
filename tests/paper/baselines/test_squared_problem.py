import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import MultiTaskLasso

from paper.arrays import FloatArray
from paper.baselines.norms import GroupNorm, Penalty, SquaredProblem, TraceNorm

PENALTIES = [TraceNorm(), GroupNorm()]


def _data(
    n_rows: int = 40, n_features: int = 6, missing: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, n_features)) + 2.0
    coef = rng.standard_normal((n_features, 2)) @ rng.standard_normal((2, 4))
    Y = X @ coef + rng.standard_normal((n_rows, 4)) + 5.0
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def _objective(problem: SquaredProblem, alpha: float, W: FloatArray, b: FloatArray) -> float:
    errors = problem.Y - problem.X @ W - b
    return float(np.nansum(errors**2) / (2 * len(errors)) + alpha * problem.penalty.value(W))


@pytest.mark.parametrize("share", [0.6, 0.1, 0.003])
@pytest.mark.parametrize("shape", [(40, 6), (8, 12)])
def test_the_group_norm_agrees_with_scikit_learn(share: float, shape: tuple[int, int]) -> None:
    X, Y = _data(*shape)
    problem = SquaredProblem(X, Y, GroupNorm())
    alpha = share * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-12)
    reference = MultiTaskLasso(alpha, tol=1e-10, max_iter=100_000).fit(X, Y)
    assert_allclose(found.coef.T, reference.coef_, atol=1e-5)
    assert_allclose(found.intercept, reference.intercept_, atol=1e-4)
    assert_array_equal(found.coef.any(axis=1), reference.coef_.any(axis=0))


def test_the_trace_norm_agrees_with_its_factored_form() -> None:
    X, Y = _data(missing=0.2)
    problem = SquaredProblem(X, Y, TraceNorm())
    alpha = 0.2 * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-12)
    shapes = [(6, 4), (4, 4), (1, 4)]
    ends = np.cumsum([np.prod(shape) for shape in shapes])

    def factored(flat: FloatArray) -> float:
        A, B, b = (
            part.reshape(shape)
            for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)
        )
        errors = Y - X @ A @ B - b
        size = 0.5 * (np.square(A).sum() + np.square(B).sum())
        return float(np.nansum(errors**2) / (2 * len(Y)) + alpha * size)

    start = np.random.default_rng(0).standard_normal(ends[-1])
    best = minimize(factored, start, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10**6})
    value = _objective(problem, alpha, found.coef, found.intercept)
    assert_allclose(value, best.fun, rtol=1e-5)
    assert value <= best.fun + 1e-9


@pytest.mark.parametrize("penalty", PENALTIES)
def test_at_alpha_max_and_beyond_nothing_is_left_and_below_something_is(penalty: Penalty) -> None:
    X, Y = _data(missing=0.1)
    problem = SquaredProblem(X, Y, penalty)
    for factor in (1.0, 3.0):
        found = problem.solve(factor * problem.alpha_max, problem.null(), 1e-9)
        assert_array_equal(found.coef, 0.0)
        assert_allclose(found.intercept, np.nanmean(Y, axis=0))
    below = problem.solve(0.999 * problem.alpha_max, problem.null(), 1e-12)
    assert below.coef.any()
    assert_allclose(below.coef, 0.0, atol=0.05)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(40, 6), (8, 12)])
def test_the_gap_bounds_the_distance_to_the_optimum(
    penalty: Penalty, shape: tuple[int, int]
) -> None:
    X, Y = _data(*shape, missing=0.15)
    problem = SquaredProblem(X, Y, penalty)
    alpha = 0.05 * problem.alpha_max
    best = problem.solve(alpha, problem.null(), 1e-13)
    rough = problem.solve(alpha, problem.null(), 1e-2)
    assert 1e-13 >= best.certificate > -1e-14
    assert 1e-2 >= rough.certificate > 1e-13
    empty = np.nansum((Y - np.nanmean(Y, axis=0)) ** 2) / (2 * len(Y))
    excess = _objective(problem, alpha, rough.coef, rough.intercept)
    excess -= _objective(problem, alpha, best.coef, best.intercept)
    assert 0.0 < excess <= rough.certificate * empty


@pytest.mark.parametrize("penalty", PENALTIES)
def test_moments_by_pattern_are_sums_over_known_entries(penalty: Penalty) -> None:
    X, Y = _data(missing=0.3)
    problem = SquaredProblem(X, Y, penalty)
    alpha = 0.1 * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-13)
    errors = np.nan_to_num(X @ found.coef + found.intercept - Y)
    pull = X.T @ errors / len(X)
    assert_allclose(errors.sum(axis=0), 0.0, atol=1e-10)
    assert penalty.dual(pull) <= alpha * (1.0 + 1e-5)
    assert_allclose(-np.vdot(pull, found.coef), alpha * penalty.value(found.coef), rtol=1e-5)


def test_a_task_without_entries_gets_no_coefficients() -> None:
    X, Y = _data()
    Y[:, 2] = np.nan
    problem = SquaredProblem(X, Y, TraceNorm())
    found = problem.solve(0.1 * problem.alpha_max, problem.null(), 1e-9)
    assert_allclose(found.coef[:, 2], 0.0, atol=1e-15)
    others = SquaredProblem(X, np.delete(Y, 2, axis=1), TraceNorm())
    reference = others.solve(0.1 * others.alpha_max, others.null(), 1e-9)
    assert_allclose(np.delete(found.coef, 2, axis=1), reference.coef, atol=1e-6)
