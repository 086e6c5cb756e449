from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import (
    FAMILIES,
    Gaussian,
    Logistic,
    Noise,
    StudentT,
    resolve_noise,
)
from tests.likelihood.families import ALL, SHIPPED, Gumbel, PlainGaussian, reach
from tests.likelihood.quadrature import outward

TAILS = ("upper_mean", "lower_mean", "upper_crps", "lower_crps")
Z = np.array([-8.0, -3.0, -1.0, -0.2, 0.0, 0.5, 2.0, 5.0, 12.0])


def integrand(noise: Noise, name: str) -> Callable[[FloatArray], FloatArray]:
    """What a tail function integrates over the distance t ≥ 0 from every z outward."""
    side, kind = name.split("_")

    def tail(t: FloatArray) -> FloatArray:
        z = Z[:, None]
        share = np.exp(noise.log_sf(z + t) if side == "upper" else noise.log_cdf(z - t))
        return share if kind == "mean" else share**2

    return tail


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize("name", TAILS)
def test_tail_functions_are_their_integrals(noise: Noise, name: str) -> None:
    expected = outward(integrand(noise, name), 1e24, bends=np.abs(Z))
    for z, integral in zip(Z.tolist(), expected.tolist(), strict=True):
        found = getattr(noise, name)(np.array(z)).item()
        assert found == pytest.approx(integral, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT(df=4.0)], ids=repr)
@pytest.mark.parametrize("name", TAILS)
def test_quadrature_gives_the_closed_forms(noise: Noise, name: str) -> None:
    closed = getattr(noise, name)(Z)
    np.testing.assert_allclose(getattr(Noise, name)(noise, Z), closed, rtol=1e-9)


def test_quadrature_gives_the_moments_of_a_skewed_family() -> None:
    assert Gumbel().mean() == pytest.approx(np.euler_gamma, rel=1e-12)
    assert Gumbel().variance() == pytest.approx(np.pi**2 / 6, rel=1e-12)
    assert PlainGaussian().mean() == pytest.approx(0.0, abs=1e-13)
    assert PlainGaussian().variance() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "reference"),
    [
        pytest.param(Gaussian(), stats.norm(), id="gaussian"),
        pytest.param(Logistic(), stats.logistic(), id="logistic"),
        pytest.param(StudentT(df=4.0), stats.t(4.0), id="t4"),
        pytest.param(StudentT(df=2.5), stats.t(2.5), id="t2.5"),
    ],
)
def test_moments_and_quantiles_are_those_of_scipy(noise: Noise, reference: Any) -> None:
    q = np.array([0.0, 1e-12, 0.1, 0.5, 0.77, 1.0])
    np.testing.assert_allclose(noise.ppf(q), reference.ppf(q), rtol=1e-9, atol=1e-12)
    assert noise.mean() == 0.0
    assert noise.variance() == pytest.approx(reference.var())


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_the_two_sides_add_up_to_one_and_quantiles_invert(noise: Noise) -> None:
    z = np.linspace(-2.5, 6.0, 50)
    np.testing.assert_allclose(np.exp(noise.log_cdf(z)) + np.exp(noise.log_sf(z)), 1.0, rtol=1e-13)
    np.testing.assert_allclose(noise.ppf(np.exp(noise.log_cdf(z))), z, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_the_score_is_the_slope_of_the_log_density(noise: Noise) -> None:
    z, step = np.linspace(*reach(noise), 42), 1e-4  # not at 0, where two pieces meet

    def slope(function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        return np.asarray((function(z + step) - function(z - step)) / (2.0 * step))

    np.testing.assert_allclose(-slope(noise.log_pdf), noise.score(z), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slope(noise.score), noise.score_slope(z), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_draws_follow_the_distribution_function(noise: Noise) -> None:
    draws = noise.sample(np.random.default_rng(7), (200, 500))
    assert draws.shape == (200, 500)
    uniform = np.exp(noise.log_cdf(draws.ravel()))
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3


def test_student_t_log_cdf_is_smooth_where_its_far_tail_begins() -> None:
    noise = StudentT(df=4.0)
    z = -np.array([0.99e7, 1.01e7, 1e9, 1e12])
    # F(−x) → c x^{−4}: log F + 4 log x is constant
    level = noise.log_cdf(z) + 4.0 * np.log(-z)
    np.testing.assert_allclose(level, level[0], rtol=1e-12)


@pytest.mark.parametrize("df", [2.0, 1.0, -3.0, np.nan])
def test_student_t_needs_a_variance(df: float) -> None:
    with pytest.raises(ValueError, match=f"df must exceed 2, .* got {df}"):
        StudentT(df=df)


@pytest.mark.parametrize(
    ("name", "kind"), [("gaussian", Gaussian), ("logistic", Logistic), ("student_t", StudentT)]
)
def test_families_are_found_by_name(name: str, kind: type) -> None:
    assert type(resolve_noise(name)) is kind
    assert resolve_noise(name).name == name


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_a_family_is_taken_as_it_is(noise: Noise) -> None:
    assert resolve_noise(noise) is noise


@pytest.mark.parametrize("noise", ["cauchy", "", None, 3, stats.norm()])
def test_anything_else_is_refused_with_the_names_there_are(noise: Any) -> None:
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'logistic', 'student_t"):
        resolve_noise(noise)


def test_families_show_their_parameters() -> None:
    assert [repr(noise) for noise in SHIPPED] == [
        "Gaussian()",
        "Logistic()",
        "StudentT(df=4)",
        "StudentT(df=2.5)",
        "TwoPiece(Gaussian(), skew=0.35)",
        "TwoPiece(Logistic(), skew=-0.7)",
        "TwoPiece(StudentT(df=2.5), skew=0.7)",
    ]


@pytest.mark.parametrize("noise", SHIPPED, ids=repr)
def test_a_shipped_family_is_listed_and_made_again_from_its_parameters(noise: Noise) -> None:
    """What model files rely on: constructor arguments are attributes of the same name."""
    assert type(noise) in FAMILIES.values()
    parameters = {name: getattr(noise, name) for name in signature(type(noise)).parameters}
    assert type(noise)(**parameters) == noise
