from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from benchmarks.race.censored import Censored
from benchmarks.race.error_models import ERROR_MODELS, clipped_gaussian, tobit_step
from benchmarks.race.forecast import Forecast
from benchmarks.race.measures import (
    between_tails,
    bound_error,
    distance_from_uniform,
    measure,
    transform,
)
from benchmarks.race.problem import Problem
from benchmarks.race.trial import draw_trials
from benchmarks.race.whole import Whole
from deeptobit import likelihood
from deeptobit.likelihood import ScoreGrid
from deeptobit.metrics import bound_calibration, pit
from tests.benchmarks.race.toys import small_data


def test_transform_is_that_of_the_library() -> None:
    y = np.array([[0.0, 1.0], [3.0, 0.5], [10.0, 0.0]])
    score, sigma, upper = np.full(y.shape, 2.0), np.array([2.0, 1.0]), np.array([10.0, np.inf])
    predictive = Censored(norm(score, sigma), np.zeros(2), upper)
    step = np.array([1.0, 0.0])
    expected = pit(y, score, sigma, lower=0.0, upper=upper, step=step, random_state=3)
    assert_allclose(transform(predictive, y, step, seed=3), expected)


def test_distance_of_uniform_values_is_small() -> None:
    values = np.random.default_rng(0).uniform(size=(2, 5000))
    assert distance_from_uniform(list(values)) < 0.02
    assert distance_from_uniform([values[0] ** 2]) == pytest.approx(0.25, abs=0.02)


def test_bound_error_pools_the_sides_that_have_a_bound() -> None:
    y = np.array([[0.0], [2.0], [np.nan]])
    predictive = Censored(norm([[0.0], [2.0], [0.0]], 1.0), np.zeros(1), np.full(1, np.inf))
    expected = bound_calibration([1.0, 0.0], [0.5, norm.cdf(-2.0)]).expected_error
    assert bound_error(predictive, y) == pytest.approx(expected)
    assert np.isnan(bound_error(Censored(norm(y, 1.0), -np.full(1, np.inf), np.full(1, np.inf)), y))


def test_measures_of_a_true_forecast() -> None:
    trial = next(iter(draw_trials(small_data(), 1)))
    constant = np.zeros(trial.Y.shape)  # in standard units, the mean of the training rows
    found = measure(Forecast(constant, norm(constant, 1.0)), trial)
    assert np.all(found["centred_anmse"] >= 1.0)
    assert_allclose(found["r2"], 1.0 - found["centred_anmse"])
    assert [len(values) for values in found["pit"]] == found["entries"].tolist()
    assert np.all((found["coverage"] >= 0.7) & (found["width"] <= 2 * 1.645))


def test_intervals_of_scores_are_those_of_the_library() -> None:
    rng = np.random.default_rng(0)
    score = 3.0 * rng.normal(size=(500, 2))
    bounds = np.array([-4.0, -np.inf]), np.array([4.0, np.inf])
    grid = ScoreGrid(np.array([2.0, 0.0]), np.zeros(2))
    noise = likelihood.NoiseByTask([likelihood.Gaussian()] * 2, grid=grid)
    expected = likelihood.Predictive(noise, score, np.ones(2), *bounds).interval(0.9)
    found = Whole(norm(score, 1.0), *bounds, grid.step, grid.origin).interval(0.9)
    assert_allclose(found, expected, atol=1e-7)


def test_an_outcome_at_a_bound_counts_with_what_lies_between_the_tails() -> None:
    y = np.array([[0.0], [0.0], [0.0], [2.0]])
    predictive = Censored(norm([[0.0], [5.0], [-5.0], [0.0]], 1.0), np.zeros(1), np.full(1, np.inf))
    assert_allclose(between_tails(predictive, y).ravel(), [0.9, 0.0, 0.9, 1.0], atol=1e-6)


def test_a_forecast_that_is_no_number_is_refused() -> None:
    trial = next(iter(draw_trials(small_data(), 1)))
    bad = np.full(trial.Y.shape, np.nan)
    with pytest.raises(ValueError, match="48 of 48 predictions are not finite"):
        measure(Forecast(bad, norm(0.0, np.ones(bad.shape))), trial)


def test_error_models_find_the_noise() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=(2000, 1))
    latent = 0.5 + 0.8 * score + 0.7 * rng.normal(size=score.shape)
    free = -np.full(1, np.inf)
    problem = Problem(score, latent, free, -free, [], 0)
    plain = clipped_gaussian(problem, score, score[:3]).latent
    assert plain is not None
    assert_allclose(plain.logpdf(score[:3])[0], norm.logpdf(0.0, scale=0.886), atol=0.05)
    censored = problem._replace(Y=np.maximum(latent, 0.0), lower=np.zeros(1))
    tobit = tobit_step(censored, score, score[:3]).latent
    assert tobit is not None
    assert_allclose(tobit.ppf(0.5), 0.5 + 0.8 * score[:3], atol=0.1)
    assert_allclose(tobit.ppf(norm.cdf(1.0)) - tobit.ppf(0.5), 0.7, atol=0.07)
    assert list(ERROR_MODELS) == ["clipped Gaussian", "Tobit step"]
