"""Outcomes that are whole scores are predicted as whole scores."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, NoiseByTask, grid_of
from deeptobit.metrics import crps
from tests.estimators.saved import round_trip

LOWER, UPPER = 0.0, np.array([8.0, np.inf, 5.0])


@cache
def _data() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole scores in two tasks, halves in none, what lies below them in the third."""
    X, Y, _ = make_subspace(600, 6, 3, 2, random_state=0)
    latent = 4.0 * Y / Y.std(axis=0)
    whole = np.clip(np.round(latent), LOWER, UPPER)
    whole[:, 2] = np.clip(latent[:, 2], LOWER, 5.0)
    return X, whole, latent


@cache
def _model() -> AutoTobitRegressor:
    X, Y, _ = _data()
    return AutoTobitRegressor(lower=LOWER, upper=UPPER, cv=2, random_state=0).fit(X[:400], Y[:400])


def test_steps_are_found_task_by_task() -> None:
    grid = grid_of(_model().noise_)
    assert grid is not None
    assert_allclose(grid.step, [1.0, 1.0, 0.0], atol=1e-12)
    assert_allclose(grid.origin[:2], grid.origin[:2].round(), atol=1e-12)


def test_quantiles_intervals_and_draws_are_scores() -> None:
    X = _data()[0][400:]
    model = _model()
    for values in (
        model.predict_quantile(X, [0.1, 0.5, 0.8]),
        np.stack(model.predict_interval(X)),
        np.moveaxis(model.sample_y(X, 5, random_state=0), -1, 0),
    ):
        assert_allclose(values[..., :2], values[..., :2].round(), atol=1e-9)
        assert (values[..., 2] % 1.0 > 1e-6).any()


def test_means_are_those_of_draws() -> None:
    X = _data()[0][400:]
    draws = _model().sample_y(X, 2000, random_state=0)
    assert_allclose(_model().predict(X).mean(axis=0), draws.mean(axis=(0, 2)), atol=0.02)
    at_lower, _ = _model().predict_bound_proba(X)
    assert_allclose(at_lower.mean(axis=0), (draws == 0.0).mean(axis=(0, 2)), atol=0.01)


def test_whole_forecasts_of_whole_scores_are_better() -> None:
    X, Y, _ = _data()
    model = _model()
    latent = model.predict(X[400:], kind="latent")
    noise = model.noise_
    assert isinstance(noise, NoiseByTask)
    smooth = NoiseByTask(noise.families, noise.spread)
    whole, continuous = (
        crps(
            Y[400:],
            latent,
            model.sigma_,
            lower=LOWER,
            upper=UPPER,
            noise=each,
            multioutput="raw_values",
        )
        for each in (noise, smooth)
    )
    better = np.asarray(whole) < np.asarray(continuous)
    assert better.tolist() == [True, True, False]


def test_rows_without_weight_do_not_say_what_the_scores_are() -> None:
    X, Y, latent = _data()
    weight = np.r_[np.ones(400), np.zeros(200)]
    mixed = np.where(weight[:, None] > 0.0, Y, np.clip(latent, LOWER, UPPER))
    model = AutoTobitRegressor(lower=LOWER, upper=UPPER, cv=2, random_state=0)
    grid = grid_of(model.fit(X, mixed, sample_weight=weight).noise_)
    assert grid is not None
    assert_allclose(grid.step, [1.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
@pytest.mark.filterwarnings("ignore::deeptobit.exceptions.CensoringWarning")
def test_steps_lost_in_the_noise_or_far_wider_than_it_are_none(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    step = np.array([scale, 1.0])
    Y = step * np.round((3.0 * X + rng.normal(size=X.shape)) / step)
    Y[:, 0] = np.maximum(Y[:, 0], -2.0 * scale) if scale > 1.0 else Y[:, 0]
    grid = grid_of(AutoTobitRegressor(lower=None, cv=2, random_state=0).fit(X, Y).noise_)
    assert grid is not None
    assert_allclose(grid.step, [0.0, 1.0], atol=1e-12)


def test_a_five_point_scale_has_whole_intervals() -> None:
    """With steps of 1.8 σ."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    latent = 2.0 + (X @ rng.normal(size=(3, 2)) + rng.normal(size=(400, 2))) / 1.8
    Y = np.clip(np.round(latent), 0.0, 4.0)
    model = AutoTobitRegressor(lower=0.0, upper=4.0, cv=2, random_state=0).fit(X[:300], Y[:300])
    grid = grid_of(model.noise_)
    assert grid is not None
    assert_allclose(grid.step, [1.0, 1.0], atol=1e-12)
    ends = np.stack(model.predict_interval(X[300:]))
    assert_allclose(ends, ends.round(), atol=1e-9)


def test_a_family_of_ones_own_choice_is_continuous() -> None:
    X, Y, _ = _data()
    model = AutoTobitRegressor(lower=LOWER, upper=UPPER, noise="gaussian", cv=2, random_state=0)
    assert model.fit(X[:200], Y[:200]).noise_ == Gaussian()


def test_a_noise_with_scores_keeps_them() -> None:
    X, Y, _ = _data()
    noise = _model().noise_
    again = AutoTobitRegressor(lower=LOWER, upper=UPPER, noise=noise, cv=2, random_state=0)
    assert grid_of(again.fit(X[:300], Y[:300]).noise_) == grid_of(noise)


def test_files_keep_scores(tmp_path: Path) -> None:
    X = _data()[0]
    loaded = round_trip(_model(), tmp_path)
    assert loaded.noise_ == _model().noise_
    assert_array_equal(loaded.predict_quantile(X, 0.3), _model().predict_quantile(X, 0.3))


def test_calibrated_intervals_are_scores_and_hold_their_promise() -> None:
    X, Y, _ = _data()
    model = AutoTobitRegressor(lower=LOWER, upper=UPPER, cv=2, random_state=0).fit(X[:200], Y[:200])
    model.calibrate_intervals(X[200:400], Y[200:400])
    low, high = model.predict_interval(X[400:], 0.8)
    assert_allclose(low[:, :2], low[:, :2].round(), atol=1e-9)
    assert_allclose(high[:, :2], high[:, :2].round(), atol=1e-9)
    inside = (low - 1e-9 <= Y[400:]) & (Y[400:] <= high + 1e-9)
    assert (inside.mean(axis=0) > 0.74).all()  # 200 rows: ± 0.06
    table = model.interval_calibration_.xs(0.8, level="coverage")
    assert (table["conformal"] >= 0.8).all()
