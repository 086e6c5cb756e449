from collections.abc import Callable

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, evaluate
from tests.likelihood.entries import standard_entries
from tests.likelihood.families import ALL, LOG_CONCAVE

ETA, SIGMA = 0.7, 1.9


def slope(function: Callable[[float], FloatArray], step: float = 1e-3) -> FloatArray:
    """Derivative at 0 by central differences of fourth order."""
    near, far = function(step) - function(-step), function(2 * step) - function(-2 * step)
    return np.asarray((8.0 * near - far) / (12.0 * step))


def assert_close(found: FloatArray, expected: FloatArray) -> None:
    assert np.max(np.abs(found - expected) / (1.0 + np.abs(expected))) < 1e-8


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_derivatives_by_the_latent_are_finite_differences(noise: Noise) -> None:
    a, b = standard_entries(noise)
    low, high, sigma = ETA + SIGMA * a, ETA + SIGMA * b, np.full_like(a, SIGMA)

    def shifted(step: float) -> FloatArray:
        return np.array(evaluate(noise, low, high, np.full_like(a, ETA + SIGMA * step), sigma))

    at = evaluate(noise, low, high, np.full_like(a, ETA), sigma)
    by_latent = slope(shifted) / SIGMA
    assert_close(by_latent[0], at.latent)
    assert_close(by_latent[1], at.latent_latent)
    assert_close(by_latent[2], at.latent_log_sigma)


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_derivatives_by_log_sigma_are_finite_differences(noise: Noise) -> None:
    a, b = standard_entries(noise)
    low, high, latent = ETA + SIGMA * a, ETA + SIGMA * b, np.full_like(a, ETA)

    def stretched(step: float) -> FloatArray:
        sigma = np.full_like(a, SIGMA * np.exp(step))
        return np.array(evaluate(noise, low, high, latent, sigma))

    at = evaluate(noise, low, high, latent, np.full_like(a, SIGMA))
    by_log_sigma = slope(stretched)
    assert_close(by_log_sigma[0], at.log_sigma)
    assert_close(by_log_sigma[1], at.latent_log_sigma)
    assert_close(by_log_sigma[2], at.log_sigma_log_sigma)


@pytest.mark.parametrize("noise", LOG_CONCAVE, ids=repr)
def test_curvature_by_the_latent_is_not_negative_where_the_noise_is_log_concave(
    noise: Noise,
) -> None:
    low, high = standard_entries(noise)
    at = evaluate(noise, low, high, np.zeros_like(low), np.ones_like(low))
    assert at.latent_latent.min() > -1e-13
    assert (at.latent_latent[np.isneginf(low) | np.isposinf(high)] >= 0.0).all()


@pytest.mark.parametrize("noise", LOG_CONCAVE, ids=repr)
@pytest.mark.parametrize("theta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("u", [-20.0, 0.0, 3.0])
def test_olsens_coordinates_make_log_concave_noise_convex(
    noise: Noise, theta: float, u: float
) -> None:
    a, b = standard_entries(noise)
    scale = np.full_like(a, 1.0 / theta)
    at = evaluate(noise, (a + u) / theta, (b + u) / theta, np.full_like(a, u / theta), scale)
    # At a fixed regression line the latent stays, and log σ falls as log θ rises.
    u_u, u_tau = scale**2 * at.latent_latent, -scale * (at.latent + at.latent_log_sigma)
    tau_tau = at.log_sigma + at.log_sigma_log_sigma
    hessians = np.stack([u_u, u_tau, u_tau, tau_tau], axis=-1)
    least, largest = np.linalg.eigvalsh(hessians.reshape(-1, 2, 2)).T
    assert (least > -1e-11 * (1.0 + largest)).all()


def test_student_t_is_not_log_concave_in_its_tails() -> None:
    outlier, sigma = np.array([[10.0]]), np.ones(1)
    at = evaluate(ALL[2], outlier, outlier, np.zeros((1, 1)), sigma)
    assert repr(ALL[2]) == "StudentT(df=4)"
    assert at.latent_latent.item() == pytest.approx(5 * (4 - 100) / 104**2)
