import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm

from deeptobit import CensoredTargets, TobitRegressor
from paper.arrays import FloatArray
from paper.baselines.norms import CensoredProblem, GroupNorm, Penalty, Solution, TraceNorm

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

PENALTIES = [TraceNorm(), GroupNorm()]
LOWER, UPPER = np.array([0.0, -np.inf, -1.0]), np.array([2.0, np.inf, np.inf])


def _problem(penalty: Penalty, missing: float = 0.1, n_rows: int = 60) -> CensoredProblem:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n_rows, 4))
    latent = X @ np.outer([1.0, 0.0, -1.0, 0.5], [1.0, -2.0, 0.7]) + [0.5, 0.0, -0.5]
    Y = np.clip(latent + rng.standard_normal(latent.shape) * [1.0, 0.5, 1.0], LOWER, UPPER)
    Y[rng.random(Y.shape) < missing] = np.nan
    targets = CensoredTargets.from_bounds(Y, LOWER, UPPER)
    return CensoredProblem(X, targets.low, targets.high, penalty)


def _nll(problem: CensoredProblem, line: FloatArray, theta: FloatArray) -> float:
    """Written anew, with SciPy's normal distribution."""
    scores = problem.X @ line[:-1] + line[-1]
    low, high = problem.low * theta - scores, problem.high * theta - scores
    exact = problem.low == problem.high
    log = np.where(exact, norm.logpdf(np.where(exact, low, 0.0)) + np.log(theta), 0.0)
    log = np.where(np.isneginf(problem.low), norm.logcdf(high), log)
    log = np.where(np.isposinf(problem.high), norm.logsf(low), log)
    return -float(np.where(np.isnan(problem.low), 0.0, log).sum()) / len(problem.X)


def _objective(problem: CensoredProblem, alpha: float, found: Solution) -> float:
    line = np.vstack([found.coef, found.intercept])
    return _nll(problem, line, found.theta) + alpha * problem.penalty.value(found.coef)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_optimum_agrees_with_a_slow_reference(penalty: Penalty, share: float) -> None:
    problem = _problem(penalty)
    alpha = share * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-9)

    # Both norms are minima over factors, in which the objective is smooth:
    # the trace norm of γ = AB with ½(‖A‖² + ‖B‖²), ℓ2,1 with γ = diag(a)B and the same sum.
    n_left = 4 * 3 if isinstance(penalty, TraceNorm) else 4

    def factored(flat: FloatArray) -> float:
        left, right, b, log_theta = np.split(flat, [n_left, flat.size - 6, flat.size - 3])
        if isinstance(penalty, TraceNorm):
            coef = left.reshape(4, 3) @ right.reshape(3, 3)
        else:
            coef = left[:, None] * right.reshape(4, 3)
        size = 0.5 * (np.square(left).sum() + np.square(right).sum())
        return float(_nll(problem, np.vstack([coef, b]), np.exp(log_theta)) + alpha * size)

    n_right = 9 if isinstance(penalty, TraceNorm) else 12
    start = np.r_[np.random.default_rng(1).standard_normal(n_left + n_right), np.zeros(6)]
    best = minimize(factored, start, method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 10**5})
    value = _objective(problem, alpha, found)
    assert_allclose(value, best.fun, rtol=2e-5)
    assert value <= best.fun + 1e-8
    assert_allclose(found.theta, np.exp(best.x[-3:]), rtol=0.01)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_certificate_is_what_it_says(penalty: Penalty) -> None:
    problem = _problem(penalty)
    alpha = 0.1 * problem.alpha_max
    found = problem.solve(alpha, problem.null(), 1e-7)
    assert 0.0 < found.certificate <= 1e-7
    line = np.vstack([found.coef, found.intercept])
    pull = np.empty_like(line)
    for place in np.ndindex(*line.shape):
        ends = []
        for change in (1e-5, -1e-5):
            moved = line.copy()
            moved[place] += change
            ends.append(_nll(problem, moved, found.theta))
        pull[place] = (ends[0] - ends[1]) / 2e-5
    assert penalty.dual(pull[:-1]) <= alpha * (1.0 + 1e-5)
    assert_allclose(-np.vdot(pull[:-1], found.coef), alpha * penalty.value(found.coef), rtol=1e-5)
    assert_allclose(pull[-1], 0.0, atol=1e-6)
    for task in range(3):
        up, down = found.theta.copy(), found.theta.copy()
        up[task] += 1e-5
        down[task] -= 1e-5
        slope = (_nll(problem, line, up) - _nll(problem, line, down)) / 2e-5
        assert_allclose(slope, 0.0, atol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_at_alpha_max_the_null_model_is_left(penalty: Penalty) -> None:
    problem = _problem(penalty)
    found = problem.solve(problem.alpha_max, problem.null(), 1e-9)
    assert_array_equal(found.coef, 0.0)
    targets = CensoredTargets.from_intervals(problem.low, problem.high)
    null = TobitRegressor(alpha=1.0).fit(np.zeros((60, 1)), targets)
    assert_allclose(found.intercept / found.theta, null.intercept_, rtol=1e-6)
    assert_allclose(1.0 / found.theta, null.sigma_, rtol=1e-6)
    below = problem.solve(0.99 * problem.alpha_max, problem.null(), 1e-9)
    assert below.coef.any()
    assert_allclose(below.coef, 0.0, atol=0.05)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_without_a_penalty_to_speak_of_it_is_tobit_regression(penalty: Penalty) -> None:
    problem = _problem(penalty, n_rows=200)
    found = problem.solve(1e-9, problem.null(), 1e-6)
    targets = CensoredTargets.from_intervals(problem.low, problem.high)
    tobit = TobitRegressor().fit(problem.X, targets)
    assert_allclose((found.coef / found.theta).T, tobit.coef_, atol=1e-3)
    assert_allclose(1.0 / found.theta, tobit.sigma_, rtol=1e-3)


def test_a_task_that_is_censored_throughout_keeps_its_constant() -> None:
    whole = _problem(TraceNorm(), missing=0.0)
    low, high = whole.low.copy(), whole.high.copy()
    low[:, 0], high[:, 0] = -np.inf, 0.0
    problem = CensoredProblem(whole.X, low, high, TraceNorm())
    with pytest.warns(match="every entry is censored on the same side"):
        start = problem.null()
    found = problem.solve(0.1 * problem.alpha_max, start, 1e-6)
    assert_allclose(found.coef[:, 0], 0.0, atol=1e-12)
    assert found.latent(whole.X)[0, 0] < 0.0
    assert found.certificate <= 1e-6


def test_a_task_without_noise_stops_at_the_floor_of_sigma() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    Y = np.column_stack([np.ones(50), X[:, 0] + rng.standard_normal(50)])
    problem = CensoredProblem(X, Y, Y, GroupNorm())
    found = problem.solve(0.1 * problem.alpha_max, problem.null(), 1e-5)
    assert np.isfinite(found.theta).all()
    assert_allclose(found.latent(X)[:, 0], 1.0, atol=1e-4)
    assert found.certificate <= 1e-5
