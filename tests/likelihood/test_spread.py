"""Noise whose scale changes with the score: everywhere the same σ, whoever asks."""

from functools import partial

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    Predictive,
    Spread,
    StudentT,
    at_scores,
    evaluate,
    of_tasks,
    with_one_spread,
    with_spread,
)
from deeptobit.metrics import censored_log_score, crps, pit

FAMILIES: tuple[Noise, ...] = (Gaussian(), StudentT(4.0), Gaussian())
SPREAD = Spread(np.array([0.3, -0.2, 0.0]), np.array([1.0, 5.0, 0.0]), np.array([2.0, 1.0, 3.0]))
NOISE = NoiseByTask(FAMILIES, SPREAD)
SIGMA = np.array([1.0, 2.0, 3.0])


def _scores() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    latent = rng.normal(2.0, 3.0, size=(50, 3))
    return latent, np.maximum(latent + rng.normal(size=latent.shape), 0.0)


def test_the_scale_is_that_of_the_formula() -> None:
    latent, _ = _scores()
    u = (latent - SPREAD.centre) / SPREAD.width
    expected = SIGMA * np.exp(SPREAD.growth * u / np.sqrt(1.0 + u**2 / 9.0))
    noise, sigma = at_scores(NOISE, latent, SIGMA)
    np.testing.assert_allclose(sigma, expected, rtol=1e-14)
    assert noise == NoiseByTask(FAMILIES)
    assert with_one_spread(NOISE) == noise


def test_predictive_distributions_are_those_of_the_scales_of_their_entries() -> None:
    latent, y = _scores()
    found = Predictive(NOISE, latent, SIGMA, 0.0)
    wanted = Predictive(NoiseByTask(FAMILIES), latent, *at_scores(NOISE, latent, SIGMA)[1:], 0.0)
    for name in ("mean", "at_lower"):
        np.testing.assert_array_equal(getattr(found, name)(), getattr(wanted, name)())
    np.testing.assert_array_equal(found.crps(y), wanted.crps(y))
    np.testing.assert_array_equal(found.quantile(0.9), wanted.quantile(0.9))


@pytest.mark.parametrize("measure", [crps, censored_log_score, partial(pit, random_state=0)])
def test_measures_need_no_more_than_the_noise_and_its_scale(measure: object) -> None:
    latent, y = _scores()
    y[::7, 1] = np.nan  # entries are picked one by one
    noise, sigma = at_scores(NOISE, latent, SIGMA)
    assert callable(measure)
    found = measure(y, latent, SIGMA, lower=0.0, noise=NOISE)
    np.testing.assert_array_equal(found, measure(y, latent, sigma, lower=0.0, noise=noise))


def test_the_likelihood_holds_the_scale_of_every_entry() -> None:
    latent, y = _scores()
    noise, sigma = at_scores(NOISE, latent, SIGMA)
    for found, wanted in zip(
        evaluate(NOISE, y, y, latent, SIGMA), evaluate(noise, y, y, latent, sigma), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_some_tasks_keep_their_spread() -> None:
    latent, _ = _scores()
    _, sigma = at_scores(NOISE, latent, SIGMA)
    _, some = at_scores(of_tasks(NOISE, [2, 0]), latent[:, [2, 0]], SIGMA[[2, 0]])
    np.testing.assert_array_equal(some, sigma[:, [2, 0]])


def test_other_tasks_are_refused() -> None:
    latent, _ = _scores()
    for other in (latent[:, :1], latent[:, :2]):
        with pytest.raises(ValueError, match=r"that of 3 task\(s\), but the array has"):
            at_scores(NOISE, other, SIGMA[: other.shape[1]])


def test_growth_of_0_is_one_spread() -> None:
    flat = Spread(np.zeros(2), np.zeros(2), np.ones(2))
    mixed = NoiseByTask([Gaussian(), Logistic()])
    assert with_spread(Gaussian(), flat) == Gaussian()
    assert with_spread(mixed, flat) is mixed
    grows = Spread(np.array([0.0, 0.1]), np.zeros(2), np.ones(2))
    assert with_spread(Gaussian(), grows) == NoiseByTask([Gaussian()] * 2, grows)
    assert with_one_spread(with_spread(mixed, grows)) == mixed


def test_noises_are_equal_if_their_spreads_are() -> None:
    again = Spread(SPREAD.growth.copy(), SPREAD.centre.copy(), SPREAD.width.copy())
    assert NoiseByTask(FAMILIES, again) == NOISE
    assert hash(again) == hash(SPREAD)
    assert NoiseByTask(FAMILIES) != NOISE
    assert "growth=[0.3, -0.2, 0.0]" in repr(NOISE)


ONE = np.ones(1)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((999.0 * ONE, ONE, ONE), "growth of a Spread must lie between -100 and 100"),
        ((ONE, ONE, np.zeros(1)), "width of a Spread must not be 0"),
        ((ONE, np.full(1, np.nan), ONE), "growth, centre, width of a Spread must be finite"),
        ((ONE, np.ones(2), ONE), "of a Spread must be arrays with one number per task"),
        ((np.array(1.0), np.array(1.0), np.array(1.0)), "one number per task"),
    ],
)
def test_what_is_no_spread_is_refused(parts: tuple[FloatArray, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Spread(*parts)


def test_the_spread_of_other_tasks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spread is that of 3 task\(s\), but there are 2"):
        NoiseByTask(FAMILIES[:2], SPREAD)
