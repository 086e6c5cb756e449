from typing import Any

import numpy as np
import pytest

from deeptobit.likelihood import Gaussian, Logistic, Noise
from deeptobit.metrics import principal_angles
from deeptobit.online.adaptive import AdaptiveLearner
from tests.online.problems import is_finite, make, relative_error, same, solve, stream


@pytest.mark.parametrize("settings", [{}, {"batch_size": 16}, {"batch_size": 64}])
def test_finds_coefficients_intercepts_noise_and_subspace(settings: dict[str, Any]) -> None:
    data = stream(4000, d=20, t=10, rank=3)
    result = solve(data, rank=3, **settings)
    assert relative_error(result, data.coef) < 0.04
    assert np.cos(principal_angles(data.coef[:, :3], result.U)).min() > 0.999  # they span U
    np.testing.assert_allclose(result.sigma, 1.0, atol=0.2)
    np.testing.assert_allclose(result.intercept, 0.0, atol=0.5)


@pytest.mark.parametrize("batch_size", [1, 16, 64])
@pytest.mark.parametrize("rank", [6, 12])
def test_components_that_explain_nothing_do_no_harm(rank: int, batch_size: int) -> None:
    data = stream(4000, d=40, t=30, rank=3)
    exact = relative_error(solve(data, rank=3, batch_size=batch_size), data.coef)
    spare = relative_error(solve(data, rank=rank, batch_size=batch_size), data.coef)
    assert spare < 2.0 * exact  # more parameters, more noise; a runaway would be ten times


@pytest.mark.parametrize("settings", [{}, {"batch_size": 32}])
def test_units_do_not_matter(settings: dict[str, Any]) -> None:
    data = stream(900)
    expected = solve(data, **settings)
    by_feature, by_task = 10.0 ** np.arange(-4, 4), 10.0 ** np.arange(-3, 3)
    moved = data._replace(
        X=data.X * by_feature + by_feature, low=data.low * by_task, high=data.high * by_task
    )
    found = solve(moved, **settings)
    coef = found.U @ found.V * by_feature / by_task[:, None]
    np.testing.assert_allclose(coef, expected.U @ expected.V, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.sigma / by_task, expected.sigma, rtol=1e-6)


def test_permuting_tasks_permutes_the_result() -> None:
    data = stream(900)
    order = np.array([3, 1, 5, 0, 2, 4])
    expected = solve(data)
    found = solve(data._replace(low=data.low[:, order], high=data.high[:, order]))
    np.testing.assert_allclose(found.U @ found.V, (expected.U @ expected.V)[order], atol=1e-6)
    np.testing.assert_allclose(found.sigma, expected.sigma[order], rtol=1e-6)


def test_every_direction_of_ill_conditioned_features_is_learned() -> None:
    rng = np.random.default_rng(0)
    data = stream(6000, d=20, t=10, rank=3)
    turn = np.linalg.qr(rng.normal(size=(20, 20)))[0] * np.geomspace(1.0, 1e-4, 20)
    turn = turn @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    found = solve(data._replace(X=data.X @ turn), rank=3)
    expected = solve(data, rank=3)
    error = np.linalg.norm(found.U @ found.V @ turn.T - data.coef)
    assert error < 1.3 * np.linalg.norm(expected.U @ expected.V - data.coef)


def test_weight_two_is_about_a_row_twice() -> None:
    data = stream(3000)
    heavy = np.random.default_rng(0).integers(1, 3, 3000)
    rows = np.repeat(np.arange(3000), heavy)
    twice = data._replace(X=data.X[rows], low=data.low[rows], high=data.high[rows])
    weighted, repeated = solve(data, heavy.astype(float)), solve(twice)
    gap = np.linalg.norm(weighted.U @ weighted.V - repeated.U @ repeated.V)
    assert gap < 0.05 * np.linalg.norm(data.coef)


def test_rows_of_weight_zero_teach_nothing() -> None:
    data = stream(2000)
    wild = np.arange(2000) % 2 == 1
    spoiled = data.X.copy()
    spoiled[wild] *= -3.0
    found = solve(data._replace(X=spoiled), np.where(wild, 0.0, 1.0))
    assert relative_error(found, data.coef) < 0.1


