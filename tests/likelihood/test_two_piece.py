import numpy as np
import pytest
from scipy import stats

from deeptobit.likelihood import Gaussian, Logistic, StudentT, SymmetricNoise, TwoPiece
from tests.likelihood.families import Gumbel

Z = np.linspace(-6.0, 9.0, 31)


@pytest.mark.parametrize("base", [Gaussian(), Logistic(), StudentT(3)], ids=repr)
def test_without_skew_it_is_the_symmetric_family(base: SymmetricNoise) -> None:
    noise = TwoPiece(base, 0.0)
    for name in ("log_pdf", "log_cdf", "log_sf", "score", "score_slope", "upper_mean"):
        expected = getattr(base, name)(Z)
        np.testing.assert_allclose(getattr(noise, name)(Z), expected, rtol=1e-12, atol=1e-15)
    assert noise.variance() == pytest.approx(base.variance(), rel=1e-12)


def test_the_halves_are_halves_of_a_gaussian() -> None:
    noise, wide = TwoPiece(Gaussian(), skew=0.5), np.exp(0.5)
    share = wide**2 / (1.0 + wide**2)
    above = np.array([0.0, 1.0, 4.0])
    expected = np.log(2.0 * share * stats.norm.sf(above / wide))
    np.testing.assert_allclose(noise.log_sf(above), expected, rtol=1e-12)
    assert float(np.exp(noise.log_cdf(np.zeros(1)))[0]) == pytest.approx(1.0 - share)


def test_a_positive_skew_draws_out_the_upper_tail() -> None:
    draws = TwoPiece(Gaussian(), skew=0.4).sample(np.random.default_rng(0), (200_000,))
    assert stats.skew(draws) > 0.4
    mirrored = TwoPiece(Gaussian(), skew=0.4).mirrored()
    assert mirrored.mean() == pytest.approx(-float(draws.mean()), abs=0.02)


def test_bad_parts_are_refused() -> None:
    with pytest.raises(TypeError, match="base must be a symmetric family such as"):
        TwoPiece(Gumbel(), 0.3)  # type: ignore[arg-type]
    for skew in (np.nan, 1e3):
        with pytest.raises(ValueError, match=f"skew must lie between -5 and 5; got {skew}"):
            TwoPiece(Gaussian(), skew)
