from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm, norm

from benchmarks.race.censored import Censored, mean
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Predictive

RNG = np.random.default_rng(0)
SCORE, SIGMA = 3.0 * RNG.normal(size=(40, 3)), np.exp(RNG.normal(size=(40, 3)))
BOUNDS = [(-1.0, 2.0), (0.0, np.inf), (-np.inf, np.inf)]


def outcomes(lower: float, upper: float) -> FloatArray:
    y = (SCORE + 2.0 * SIGMA * RNG.normal(size=SCORE.shape)).clip(lower, upper)
    y[0, 0] = np.clip(300.0, lower, upper)  # beyond anything that was expected
    return y


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_gaussian_is_that_of_the_library(lower: float, upper: float) -> None:
    y = outcomes(lower, upper)
    ours = Censored(norm(SCORE, SIGMA), np.full(3, lower), np.full(3, upper))
    theirs = Predictive(Gaussian(), SCORE, SIGMA, lower, upper)
    assert_allclose(ours.crps(y), theirs.crps(y), atol=1e-8)
    assert_allclose(ours.mean(), theirs.mean(), atol=1e-8)
    low, high = np.where(y <= lower, -np.inf, y), np.where(y >= upper, np.inf, y)
    assert_allclose(ours.log_score(y), -theirs.log_density(low, high), atol=1e-10)
    assert_allclose(ours.at_lower(), theirs.at_lower(), atol=1e-12)
    assert_allclose(ours.at_upper(), theirs.at_upper(), atol=1e-12)
    assert_allclose(ours.cdf(y), theirs.cdf(y), atol=1e-12)
    assert_allclose(ours.quantile(0.9), theirs.quantile(0.9), atol=1e-12)


def test_mean_of_a_skewed_distribution() -> None:
    latent = lognorm(s=np.full((1, 1), 1.0), scale=np.exp(0.5))
    assert_allclose(mean(latent, [0.0], [np.inf]), np.exp(1.0), rtol=1e-6)


def test_crps_of_a_skewed_distribution_is_that_of_draws() -> None:
    latent = lognorm(s=np.full((1, 1), 0.7), scale=2.0, loc=-1.0)
    draws = np.sort(latent.rvs(size=200_000, random_state=0).ravel().clip(0.0, 4.0))
    places = 2.0 * np.arange(1, draws.size + 1) - draws.size - 1.0
    spread = 2.0 * (places * draws).sum() / draws.size**2
    expected = np.abs(draws - 1.5).mean() - 0.5 * spread
    predictive = Censored(latent, np.array([0.0]), np.array([4.0]))
    assert_allclose(predictive.crps(np.array([[1.5]])), expected, rtol=5e-3)


def test_missing_outcomes_have_no_score() -> None:
    predictive = Censored(norm(0.0, np.ones((1, 2))), np.zeros(2), np.full(2, np.inf))
    y = np.array([[np.nan, 1.0]])
    assert np.isnan(predictive.crps(y)).tolist() == [[True, False]]
    assert np.isnan(predictive.log_score(y)).tolist() == [[True, False]]
