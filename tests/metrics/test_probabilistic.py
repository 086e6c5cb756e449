from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from deeptobit.likelihood import StudentT
from deeptobit.metrics import censored_log_score, crps
from deeptobit.targets import CensoredTargets

FAMILIES = [
    ("gaussian", stats.norm()),
    ("logistic", stats.logistic()),
    ("student_t", stats.t(4)),
    (StudentT(df=2.5), stats.t(2.5)),
]


def crps_by_integration(
    y: float, eta: float, sigma: float, lower: float, upper: float, law: Any
) -> float:
    def square(x: float) -> float:
        distribution = 1.0 if x >= upper else 0.0 if x < lower else law.cdf((x - eta) / sigma)
        return float((distribution - (x >= y)) ** 2)

    total = 0.0
    ends = sorted({lower, *np.clip([eta - 9, eta, y, eta + 9], lower, upper), upper})
    for start, end in pairwise(ends):
        total += quad(square, start, end, epsabs=1e-11, epsrel=1e-11, limit=400)[0]
    return total


@pytest.mark.parametrize(("noise", "law"), FAMILIES)
@pytest.mark.parametrize(
    ("lower", "upper"), [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 3.0), (0.0, 3.0)]
)
def test_crps_is_the_integral_over_the_censored_distribution(
    noise: Any, law: Any, lower: float, upper: float
) -> None:
    for y in {0.0, 0.7, 2.0, 3.0}:
        for eta, sigma in [(1.0, 1.5), (-6.0, 1.0), (8.0, 0.9)]:
            got = crps([y], [eta], sigma, lower=lower, upper=upper, noise=noise)
            expected = crps_by_integration(y, eta, sigma, lower, upper, law)
            assert got == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_uncensored_gaussian_crps_is_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    Y, latent, sigma = rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), np.array([0.5, 2.0])
    z = (Y - latent) / sigma
    standard = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    got = crps(Y, latent, sigma, multioutput="raw_values")
    np.testing.assert_allclose(got, (sigma * standard).mean(axis=0), rtol=1e-12)


def test_crps_without_spread_is_the_absolute_error_of_the_clipped_latent() -> None:
    Y, latent = np.array([0.0, 2.0, 10.0, 7.0]), np.array([3.0, 2.5, 14.0, -4.0])
    expected = np.abs(Y - latent.clip(0, 10)).mean()
    assert crps(Y, latent, 1e-9, lower=0, upper=10) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
def test_crps_has_the_units_of_y(noise: str) -> None:
    Y, latent = np.array([0.0, 2.0, 10.0, 7.0]), np.array([3.0, 2.5, 14.0, -4.0])
    points = crps(Y, latent, 2.0, lower=0, upper=10, noise=noise)
    percent = crps(10 * Y, 10 * latent, 20.0, lower=0, upper=100, noise=noise)
    assert percent == pytest.approx(10 * points, rel=1e-13)


@pytest.mark.parametrize(("noise", "law"), FAMILIES)
def test_log_score_is_a_density_inside_and_a_mass_at_the_bounds(noise: Any, law: Any) -> None:
    Y = np.array([[0.0, 1.0], [10.0, 4.0], [3.0, np.nan]])
    latent = np.array([[1.0, 1.5], [8.0, 9.0], [-2.0, 5.0]])
    sigma = np.array([2.0, 0.5])
    z = (Y - latent) / sigma
    first = law.logcdf(z[0, 0]) + law.logsf(z[1, 0]) + law.logpdf(z[2, 0]) - np.log(2.0)
    second = law.logpdf(z[:2, 1]) - np.log(0.5)
    expected = [-first / 3, -second.mean()]
    options: Any = {"lower": 0, "upper": [10, None], "noise": noise}
    got = censored_log_score(Y, latent, sigma, multioutput="raw_values", **options)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize(("noise", "law"), FAMILIES)
def test_intervals_count_in_the_log_score_and_not_in_crps(noise: Any, law: Any) -> None:
    low, high = np.array([1.0, 2.0, -np.inf, np.nan]), np.array([3.0, 2.0, 0.5, np.nan])
    targets = CensoredTargets.from_intervals(low, high)
    latent, sigma = np.array([1.5, 1.0, 1.0, 99.0]), 2.0
    a, b = (low - latent) / sigma, (high - latent) / sigma
    interval = np.log(law.cdf(b[0]) - law.cdf(a[0]))
    expected = -(interval + law.logpdf(a[1]) - np.log(sigma) + law.logcdf(b[2])) / 3
    got = censored_log_score(targets, latent, sigma, noise=noise)
    assert got == pytest.approx(expected, rel=1e-10)
    observed = crps([2.0], [1.0], sigma, noise=noise)
    censored = crps([0.5], [1.0], sigma, lower=0.5, noise=noise)
    expected = 0.5 * (observed + censored)
    assert crps(targets, latent, sigma, noise=noise) == pytest.approx(expected, rel=1e-12)


def test_badly_predicted_censored_entries_have_a_finite_score() -> None:
    score = censored_log_score([0.0], [40.0], 1.0, lower=0)
    assert score == pytest.approx(-stats.norm.logcdf(-40.0), rel=1e-12)
    far = censored_log_score([0.0, 30.0], [1e6, -1e6], 1e-3, lower=0, upper=30)
    assert np.isfinite(far)


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
def test_the_truth_scores_best(noise: str) -> None:
    rng = np.random.default_rng(1)
    latent = rng.normal(5.0, 4.0, 20000)
    draw = {
        "gaussian": rng.normal(size=20000),
        "logistic": rng.logistic(size=20000),
        "student_t": rng.standard_t(4, size=20000),
    }[noise]
    options: Any = {"lower": 0, "upper": 10, "noise": noise}
    Y = np.clip(latent + 2.0 * draw, 0, 10)
    for measure in (censored_log_score, crps):
        best = measure(Y, latent, 2.0, **options)
        for wrong_latent, wrong_sigma in [(latent, 1.2), (latent, 3.2), (latent + 0.8, 2.0)]:
            assert measure(Y, wrong_latent, wrong_sigma, **options) > best


def test_a_limit_off_its_scale_is_refused_where_it_would_have_no_mass() -> None:
    targets = CensoredTargets.from_intervals([[1.0], [-np.inf]], [[1.0], [-3.0]], lower=0)
    with pytest.raises(ValueError, match="target 'y': the value -3 in row 1 lies outside"):
        crps(targets, [[1.0], [1.0]], 1.0)
