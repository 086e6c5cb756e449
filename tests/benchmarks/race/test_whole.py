"""Forecasts of whole scores are judged by sums over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from benchmarks.race.forecast import Forecast
from benchmarks.race.measures import distribution, transform
from benchmarks.race.whole import Whole
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, NoiseByTask, Predictive, ScoreGrid

RNG = np.random.default_rng(0)
SCORE, SIGMA = 3.0 + 3.0 * RNG.normal(size=(40, 3)), np.exp(0.3 * RNG.normal(size=(40, 3)))
GRID = ScoreGrid(np.array([0.5, 0.25, 0.0]), np.array([1.0, -1.0, 0.0]))
BOUNDS = [(-1.0, 6.0), (0.0, np.inf), (-np.inf, 6.0), (-np.inf, np.inf)]


def _outcomes(lower: float, upper: float) -> FloatArray:
    y = SCORE + 2.0 * SIGMA * RNG.normal(size=SCORE.shape)
    step = np.where(GRID.step > 0.0, GRID.step, 1.0)
    y = np.where(GRID.step > 0.0, step * np.round(y / step), y).clip(lower, upper)
    y[3, 1] = np.nan
    return y


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_gaussian_is_that_of_the_library(lower: float, upper: float) -> None:
    y = _outcomes(lower, upper)
    bounds = np.full(3, lower), np.full(3, upper)
    ours = distribution(Forecast(SCORE, norm(SCORE, SIGMA), GRID), *bounds)
    assert isinstance(ours, Whole)
    noise = NoiseByTask([Gaussian()] * 3, grid=GRID)
    theirs = Predictive(noise, SCORE, SIGMA, *bounds)
    assert_allclose(ours.crps(y), theirs.crps(y), atol=2e-3)
    low, high = np.where(y <= lower, -np.inf, y), np.where(y >= upper, np.inf, y)
    known = ~np.isnan(y)
    assert_allclose(ours.log_score(y)[known], -theirs.log_density(low, high)[known], atol=1e-6)
    assert_allclose(ours.cdf(y), theirs.cdf(y), atol=1e-12)
    assert_allclose(ours.quantile(0.9), theirs.quantile(0.9), atol=1e-12)
    assert np.isnan(ours.crps(y)[3, 1])
    assert np.isnan(ours.log_score(y)[3, 1])


def test_the_transform_of_whole_scores_is_uniform() -> None:
    score, sigma = RNG.normal(3.0, 2.0, size=(4000, 1)), np.ones((4000, 1))
    noise = NoiseByTask([Gaussian()], grid=ScoreGrid(np.ones(1), np.zeros(1)))
    draws = Predictive(noise, score, sigma, 0.0, 6.0).sample(np.random.default_rng(1), 1)[..., 0]
    forecast = Forecast(score, norm(score, sigma), noise.grid)
    predictive = distribution(forecast, np.zeros(1), np.full(1, 6.0))
    places = np.sort(transform(predictive, draws, np.ones(1), 0).ravel())
    assert np.abs(places - np.linspace(0.0, 1.0, places.size)).max() < 0.03
