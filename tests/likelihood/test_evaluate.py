from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, TwoPiece, evaluate
from deeptobit.likelihood.evaluate import _is_narrow
from tests.likelihood.entries import standard_entries
from tests.likelihood.families import ALL, SHIPPED, PlainGaussian
from tests.likelihood.quadrature import outward

SCIPY = [
    pytest.param(Gaussian(), stats.norm(), id="gaussian"),
    pytest.param(Logistic(), stats.logistic(), id="logistic"),
    pytest.param(StudentT(df=4.0), stats.t(4.0), id="t4"),
    pytest.param(StudentT(df=2.5), stats.t(2.5), id="t2.5"),
]
BOUNDS = [(-1.0, 2.0), (-180.0, 0.5), (0.5, 180.0), (-180.0, 180.0), (3.0, 40.0)]


@pytest.mark.parametrize(("noise", "reference"), SCIPY)
def test_nll_is_that_of_scipy(noise: Noise, reference: Any) -> None:
    z = np.linspace(-30.0, 30.0, 121)
    eta, sigma = 0.7, 1.9
    y, infinity, latent = eta + sigma * z, np.full_like(z, np.inf), np.full_like(z, eta)
    scale = np.full_like(z, sigma)
    observed = evaluate(noise, y, y, latent, scale).nll
    left = evaluate(noise, -infinity, y, latent, scale).nll
    right = evaluate(noise, y, infinity, latent, scale).nll
    np.testing.assert_allclose(observed, np.log(sigma) - reference.logpdf(z), rtol=1e-12)
    np.testing.assert_allclose(left, -reference.logcdf(z), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(right, -reference.logsf(z), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize(("noise", "reference"), SCIPY)
def test_interval_nll_is_that_of_scipy(noise: Noise, reference: Any) -> None:
    a, b = np.meshgrid(np.linspace(-4, 3, 15), [0.3, 1.0, 2.5, 5.0, 13.0])
    b = a + b
    nll = evaluate(noise, a, b, np.zeros_like(a), np.ones_like(a)).nll
    np.testing.assert_allclose(nll, -np.log(reference.cdf(b) - reference.cdf(a)), rtol=1e-11)


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_probability_integrates_to_one(noise: Noise, lower: float, upper: float) -> None:
    latent, sigma = 0.8, 0.6

    def likelihood(low: Any, high: Any) -> FloatArray:
        low, high = np.atleast_1d(low, high)
        shape = low.shape
        return np.exp(
            -evaluate(noise, low, high, np.full(shape, latent), np.full(shape, sigma)).nll
        )

    def density(z: FloatArray) -> FloatArray:
        return sigma * likelihood(latent + sigma * z, latent + sigma * z)

    centre = float(np.clip(latent, lower, upper))
    start, below, above = ((end - latent) / sigma for end in (centre, lower, upper))
    inside = 0.0
    if below < start:
        inside += float(outward(lambda t: density(start - t), start - below))
    if start < above:
        inside += float(outward(lambda t: density(start + t), above - start))
    outside = likelihood(-np.inf, lower) + likelihood(upper, np.inf)
    assert inside + outside == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
@settings(deadline=None, max_examples=60)
@given(
    z=st.floats(-30, 30),
    width=st.sampled_from([0.0, 1e-3, 1.0, 10.0, 50.0, np.inf]),
    latent=st.floats(-50, 50),
    sigma=st.floats(0.1, 10),
)
def test_left_of_y_is_right_of_minus_y(
    noise: Noise, z: float, width: float, latent: float, sigma: float
) -> None:
    low, eta, scale = np.array([latent + sigma * z]), np.array([latent]), np.array([sigma])
    here = np.array(evaluate(noise, low, low + width, eta, scale))[:, 0]
    mirrored = noise.mirrored() if isinstance(noise, TwoPiece) else noise
    there = np.array(evaluate(mirrored, -low - width, -low, -eta, scale))[:, 0]
    mirror = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    np.testing.assert_allclose(here, mirror * there, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
@pytest.mark.parametrize("width", [1e-1, 1e-2, 1e-3])
def test_a_narrow_interval_tends_to_the_density(noise: Noise, width: float) -> None:
    z = np.linspace(-30, 30, 41)
    latent, sigma = np.zeros_like(z), np.full_like(z, 2.0)
    y = latent + sigma * z
    mass = evaluate(noise, y - 0.5 * width, y + 0.5 * width, latent, sigma).nll
    density = evaluate(noise, y, y, latent, sigma).nll
    error = np.abs(mass + np.log(width) - density)
    assert (error < 0.05 * width**2 * (1.0 + z**2) + 1e-10).all()


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_sigma_per_entry_and_per_task_broadcast_alike(noise: Noise) -> None:
    low = np.array([[1.0, -np.inf], [2.0, 0.5], [np.nan, 1.0]])
    high = np.array([[1.0, 1.0], [np.inf, 1.5], [np.nan, 1.0]])
    latent, sigma = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), np.array([1.5, 2.5])
    by_task = np.array(evaluate(noise, low, high, latent, sigma))
    by_entry = np.array(evaluate(noise, low, high, latent, np.tile(sigma, (3, 1))))
    np.testing.assert_allclose(by_task, by_entry, rtol=1e-13)
    for task in range(2):
        alone = evaluate(noise, low[:, task], high[:, task], latent[:, task], sigma[task])
        np.testing.assert_allclose(by_task[:, :, task], np.array(alone), rtol=1e-13)


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_a_missing_entry_contributes_nothing(noise: Noise) -> None:
    missing = np.full((2, 1), np.nan)
    at = evaluate(noise, missing, missing, np.array([[0.0], [5.0]]), np.array([3.0]))
    assert (np.array(at) == 0.0).all()


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e8])
def test_everything_stays_finite_far_out(noise: Noise, far: float) -> None:
    z = np.array([-far, far])
    infinity = np.full(2, np.inf)
    for low, high in [(z, z), (-infinity, z), (z, infinity), (z, z + 1.0), (z, z + 3.0 * far)]:
        at = np.array(evaluate(noise, low, high, np.zeros(2), np.ones(2)))
        assert np.isfinite(at).all()


def test_a_badly_predicted_censored_entry_still_teaches() -> None:
    at = evaluate(
        Gaussian(), np.array([-np.inf]), np.array([0.0]), np.array([8.0]), np.array([1.0])
    )
    assert at.latent.item() == pytest.approx(8.121, abs=5e-4)


def test_plain_functions_give_the_same_likelihood_as_closed_forms() -> None:
    low, high = standard_entries(PlainGaussian())
    latent, sigma = np.zeros_like(low), np.ones_like(low)
    plain = np.array(evaluate(PlainGaussian(), low, high, latent, sigma))
    closed = np.array(evaluate(Gaussian(), low, high, latent, sigma))
    np.testing.assert_allclose(plain, closed, rtol=1e-10, atol=1e-11)


def test_a_wide_interval_far_away_is_not_narrow() -> None:
    far = np.full((1, 1), 1e200)
    assert not _is_narrow(np.zeros((1, 1)), far, -far, np.ones((1, 1))).any()
