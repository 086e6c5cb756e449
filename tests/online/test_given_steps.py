from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.online.adaptive import AdaptiveLearner
from deeptobit.online.gradient import exact_sketch
from deeptobit.online.reference import Iterate, rows_of
from deeptobit.online.solver import RawRows, Standardization
from tests.online.problems import is_finite, make, relative_error, solve, stream

PAPER: dict[str, Any] = {
    "averaging": False,
    "fit_intercept": False,
    "standardize": False,
    "start": "random",
    "random_state": 0,
    "sigma": np.ones(6),
}


def halve_slowly(i: int) -> float:
    return 2e-3 / (1.0 + i / 1000.0)


def too_large(i: int) -> float:
    return 5.0


def test_the_papers_recipe_to_the_letter() -> None:
    """Algorithms 1 and 2, written out with the likelihood's own derivatives."""
    data, step, alpha = stream(150), 1e-3, 0.01
    first = make(data, step_size=step, alpha=alpha, **PAPER)
    start = first.result()
    U, V = start.U.copy(), start.V.copy()
    for x, low, high in zip(data.X, data.low, data.high, strict=True):
        g = evaluate(Gaussian(), low, high, U @ V @ x, np.ones(6)).latent
        V -= step * (np.outer(U.T @ g, x) + alpha * V)
        g = evaluate(Gaussian(), low, high, U @ V @ x, np.ones(6)).latent
        U -= step * (np.outer(g, V @ x) + alpha * U)
    found = solve(data, step_size=step, alpha=alpha, **PAPER)
    np.testing.assert_allclose(found.U, U, rtol=1e-9)
    np.testing.assert_allclose(found.V, V, rtol=1e-9)
    np.testing.assert_array_equal(found.intercept, 0.0)


@pytest.mark.parametrize("step", [3e-3, halve_slowly], ids=["number", "schedule"])
def test_a_good_step_learns(step: Any) -> None:
    data = stream(4000)
    assert relative_error(solve(data, step_size=step, **PAPER), data.coef) < 0.1
    assert relative_error(solve(data, step_size=step), data.coef) < 0.2


def test_batches_take_mean_gradients() -> None:
    data = stream(4000)
    found = solve(data, step_size=0.05, batch_size=16, **PAPER)
    assert relative_error(found, data.coef) < 0.2


@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize("step", [10.0, too_large], ids=["number", "schedule"])
def test_the_guard_stops_a_divergence_and_goes_on(step: Any, batch_size: int) -> None:
    data = stream(4000)
    solver = make(data, step_size=step, batch_size=batch_size, **PAPER)
    solver.learn(data.X, data.low, data.high)
    assert solver.n_halvings > 0
    assert is_finite(solver.result())
    assert all(np.isfinite(record.online_loss) for record in solver.history)


def test_after_a_step_that_is_a_little_too_large_the_model_is_still_good() -> None:
    data = stream(6000)
    solver = make(data, step_size=0.05, **PAPER)
    solver.learn(data.X, data.low, data.high)
    assert solver.n_halvings > 0
    assert relative_error(solver.result(), data.coef) < 0.5


def test_outliers_make_the_guard_fire_and_do_no_lasting_harm() -> None:
    data = stream(4000)
    data.low[2000] = data.high[2000] = 1e8
    solver = make(data, step_size=3e-3, **PAPER)
    solver.learn(data.X, data.low, data.high)
    assert solver.n_halvings > 0
    assert relative_error(solver.result(), data.coef) < 0.15


@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_guard_of_the_adaptive_steps_repairs_a_broken_metric(batch_size: int) -> None:
    data = stream(4000)
    solver = make(data, batch_size=batch_size)
    solver.learn(data.X[:1024], data.low[:1024], data.high[:1024])
    learner = solver._learner
    assert isinstance(learner, AdaptiveLearner)
    learner.inverse *= 1e8
    learner.spread, learner.whitened_at = 0.0, 1024.0  # no damping, and no new metric for a while
    solver.learn(data.X[1024:], data.low[1024:], data.high[1024:])
    assert solver.n_halvings > 0
    assert relative_error(solver.result(), data.coef) < 0.2


def test_exact_sketch_is_the_optimum_of_problem_p_v() -> None:
    data, alpha = stream(1, rank=2), 0.3
    rng = np.random.default_rng(0)
    now = Iterate(
        rng.normal(size=(2, 8)), rng.normal(size=(2, 6)), rng.normal(size=6), np.full(6, 0.7)
    )
    rows = RawRows(data.X, data.low, data.high, np.array([2.0]))
    block = Standardization.identity(8, 6).block(rows)

    def value(flat: Any) -> float:
        latent = flat.reshape(2, 8) @ data.X[0] @ now.Ut + now.intercept
        nll = evaluate(Gaussian(), data.low[0], data.high[0], latent, now.sigma).nll.sum()
        return float(2.0 * nll + 0.5 * alpha * np.sum(flat**2))

    found = exact_sketch(Gaussian(), rows_of(block, slice(0, 1)), now, alpha)
    best = minimize(value, np.zeros(16), tol=1e-12)
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-5)
    assert np.linalg.matrix_rank(found) == 1


def test_exact_sketch_in_the_stream() -> None:
    data = stream(300)
    solver = make(data, step_size=1e-3, exact_sketch=True, alpha=0.1, **PAPER)
    solver.learn(data.X, data.low, data.high)
    assert is_finite(solver.result())
    assert np.linalg.matrix_rank(solver.result().V) == 1
    zero = data._replace(X=np.zeros_like(data.X))
    assert not solve(zero, step_size=1e-3, exact_sketch=True, alpha=0.1, **PAPER).V.any()
