from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Noise, Predictive, evaluate
from tests.likelihood.families import ALL, SHIPPED

LATENT = np.array([[-4.0, 0.9], [-0.5, 1.7], [0.3, 6.0]])
SIGMA = np.array([1.2, 0.7])
Y = np.array([[-1.0, 1.0], [0.2, 2.0], [-0.9, 1.9]])
BOUNDS = [(-1.0, 2.0), (-1.0, np.inf), (-np.inf, 2.0), (-np.inf, np.inf)]
EVERY_BOUND = pytest.mark.parametrize(("lower", "upper"), BOUNDS)
EVERY_NOISE = pytest.mark.parametrize("noise", ALL, ids=repr)
DRAWS = 100_000


def integral(function: Callable[[float], float], cuts: list[float]) -> float:
    """Over [cuts[0], cuts[-1]], piece by piece."""
    return float(
        sum(
            quad(function, start, end, limit=400, epsabs=1e-13, epsrel=1e-11)[0]
            for start, end in pairwise(cuts)
        )
    )


def mean_by_quadrature(y: Predictive, row: int, task: int) -> float:
    """E[y]: the density between the bounds, and the masses at them."""
    a, b, eta, sigma = y.a[row, task], y.b[row, task], LATENT[row, task], SIGMA[task]

    def inside(z: float) -> float:
        return float((eta + sigma * z) * np.exp(y.noise.log_pdf(np.array(z))))

    total = integral(inside, [a, *(z for z in (-8.0, 0.0, 8.0) if a < z < b), b])
    if np.isfinite(a):
        total += float(y.lower) * float(np.exp(y.noise.log_cdf(a)))
    if np.isfinite(b):
        total += float(y.upper) * float(np.exp(y.noise.log_sf(b)))
    return total


def squared_distance_to_a_step(y: Predictive, row: int, task: int) -> float:
    """The integral of F² below the outcome and of (1 − F)² above it, between the bounds."""
    eta, sigma, at = float(LATENT[row, task]), float(SIGMA[task]), float(Y[row, task])
    lower, upper = float(y.lower), float(y.upper)

    def below(x: float) -> float:
        return float(np.exp(2.0 * y.noise.log_cdf(np.array((x - eta) / sigma))))

    def above(x: float) -> float:
        return float(np.exp(2.0 * y.noise.log_sf(np.array((x - eta) / sigma))))

    cuts = [x for x in (eta - 8.0, eta, eta + 8.0) if lower < x < upper]
    down = integral(below, [lower, *(x for x in cuts if x < at), at])
    return down + integral(above, [at, *(x for x in cuts if x > at), upper])


@EVERY_NOISE
@EVERY_BOUND
def test_the_mean_is_an_integral(noise: Noise, lower: float, upper: float) -> None:
    y = Predictive(noise, LATENT, SIGMA, lower, upper)
    mean = y.mean()
    for row, task in np.ndindex(*LATENT.shape):
        expected = mean_by_quadrature(y, row, task)
        assert mean[row, task] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@EVERY_NOISE
@EVERY_BOUND
def test_crps_is_the_integral_of_the_squared_distance_to_a_step(
    noise: Noise, lower: float, upper: float
) -> None:
    y = Predictive(noise, LATENT, SIGMA, lower, upper)
    found = y.crps(Y)
    for row, task in np.ndindex(*LATENT.shape):
        expected = squared_distance_to_a_step(y, row, task)
        assert found[row, task] == pytest.approx(expected, rel=1e-8, abs=1e-11)


@EVERY_NOISE
@pytest.mark.parametrize(("lower", "upper"), BOUNDS[:3])
def test_the_slopes_of_the_mean_are_finite_differences(
    noise: Noise, lower: float, upper: float
) -> None:
    y, step = Predictive(noise, LATENT, SIGMA, lower, upper), 1e-4

    def mean(by_latent: float, by_sigma: float) -> FloatArray:
        return Predictive(noise, LATENT + by_latent, SIGMA + by_sigma, lower, upper).mean()

    by_latent = (mean(step, 0.0) - mean(-step, 0.0)) / (2.0 * step)
    by_sigma = (mean(0.0, step) - mean(0.0, -step)) / (2.0 * step)
    np.testing.assert_allclose(y.uncensored(), by_latent, atol=1e-7)
    for found, wanted in zip(y.mean_slopes(), (by_latent, by_sigma), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-7)


@EVERY_NOISE
def test_moments_and_scores_are_those_of_draws(noise: Noise) -> None:
    y = Predictive(noise, LATENT, SIGMA, -1.0, 2.0)
    draws = y.sample(np.random.default_rng(3), DRAWS)
    assert draws.shape == (*LATENT.shape, DRAWS)
    assert draws.min() == -1.0
    assert draws.max() == 2.0

    def assert_mean_of(samples: FloatArray, expected: FloatArray) -> None:
        error = samples.std(axis=-1) / np.sqrt(DRAWS)
        assert (np.abs(samples.mean(axis=-1) - expected) <= 5.0 * error + 5.0 / DRAWS).all()

    assert_mean_of(draws, y.mean())
    assert_mean_of((draws == -1.0).astype(float), y.at_lower())
    assert_mean_of((draws == 2.0).astype(float), y.at_upper())
    assert_mean_of(((draws > -1.0) & (draws < 2.0)).astype(float), y.uncensored())
    below, at_or_below = y.cdf(Y)
    assert_mean_of((draws < Y[..., None]).astype(float), below)
    assert_mean_of((draws <= Y[..., None]).astype(float), at_or_below)
    distance = np.abs(draws - Y[..., None])
    assert_mean_of(distance - 0.5 * np.abs(draws - np.roll(draws, 1, axis=-1)), y.crps(Y))


