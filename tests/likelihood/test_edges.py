"""Places where a formula that is right on paper fails in floating point."""

import numpy as np
import pytest

from deeptobit.likelihood import Gaussian, Noise, Predictive, StudentT, evaluate, resolve_noise
from tests.likelihood.families import ALL, SHIPPED


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_an_unbounded_outcome_is_uncensored_for_certain(noise: Noise) -> None:
    predictive = Predictive(noise, np.array([[1.0]]), np.array([2.0]))
    assert predictive.uncensored() == 1.0
    assert predictive.at_lower() == 0.0
    assert predictive.at_upper() == 0.0


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
@pytest.mark.parametrize("latent", [0.0, 1e3, 1e8])
def test_the_narrowest_interval_is_an_observation_times_its_width(
    noise: Noise, latent: float
) -> None:
    low, eta, sigma = np.array([[0.1]]), np.array([[latent]]), np.array([1.0])
    high = low + 1e-9
    width = float((high - low)[0, 0])
    interval = evaluate(noise, low, high, eta, sigma)
    exact = evaluate(noise, low, low, eta, sigma)
    np.testing.assert_allclose(interval.nll, exact.nll - np.log(width), rtol=1e-6)
    np.testing.assert_allclose(interval.latent, exact.latent, rtol=1e-6)
    np.testing.assert_allclose(interval.log_sigma, exact.log_sigma, rtol=1e-6)


def test_narrow_and_wide_intervals_meet_without_a_step() -> None:
    widths = np.geomspace(1e-6, 1e-4, 41)[:, None]
    low = np.full_like(widths, 0.3)
    at = evaluate(Gaussian(), low, low + widths, np.zeros_like(widths), np.ones(1))
    np.testing.assert_allclose(at.nll + np.log(widths), 0.5 * 0.3**2 + 0.918938533, atol=2e-5)
    np.testing.assert_allclose(at.latent_latent, 1.0, atol=1e-8)


@pytest.mark.parametrize("latent", [-7.0, -12.0, -30.0])
def test_the_mean_keeps_its_digits_far_below_the_bound(latent: float) -> None:
    eta = np.array([[latent]])
    predictive = Predictive(Gaussian(), eta, np.array([1.0]), 0.0)
    np.testing.assert_allclose(predictive.mean(), Gaussian().upper_mean(-eta), rtol=1e-12)


def test_a_missing_outcome_has_no_score() -> None:
    predictive = Predictive(StudentT(), np.zeros((1, 1)), np.ones(1), 0.0)
    missing = np.array([[np.nan]])
    assert np.isnan(predictive.cdf(missing)).all()
    assert np.isnan(predictive.crps(missing)).all()


def test_a_family_is_given_as_an_object_not_as_a_class() -> None:
    with pytest.raises(ValueError, match="noise must be one of"):
        resolve_noise(Gaussian)  # type: ignore[arg-type]
