import numpy as np
import pytest

from deeptobit.likelihood import Gaussian, Logistic, Noise, Predictive
from tests.likelihood.families import SHIPPED, PlainGaussian

FAMILIES = pytest.mark.parametrize("noise", [*SHIPPED, PlainGaussian()], ids=repr)
UPPER = pytest.mark.parametrize("upper", [30.0, np.inf])
FAR = np.array([[-2e6]])
SIGMA = np.array([2.0])


@FAMILIES
@UPPER
def test_far_below_the_lower_bound_all_is_at_the_lower_bound(noise: Noise, upper: float) -> None:
    y = Predictive(noise, FAR, SIGMA, 0.0, upper)
    assert y.mean().item() == pytest.approx(0.0, abs=1e-8)
    assert y.mean().item() >= 0.0
    assert y.at_lower().item() == pytest.approx(1.0, abs=1e-12)
    assert y.quantile(0.99).item() == 0.0
    assert 0.0 <= y.crps(np.zeros((1, 1))).item() < 1e-8
    assert y.crps(np.full((1, 1), 30.0)).item() == pytest.approx(30.0, rel=1e-8)


@FAMILIES
@UPPER
def test_far_above_the_upper_bound_all_is_at_the_upper_bound(noise: Noise, upper: float) -> None:
    y = Predictive(noise, -FAR, SIGMA, -upper, 0.0)
    assert y.mean().item() == pytest.approx(0.0, abs=1e-8)
    assert y.mean().item() <= 0.0
    assert y.at_upper().item() == pytest.approx(1.0, abs=1e-12)
    assert y.quantile(0.01).item() == 0.0
    assert 0.0 <= y.crps(np.zeros((1, 1))).item() < 1e-8


@pytest.mark.parametrize("noise", [Gaussian(), Logistic()], ids=repr)
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e8])
def test_thin_tails_leave_nothing_but_the_bound(noise: Noise, distance: float) -> None:
    latent = np.array([[5.0 - distance, 30.0 + distance]])
    y = Predictive(noise, latent, np.full(2, 0.1), 5.0, 30.0)
    np.testing.assert_allclose(y.mean(), [[5.0, 30.0]], rtol=0, atol=4e-16 * distance)


@FAMILIES
def test_the_mean_rises_with_the_score_on_the_way_out(noise: Noise) -> None:
    latent = np.concatenate([np.linspace(-60, 60, 241), np.geomspace(60, 1e6, 40)])[:, None]
    for lower, upper in ((0.0, 1.0), (0.0, np.inf), (-np.inf, 0.0)):
        y = Predictive(noise, latent, np.ones(1), lower, upper)
        mean = y.mean()
        assert ((mean >= lower) & (mean <= upper)).all()
        assert (np.diff(mean[:, 0]) >= -1e-9 * np.abs(mean[1:, 0])).all()


@pytest.mark.parametrize("noise", [Gaussian(), Logistic()], ids=repr)
def test_small_means_of_the_tail_keep_their_digits(noise: Noise) -> None:
    a = np.linspace(0.0, 12.0, 25)[:, None]
    y = Predictive(noise, -a, np.ones(1), 0.0)
    np.testing.assert_allclose(y.mean(), noise.upper_mean(a), rtol=1e-9, atol=1e-14)
