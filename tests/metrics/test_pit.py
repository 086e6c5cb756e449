from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from deeptobit.metrics import pit
from deeptobit.targets import CensoredTargets

LAWS = [("gaussian", stats.norm()), ("logistic", stats.logistic()), ("student_t", stats.t(4))]


def distance_from_uniform(values: NDArray[np.float64]) -> float:
    """Kolmogorov's distance times √n; above 1.63 once in a hundred times."""
    return float(stats.kstest(values, "uniform").statistic * np.sqrt(values.size))


@pytest.mark.parametrize(("noise", "law"), LAWS)
@pytest.mark.parametrize("step", [None, 1.0, 5.0])
def test_pit_is_uniform_under_the_true_model(noise: str, law: Any, step: float | None) -> None:
    rng = np.random.default_rng(11)
    latent = rng.normal(24.0, 8.0, (4000, 2))
    sigma = np.array([2.0, 4.0])
    Y = np.clip(latent + sigma * law.rvs(size=latent.shape, random_state=rng), 0, [30, 40])
    if step is not None:
        Y = step * np.round(Y / step)
    assert (Y == [30, 40]).mean() > 0.1
    options: Any = {"lower": 0, "upper": [30, 40], "noise": noise, "random_state": 5}
    for column in pit(Y, latent, sigma, step=step, **options).T:
        assert distance_from_uniform(column) < 1.63
    if step == 5.0:  # forgetting that scores are rounded shows
        assert distance_from_uniform(pit(Y, latent, sigma, **options)[:, 0]) > 1.63


def test_pit_shows_a_wrong_scale_and_a_bias() -> None:
    rng = np.random.default_rng(2)
    latent = rng.normal(5.0, 3.0, 3000)
    Y = np.maximum(latent + rng.normal(size=3000), 0.0)
    for eta, sigma in [(latent, 0.7), (latent, 1.4), (latent + 0.3, 1.0)]:
        assert distance_from_uniform(pit(Y, eta, sigma, lower=0, random_state=0)) > 3.0


def test_limits_that_are_known_only_where_they_cut_leave_pit_uniform() -> None:
    rng = np.random.default_rng(4)
    latent = rng.normal(1.0, 2.0, 4000)
    limit = rng.uniform(-1.0, 2.0, 4000)
    uncut = latent + rng.normal(size=4000)
    cut = uncut <= limit
    low, high = np.where(cut, -np.inf, uncut), np.where(cut, limit, uncut)
    values = pit(CensoredTargets.from_intervals(low, high), latent, 1.0, random_state=1)
    assert distance_from_uniform(values) < 1.63
    unrounded = pit(CensoredTargets.from_intervals(low, high), latent, 1.0, random_state=1, step=9)
    np.testing.assert_array_equal(unrounded[cut], values[cut])


def test_the_ends_are_those_of_the_censored_distribution() -> None:
    Y = np.array([[0.0, 12.0], [30.0, 15.0], [np.nan, 3.0]])
    latent = np.array([[1.0, 11.0], [27.0, 17.0], [9.0, 2.0]])
    cdf = stats.norm(latent, 2.0).cdf
    draws = np.random.default_rng(7).uniform(size=Y.shape)
    options: Any = {"lower": 0, "upper": [30, np.inf], "random_state": 7}
    start = np.where(Y == 0, 0.0, cdf(Y))
    end = np.where(Y == 30, 1.0, cdf(Y))
    expected = start + draws * (end - start)
    np.testing.assert_allclose(pit(Y, latent, 2.0, **options), expected, rtol=1e-12)
    assert np.isnan(expected[2, 0])
    assert np.isnan(expected).sum() == 1
    half = np.array([0.5, 1.5])
    start = np.where(Y == 0, 0.0, cdf(Y - half))
    end = np.where(Y == 30, 1.0, cdf(Y + half))
    got = pit(Y, latent, 2.0, step=[1, 3], **options)
    np.testing.assert_allclose(got, start + draws * (end - start), rtol=1e-12)


def test_a_step_of_zero_is_no_rounding() -> None:
    Y, latent = np.array([0.0, 1.3, 4.0]), np.array([1.0, 1.0, 3.0])
    plain = pit(Y, latent, 1.0, lower=0, random_state=0)
    np.testing.assert_array_equal(pit(Y, latent, 1.0, lower=0, random_state=0, step=0), plain)


def test_a_scale_of_two_scores_shares_all_the_mass() -> None:
    values = pit([0.0, 1.0], [0.3, 0.3], 1.0, lower=0, upper=1, step=1, random_state=3)
    cut = stats.norm.cdf(0.2)
    assert values[0] < cut < values[1]


def test_missing_and_interval_entries_are_nan_and_do_not_move_the_others() -> None:
    Y = np.array([[0.0, 1.0], [2.0, 0.0]])
    whole = pit(Y, Y + 0.5, 1.0, lower=0, random_state=0)
    holed = pit(np.where([[1, 0], [0, 0]], np.nan, Y), Y + 0.5, 1.0, lower=0, random_state=0)
    np.testing.assert_array_equal(holed.ravel()[1:], whole.ravel()[1:])
    assert np.isnan(holed[0, 0])
    targets = CensoredTargets.from_intervals([1.0, 1.0], [1.0, 2.0])
    np.testing.assert_array_equal(np.isnan(pit(targets, [1.0, 1.0], 1.0)), [False, True])


def test_shape_and_source_of_randomness() -> None:
    Y = np.zeros(5)
    seeded = pit(Y, Y, 1.0, lower=0, random_state=0)
    assert seeded.shape == (5,)
    assert pit(Y[:, None], Y, 1.0, lower=0).shape == (5, 1)
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(pit(Y, Y, 1.0, lower=0, random_state=generator), seeded)
    assert (pit(Y, Y, 1.0, lower=0, random_state=generator) != seeded).all()
    state = np.random.RandomState(0)
    expected = 0.5 * np.random.RandomState(0).uniform(size=5)
    np.testing.assert_allclose(pit(Y, Y, 1.0, lower=0, random_state=state), expected)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ([1, 1, 1], r"one per target or one per entry of Y.*; got shape \(3,\)"),
        (-1, "step must be finite and not negative; got -1 for target 'y0'"),
        ([1, np.nan], "finite and not negative; got nan for target 'y1'"),
    ],
)
def test_bad_steps_are_refused(step: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pit(np.ones((3, 2)), np.ones((3, 2)), 1.0, step=step)


def test_a_limit_off_its_scale_is_refused() -> None:
    targets = CensoredTargets.from_intervals([12.0], [np.inf], upper=10)
    with pytest.raises(ValueError, match="the value 12 in row 0 lies outside"):
        pit(targets, [9.0], 1.0)
