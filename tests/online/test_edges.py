from typing import Any

import numpy as np
import pytest

from deeptobit.online import OnlineSettings
from tests.online.problems import is_finite, make, relative_error, solve, stream

BOTH = pytest.mark.parametrize("settings", [{}, {"batch_size": 16}], ids=["rows", "batch"])


@BOTH
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 1), (2, 5, 3), (3, 40, 30), (9, 1, 4)])
def test_hardly_any_data(settings: dict[str, Any], shape: tuple[int, int, int]) -> None:
    n, d, t = shape
    data = stream(n, d, t, rank=1)
    assert is_finite(solve(data, rank=min(d, t, 3), **settings))


@BOTH
def test_one_feature_one_task(settings: dict[str, Any]) -> None:
    data = stream(3000, 1, 1, rank=1, seed=2)
    assert relative_error(solve(data, rank=1, **settings), data.coef) < 0.15


@BOTH
def test_full_rank(settings: dict[str, Any]) -> None:
    data = stream(3000, 3, 6, rank=3)
    assert relative_error(solve(data, rank=3, **settings), data.coef) < 0.1


@BOTH
@pytest.mark.parametrize("n", [40, 1000])
def test_tasks_that_say_little(settings: dict[str, Any], n: int) -> None:
    data = stream(n)
    data.low[:, 0], data.high[:, 0] = -np.inf, 0.0  # all censored
    data.low[:, 1], data.high[:, 1] = np.nan, np.nan  # all missing
    data.low[:, 2], data.high[:, 2] = 5.0, 5.0  # constant
    data.low[:30], data.high[:30] = np.nan, np.nan  # empty rows
    found = solve(data, **settings)
    assert is_finite(found)
    latent = data.X @ (found.U @ found.V).T + found.intercept
    assert (latent[:, 0] < 0.0).mean() > 0.9
    np.testing.assert_allclose(latent[:, 2], 5.0, atol=0.1)


@BOTH
def test_nothing_known_in_the_first_rows(settings: dict[str, Any]) -> None:
    data = stream(4000)
    data.low[:600], data.high[:600] = np.nan, np.nan
    found = solve(data, **settings)
    assert is_finite(found)
    assert relative_error(found, data.coef) < 0.5


@BOTH
@pytest.mark.parametrize("n", [60, 1500])
def test_rounding_of_a_constant_is_nothing_to_learn_from(settings: dict[str, Any], n: int) -> None:
    data = stream(n)
    rounded = np.random.default_rng(0).uniform(0.1, 9.0, n)
    rounded = 0.7 * rounded / rounded
    assert 1e-17 < rounded.std() < 1e-15
    found = solve(data._replace(X=np.column_stack([data.X, rounded])), **settings)
    assert np.abs((found.U @ found.V)[:, -1]).max() < 1.0


@BOTH
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6, 1e9])
def test_a_feature_that_begins_to_vary_late_may_have_any_unit(
    settings: dict[str, Any], unit: float
) -> None:
    data, other = stream(3000, 4, 3), np.random.default_rng(0).normal(size=3000)
    other[:2900] = 0.0
    for values in (data.low, data.high):
        values += 3.0 * other[:, None]
    found = solve(data._replace(X=np.column_stack([data.X, unit * other])), **settings)
    late = (found.U @ found.V)[:, -1] * unit
    assert (np.abs(late) < 10.0).all()
    plain = solve(data._replace(X=np.column_stack([data.X, other])), **settings)
    np.testing.assert_allclose(late, (plain.U @ plain.V)[:, -1], rtol=1e-5, atol=1e-6)


@BOTH
def test_features_that_are_constant_or_repeated(settings: dict[str, Any]) -> None:
    data = stream(1500)
    X = np.column_stack([data.X, np.full(1500, 7.0), data.X[:, 0], np.zeros(1500)])
    found = solve(data._replace(X=X), **settings)
    assert is_finite(found)
    latent = X @ (found.U @ found.V).T + found.intercept
    truth = data.X @ data.coef.T
    assert np.linalg.norm(latent - truth) < 0.1 * np.linalg.norm(truth)


@BOTH
def test_wild_rows_leave_a_finite_model(settings: dict[str, Any]) -> None:
    data = stream(3000)
    rng = np.random.default_rng(0)
    rows = rng.choice(np.arange(600, 3000), 20, replace=False)
    data.low[rows] = data.high[rows] = 1e8 * rng.normal(size=(20, 6))
    data.X[rows[:5]] *= 1e6
    assert is_finite(solve(data, **settings))


@BOTH
def test_heavy_tails(settings: dict[str, Any]) -> None:
    data = stream(3000)
    rng = np.random.default_rng(0)
    y = data.X @ data.coef.T + rng.standard_t(1.2, size=data.low.shape)
    found = solve(data._replace(low=y, high=y), **settings)
    assert is_finite(found)


@BOTH
def test_pure_noise_gives_the_model_without_features(settings: dict[str, Any]) -> None:
    data = stream(300)
    y = np.random.default_rng(5).normal(size=data.low.shape)
    found = solve(data._replace(low=y, high=y), **settings)
    assert np.linalg.norm(found.U @ found.V, axis=1).max() < 0.15
    np.testing.assert_allclose(found.sigma, y.std(axis=0), rtol=0.05)


@BOTH
def test_a_second_pass_over_few_rows(settings: dict[str, Any]) -> None:
    data = stream(200)
    solver = make(data, **settings)
    for _ in range(4):
        solver.learn(data.X, data.low, data.high)
    assert is_finite(solver.result())
    assert relative_error(solver.result(), data.coef) < 0.3


def test_more_features_than_a_full_preconditioner_takes() -> None:
    data = stream(1500, d=700, t=5)
    assert is_finite(solve(data))


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="there is no model yet: call learn"):
        make(stream(10)).result()
    with pytest.raises(ValueError, match="rank, batch_size and n_threads must be at least 1"):
        OnlineSettings(rank=0)
    with pytest.raises(ValueError, match="at least 1"):
        OnlineSettings(rank=1, batch_size=0)
    with pytest.raises(ValueError, match="alpha must be"):
        OnlineSettings(rank=1, alpha=-1.0)


@BOTH
def test_rare_values_of_one_task_leave_the_others_alone(settings: dict[str, Any]) -> None:
    data = stream(3000, rank=2, seed=3)
    alone = relative_error(solve(data, rank=2, **settings), data.coef)
    rare = np.random.default_rng(0).choice(np.arange(600, 3000), 12, replace=False)
    low, high = np.full((3000, 1), -np.inf), np.zeros((3000, 1))
    low[rare], high[rare] = 1e4, 1e4
    beside = data._replace(low=np.hstack([data.low, low]), high=np.hstack([data.high, high]))
    found = solve(beside, rank=2, **settings)
    assert is_finite(found)
    others = found.U[:-1] @ found.V - data.coef
    assert np.linalg.norm(others) / np.linalg.norm(data.coef) < 1.5 * alone