@EVERY_NOISE
@EVERY_BOUND
def test_quantiles_invert_the_distribution_function(
    noise: Noise, lower: float, upper: float
) -> None:
    y = Predictive(noise, LATENT, SIGMA, lower, upper)
    levels = np.array([0.01, 0.3, 0.5, 0.77, 0.99])
    quantiles = y.quantile(levels)
    assert quantiles.shape == (5, *LATENT.shape)
    for level, quantile in zip(levels.tolist(), quantiles, strict=True):
        below, at_or_below = y.cdf(quantile)
        assert (below <= level + 1e-9).all()
        assert (at_or_below >= level - 1e-9).all()
        np.testing.assert_array_equal(y.quantile(level), quantile)


@EVERY_BOUND
def test_the_extreme_quantiles_are_the_ends_of_the_scale(lower: float, upper: float) -> None:
    y = Predictive(Gaussian(), LATENT, SIGMA, lower, upper)
    np.testing.assert_array_equal(y.quantile([0.0, 1.0])[0], np.full_like(LATENT, lower))
    np.testing.assert_array_equal(y.quantile([0.0, 1.0])[1], np.full_like(LATENT, upper))


@pytest.mark.parametrize("q", [-0.1, 1.5, np.nan, [0.5, 2.0]])
def test_quantiles_lie_between_0_and_1(q: float | list[float]) -> None:
    with pytest.raises(ValueError, match="quantiles must lie between 0 and 1; got"):
        Predictive(Gaussian(), LATENT, SIGMA).quantile(q)


@EVERY_NOISE
def test_log_density_is_the_likelihood_of_the_entry(noise: Noise) -> None:
    low = np.array([[-np.inf, 1.0], [0.2, 2.0], [np.nan, 0.5]])
    high = np.array([[-1.0, 1.0], [0.2, np.inf], [np.nan, 1.5]])
    y = Predictive(noise, LATENT, SIGMA, -1.0, 2.0)
    log_density = y.log_density(low, high)
    expected = -evaluate(noise, low, high, LATENT, SIGMA).nll
    np.testing.assert_allclose(log_density, expected, rtol=1e-13)
    assert np.exp(log_density[0, 0]) == pytest.approx(y.at_lower()[0, 0])
    assert np.exp(log_density[1, 1]) == pytest.approx(y.at_upper()[1, 1])
    assert log_density[2, 0] == 0.0


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
def test_the_distribution_function_jumps_at_the_bounds_by_their_masses(noise: Noise) -> None:
    y = Predictive(noise, LATENT, SIGMA, -1.0, 2.0)
    below, at_or_below = y.cdf(np.full_like(LATENT, -1.0))
    assert (below == 0.0).all()
    np.testing.assert_allclose(at_or_below, y.at_lower(), rtol=1e-14)
    below, at_or_below = y.cdf(np.full_like(LATENT, 2.0))
    np.testing.assert_allclose(1.0 - below, y.at_upper(), rtol=1e-12, atol=1e-15)
    assert (at_or_below == 1.0).all()


def test_a_missing_outcome_has_no_score() -> None:
    y = Predictive(Gaussian(), LATENT, SIGMA, -1.0, 2.0)
    missing = np.where(Y > 0, Y, np.nan)
    np.testing.assert_array_equal(np.isnan(y.crps(missing)), np.isnan(missing))
    for side in y.cdf(missing):
        np.testing.assert_array_equal(np.isnan(side), np.isnan(missing))


@EVERY_NOISE
def test_bounds_and_sigma_per_entry_are_those_of_each_entry_alone(noise: Noise) -> None:
    lower = np.array([[-1.0, -np.inf], [0.0, 0.5], [-np.inf, -2.0]])
    upper = np.array([[np.inf, 2.0], [1.0, np.inf], [0.5, 9.0]])
    sigma = np.array([[0.5, 1.0], [2.0, 0.7], [1.1, 3.0]])
    whole = Predictive(noise, LATENT, sigma, lower, upper)
    for row, task in np.ndindex(*LATENT.shape):
        at = (slice(row, row + 1), slice(task, task + 1))
        alone = Predictive(noise, LATENT[at], sigma[at], lower[at], upper[at])
        np.testing.assert_allclose(whole.mean()[at], alone.mean(), rtol=1e-12)
        np.testing.assert_allclose(whole.quantile(0.3)[at], alone.quantile(0.3), rtol=1e-14)


def test_half_of_a_normal_censored_at_its_centre() -> None:
    y = Predictive(Gaussian(), np.zeros((1, 1)), np.array([2.0]), 0.0)
    assert y.mean().item() == pytest.approx(2.0 / np.sqrt(2.0 * np.pi))
    assert y.at_lower().item() == 0.5
    assert y.at_upper().item() == 0.0
