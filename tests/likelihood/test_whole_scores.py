"""Predictive distributions on whole scores are those of sums over all scores."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    Predictive,
    ScoreGrid,
    StudentT,
    TwoPiece,
    of_tasks,
    with_grid,
    with_one_spread,
)
from deeptobit.metrics import censored_log_score, crps, pit

LATENT = np.linspace(-1.9, 9.1, 23)[:, None]  # no quantile below ties with a score
FAMILIES = (Gaussian(), Logistic(), StudentT(4.0), TwoPiece(Gaussian(), 0.35))
BOUNDS = [(0.0, 6.0), (0.0, np.inf), (-np.inf, 6.0), (-np.inf, np.inf)]
MANY = 4000  # scores at an open side


def _grid(step: float, n_tasks: int = 1) -> ScoreGrid:
    return ScoreGrid(np.full(n_tasks, step), np.zeros(n_tasks))


def _predictive(noise: Noise, step: float, lower: float, upper: float) -> Predictive:
    return Predictive(with_grid(noise, _grid(step)), LATENT, np.ones(1), lower, upper)


class _AllScores(NamedTuple):
    """Every score, and its probability for every row, (K,) and (N, K)."""

    scores: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, noise: Noise, step: float, lower: float, upper: float) -> "_AllScores":
        """From the definition: what lies between scores is the nearer one's, and no bound's."""
        first = lower if np.isfinite(lower) else -MANY * step
        last = upper if np.isfinite(upper) else MANY * step
        scores = first + step * np.arange(round((last - first) / step) + 1)
        edges = scores[:-1] + 0.5 * step
        edges[0] = lower if np.isfinite(lower) else edges[0]
        edges[-1] = upper if np.isfinite(upper) else edges[-1]
        up_to = np.exp(noise.log_cdf(edges - LATENT))
        ends = np.zeros_like(LATENT), np.ones_like(LATENT)
        return cls(np.asarray(scores, np.float64), np.diff(np.hstack([ends[0], up_to, ends[1]])))

    def crps(self, y: float) -> FloatArray:
        expected = self.mass @ np.abs(self.scores - y)
        up_to = np.cumsum(self.mass, axis=1)[:, :-1]
        return np.asarray(expected - (np.diff(self.scores) * up_to * (1.0 - up_to)).sum(axis=1))


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("noise", FAMILIES)
@pytest.mark.parametrize("step", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.9])
def test_intervals_hold_scores_with_mid_p_values_between_the_tails(
    noise: Noise, step: float, lower: float, upper: float, coverage: float
) -> None:
    everything = _AllScores.of(noise, step, lower, upper)
    up_to, tail = np.cumsum(everything.mass, axis=1), 0.5 * (1.0 - coverage)
    middle = up_to - 0.5 * everything.mass
    expected = (tail <= middle) & (middle <= 1.0 - tail)
    expected[np.arange(len(LATENT)), np.argmax(up_to >= 0.5, axis=1)] = True  # the median
    low, high = _predictive(noise, step, lower, upper).interval(coverage)
    assert_array_equal((low <= everything.scores) & (everything.scores <= high), expected)


@pytest.mark.parametrize(("step", "most"), [(0.25, 0.903), (0.5, 0.908), (1.0, 0.925)])
def test_intervals_hold_little_more_than_their_coverage_on_average(
    step: float, most: float
) -> None:
    """Those between quantiles hold 0.922, 0.939 and 0.961."""
    latent = np.linspace(0.0, 3.0 * step, 600, endpoint=False)[:, None]
    predictive = Predictive(with_grid(Gaussian(), _grid(step)), latent, np.ones(1))
    low, high = predictive.interval(0.9)
    held = predictive.cdf(high)[1] - predictive.cdf(low)[0]
    assert 0.9 < held.mean() < most
    assert held.min() > 0.85


def test_intervals_hold_outcomes_that_are_rounded() -> None:
    """Where scores are no whole numbers, outcomes differ from them in the last digit."""
    y = np.arange(1.0, 10.0) / 0.7 - 3.1
    noise = with_grid(Gaussian(), ScoreGrid(np.array([1.0 / 0.7]), np.array([-3.1])))
    low, high = Predictive(noise, y[:, None], np.full(1, 0.2)).interval(0.9)[..., 0]
    assert ((low <= y - 1e-12) & (high >= y + 1e-12)).all()
    assert_allclose([low, high], [y, y], atol=1e-9)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("noise", FAMILIES)
@pytest.mark.parametrize("step", [0.25, 0.5, 1.0])
def test_sums_over_scores(noise: Noise, step: float, lower: float, upper: float) -> None:
    everything = _AllScores.of(noise, step, lower, upper)
    found = _predictive(noise, step, lower, upper)
    mean = everything.mass @ everything.scores
    close = partial(assert_allclose, rtol=0.0, atol=3e-3 * step**3)
    close(found.mean().ravel(), mean)
    for y in (0.0, 1.0, 3.0, 3.3, 5.0, 6.0):
        score = found.crps(np.full_like(LATENT, y)).ravel()
        close(score, everything.crps(y), atol=6e-3 * step**3)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("noise", FAMILIES)
def test_probabilities_are_exact(noise: Noise, lower: float, upper: float) -> None:
    everything, found = (
        _AllScores.of(noise, 0.5, lower, upper),
        _predictive(noise, 0.5, lower, upper),
    )
    up_to = np.cumsum(everything.mass, axis=1)
    for y in (0.0, 0.5, 1.2, 5.5, 6.0):
        below, at_or_below = found.cdf(np.full_like(LATENT, y))
        expected = everything.mass @ (everything.scores < y - 1e-9)
        assert_allclose(below.ravel(), expected, atol=1e-9)
        expected = everything.mass @ (everything.scores < y + 1e-9)
        assert_allclose(at_or_below.ravel(), expected, atol=1e-9)
    for y in (0.5, 2.0, 5.5):
        at = np.full_like(LATENT, y)
        place = np.flatnonzero(np.isclose(everything.scores, y))
        told = everything.mass[:, place] > 1e-9
        density = np.exp(found.log_density(at, at))
        assert_allclose(0.5 * density[told], everything.mass[:, place][told], rtol=1e-6)
    for q in (0.02, 0.3, 0.5, 0.97):
        first = everything.scores[(up_to >= q).argmax(axis=1)]
        assert_allclose(found.quantile(q).ravel(), first)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_bounds_are_as_likely_as_without_scores(lower: float, upper: float) -> None:
    whole, smooth = (_predictive(Gaussian(), step, lower, upper) for step in (1.0, 0.0))
    assert_array_equal(whole.at_lower(), smooth.at_lower())
    assert_array_equal(whole.at_upper(), smooth.at_upper())
    assert_array_equal(whole.uncensored(), smooth.uncensored())


def test_draws_are_scores_with_the_mean() -> None:
    found = _predictive(TwoPiece(Logistic(), -0.35), 1.0, 0.0, 9.0)
    draws = found.sample(np.random.default_rng(0), 40_000)
    assert set(np.unique(draws)) == set(range(10))
    assert_allclose(draws.mean(axis=-1), found.mean(), atol=0.05)
    assert_allclose((draws == 0.0).mean(axis=-1), found.at_lower(), atol=0.02)


@pytest.mark.parametrize("step", [0.5, 2.0])  # 2: wider than the formula is meant for
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("noise", FAMILIES)
def test_slopes_of_the_mean(noise: Noise, step: float, lower: float, upper: float) -> None:
    found = _predictive(noise, step, lower, upper)
    by_latent, by_sigma = found.mean_slopes()
    ends = (replace(found, latent=LATENT + sign * 1e-5).mean() for sign in (1.0, -1.0))
    assert_allclose(by_latent, np.subtract(*ends) / 2e-5, atol=1e-7)
    ends = (replace(found, sigma=np.ones(1) + sign * 1e-5).mean() for sign in (1.0, -1.0))
    assert_allclose(by_sigma, np.subtract(*ends) / 2e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-200, 0.1, 1e200])
def test_one_score_between_the_bounds(scale: float) -> None:
    """Whether bounds one step away on either side are the same number is left to rounding."""
    noise = with_grid(Gaussian(), ScoreGrid(np.array([scale]), np.array([scale])))
    sigma, (lower, upper) = np.array([2.0 * scale]), (scale, 3.0 * scale)
    found = Predictive(noise, scale * LATENT, sigma, lower, upper)
    assert (found.step > 0.0).all()
    mass = np.stack([found.at_lower(), found.uncensored(), found.at_upper()])
    mean = (mass * np.array([1.0, 2.0, 3.0])[:, None, None]).sum(axis=0)
    assert_allclose(found.mean() / scale, mean, rtol=1e-9)
    y = np.full_like(LATENT, 2.0 * scale)
    assert_allclose(found.crps(y) / scale, mass[0] ** 2 + mass[2] ** 2, atol=1e-9)


def test_quantiles_of_open_scales_reach_infinity() -> None:
    noise = NoiseByTask([Gaussian()] * 2, grid=ScoreGrid(np.array([1.0, 0.0]), np.zeros(2)))
    found = Predictive(noise, np.zeros((1, 2)), np.ones(2))
    assert_array_equal(found.quantile([0.0, 1.0])[:, 0], [[-np.inf] * 2, [np.inf] * 2])


def test_a_narrow_spread_leaves_a_mean_within_the_bounds() -> None:
    sigma = np.array([1e-6])
    found = Predictive(with_grid(Gaussian(), _grid(1.0)), LATENT, sigma, 0.0, 6.0)
    assert (np.abs(found.mean() - np.clip(LATENT, 0.0, 6.0)) <= 1.0).all()
    assert (found.crps(np.full_like(LATENT, 3.0)) >= 0.0).all()


def test_entries_whose_bounds_are_no_scores_are_continuous() -> None:
    noise = NoiseByTask([Gaussian()] * 3, grid=_grid(1.0, 3))
    latent, sigma = np.repeat(LATENT, 3, axis=1), np.ones(3)
    lower, upper = np.array([0.0, 0.5, 2.0]), np.array([6.0, 6.0, 3.0])  # on it, off it, no room
    found, smooth = (
        Predictive(family, latent, sigma, lower, upper) for family in (noise, Gaussian())
    )
    y = np.clip(np.round(latent), lower, upper)
    whole = [True, False, False]
    assert (found.step > 0.0).tolist() == whole
    same = np.isclose(found.mean(), smooth.mean(), atol=1e-12).all(axis=0)
    assert same.tolist() == [False, True, True]
    assert np.isclose(found.crps(y), smooth.crps(y)).all(axis=0).tolist() == [False, True, True]
    same = np.isclose(found.quantile(0.3), smooth.quantile(0.3)).all(axis=0)
    assert same.tolist() == [False, True, True]
    for mine, theirs in zip(found.cdf(y), smooth.cdf(y), strict=True):
        assert_allclose(mine[:, 1:], theirs[:, 1:])
    assert_allclose(found.log_density(y, y)[:, 1:], smooth.log_density(y, y)[:, 1:])


def test_missing_outcomes_have_no_score() -> None:
    found, y = _predictive(Gaussian(), 1.0, 0.0, 6.0), np.full_like(LATENT, 2.0)
    y[3] = np.nan
    assert np.flatnonzero(np.isnan(found.crps(y))).tolist() == [3]
    assert np.flatnonzero(np.isnan(found.cdf(y)[0])).tolist() == [3]
    assert np.isfinite(found.log_density(y, y)).all()


def test_measures_need_no_more_than_the_noise() -> None:
    noise = NoiseByTask(
        [Gaussian(), StudentT(4.0)], grid=ScoreGrid(np.array([1.0, 0.0]), np.zeros(2))
    )
    latent = np.hstack([LATENT, LATENT])
    y = np.clip(np.round(latent + 0.7), 0.0, 6.0)
    y[::5, 0] = np.nan
    found = Predictive(noise, latent, np.ones(2), 0.0, 6.0)
    known = ~np.isnan(y)
    options: dict[str, Any] = {"lower": 0.0, "upper": 6.0, "noise": noise}
    assert_allclose(crps(y, latent, 1.0, **options), np.nanmean(found.crps(y), axis=0).mean())
    low, high = np.where(y <= 0.0, -np.inf, y), np.where(y >= 6.0, np.inf, y)
    logs = np.where(known, found.log_density(low, high), np.nan)
    scores = censored_log_score(y, latent, 1.0, **options)
    assert_allclose(scores, -np.nanmean(logs, axis=0).mean())
    places = pit(y, latent, 1.0, random_state=0, **options)
    below, up_to = found.cdf(y)
    assert ((below <= places) & (places <= up_to))[known].all()


def test_noises_are_equal_if_their_scores_are() -> None:
    grid = ScoreGrid(np.array([1.0, 0.0]), np.array([0.5, 0.0]))
    noise = with_grid(NoiseByTask([Gaussian(), Logistic()]), grid)
    assert noise == NoiseByTask([Gaussian(), Logistic()], grid=grid)
    assert noise != NoiseByTask([Gaussian(), Logistic()])
    assert with_one_spread(noise) is noise
    assert of_tasks(noise, [1, 0]) == NoiseByTask(
        [Logistic(), Gaussian()], grid=ScoreGrid(np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    )
    assert "step=[1.0, 0.0]" in repr(noise)


def test_a_grid_without_steps_is_none() -> None:
    assert with_grid(Gaussian(), _grid(0.0)) == Gaussian()
    assert with_grid(Gaussian(), None) == Gaussian()


@pytest.mark.parametrize(
    ("step", "origin", "words"),
    [
        ([-1.0], [0.0], "step of a ScoreGrid must not be negative"),
        ([1.0], [np.inf], "step, origin of a ScoreGrid must be finite"),
        ([1.0], [0.0, 1.0], "step, origin of a ScoreGrid must be arrays with one number per"),
    ],
)
def test_what_is_no_grid_is_refused(step: list[float], origin: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ScoreGrid(np.array(step), np.array(origin))


def test_the_grid_of_other_tasks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"grid is that of 2 task\(s\), but there are 1 families"):
        NoiseByTask([Gaussian()], grid=_grid(1.0, 2))