def test_intervals_and_bounds_per_row() -> None:
    data = stream(3000)
    rng = np.random.default_rng(1)
    latent = data.X @ data.coef.T + rng.normal(size=data.low.shape)
    grid = np.floor(latent)  # every entry is known to within 1
    found = solve(data._replace(low=grid, high=grid + 1.0))
    assert relative_error(found, data.coef) < 0.05
    limit = rng.normal(size=latent.shape)
    low = np.where(latent < limit, -np.inf, latent)
    found = solve(data._replace(low=low, high=np.maximum(latent, limit)))
    assert relative_error(found, data.coef) < 0.05
    np.testing.assert_allclose(found.sigma, 1.0, atol=0.2)


def test_missing_entries_are_skipped() -> None:
    data = stream(4000)
    gone = np.random.default_rng(2).uniform(size=data.low.shape) < 0.5
    low, high = np.where(gone, np.nan, data.low), np.where(gone, np.nan, data.high)
    assert relative_error(solve(data._replace(low=low, high=high)), data.coef) < 0.08


def test_fixed_noise_and_no_intercept() -> None:
    data = stream(3000)
    found = solve(data, sigma=np.full(6, 1.5), fit_intercept=False)
    np.testing.assert_array_equal(found.sigma, 1.5)
    np.testing.assert_allclose(found.intercept, 0.0, atol=1e-12)
    assert relative_error(found, data.coef) < 0.08


@pytest.mark.parametrize("n_rows", [150, 400])
def test_the_first_rows_are_fitted_almost_to_the_optimum(n_rows: int) -> None:
    """With as many features as half of the rows, one pass alone has errors of 0.3 and more."""
    data = stream(n_rows, d=n_rows // 2, t=30, rank=3)
    found, once = solve(data, rank=3), make(data, rank=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdaptiveLearner, "refit", lambda self, block, gram: None)
        once.learn(data.X, data.low, data.high)
        before = once.result()
    assert relative_error(found, data.coef) < 0.8 * relative_error(before, data.coef)


def test_a_refit_on_noise_adds_nothing() -> None:
    rng = np.random.default_rng(0)
    data = stream(300, d=100, t=20)
    Y = rng.normal(size=data.low.shape)
    found = solve(data._replace(low=Y, high=Y))
    assert np.square(data.X @ (found.U @ found.V).T).mean() < 0.01


def test_another_noise_family() -> None:
    data = stream(700)
    found = solve(data, noise=Logistic(), batch_size=32)
    assert is_finite(found)
    assert relative_error(found, data.coef) < 0.3
    assert is_finite(solve(stream(80), noise=Logistic()))


def test_a_ridge_shrinks_and_a_large_one_shrinks_away() -> None:
    data = stream(3000)
    size = [np.linalg.norm(f.U @ f.V) for f in (solve(data, alpha=a) for a in (0.0, 0.3, 3.0))]
    assert size[0] > size[1] > size[2]
    assert np.linalg.norm(solve(data, alpha=100.0).U) < 0.2 * np.linalg.norm(solve(data).U)


@pytest.mark.parametrize("batch_size", [1, 64])
@pytest.mark.parametrize("n_tasks", [6, 1100])
@pytest.mark.parametrize("noise", [Gaussian(), Logistic()], ids=repr)
def test_threads_change_nothing(noise: Noise, n_tasks: int, batch_size: int) -> None:
    data = stream(600 if noise == Gaussian() else 60, d=4, t=n_tasks)
    one, two = (solve(data, batch_size=batch_size, n_threads=n, noise=noise) for n in (1, 2))
    assert same(one, two)


def test_gaussian_noise_learns_from_row_after_row_in_any_case() -> None:
    data = stream(1500)
    assert same(solve(data), solve(data, batch_size=64, noise=Gaussian()))


@pytest.mark.parametrize("batch_size", [1, 64])
def test_more_components_than_independent_features(batch_size: int) -> None:
    data = stream(400, d=3, t=6)
    twice = np.column_stack([data.X, data.X @ np.ones(3)])  # exactly collinear
    found = solve(data._replace(X=twice), rank=4, batch_size=batch_size, random_state=0)
    assert np.abs(found.V).max() < 1e3
    fitted = twice @ (found.U @ found.V).T
    truth = data.X @ data.coef.T
    assert np.linalg.norm(fitted - truth) < 0.2 * np.linalg.norm(truth)
