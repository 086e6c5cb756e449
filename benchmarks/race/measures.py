"""How good a forecast is, outcome by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.race.censored import Censored
from benchmarks.race.forecast import Forecast
from benchmarks.race.trial import Trial
from benchmarks.race.whole import Whole
from deeptobit.arrays import FloatArray
from deeptobit.metrics import bound_calibration, centred_anmse

COVERAGE = 0.9


def measure(forecast: Forecast, trial: Trial) -> dict[str, Any]:
    """Measures of one forecast: arrays of shape (T,), a list of T arrays, or one number.

    CRPS, log score and width are in standard deviations of the training rows, so that they can be
    averaged over outcomes. ``bound_error`` is pooled over outcomes, and NaN where nothing has a
    bound; ``pit`` holds the transforms of the test rows of each outcome.
    """
    if forecast.latent is None:
        raise ValueError("a forecast without a distribution needs an error model first")
    problem, y = trial.problem, trial.Y
    _check(forecast, y)
    known = ~np.isnan(y)
    n_known = known.sum(axis=0)
    point = np.clip(forecast.point, problem.lower, problem.upper)
    relative = np.asarray(centred_anmse(y, point, multioutput="raw_values"))
    predictive = distribution(forecast, problem.lower, problem.upper)
    low, high = predictive.interval(COVERAGE)
    inside = known & (low <= y) & (y <= high)
    transformed = transform(predictive, y, trial.step, trial.split)
    return {
        "entries": n_known,
        "at_bound": ((y <= problem.lower) | (y >= problem.upper)).sum(axis=0) / n_known,
        "centred_anmse": relative,
        "r2": 1.0 - relative,
        "crps": np.nanmean(predictive.crps(y), axis=0),
        "log_score": np.nanmean(predictive.log_score(y), axis=0),
        "coverage": inside.sum(axis=0) / n_known,
        "randomised_coverage": (inside * between_tails(predictive, y)).sum(axis=0) / n_known,
        "width": (known * (high - low)).sum(axis=0) / n_known,
        "bound_error": bound_error(predictive, y),
        "pit": [column[keep] for column, keep in zip(transformed.T, known.T, strict=True)],
    }


def distribution(forecast: Forecast, lower: FloatArray, upper: FloatArray) -> Censored:
    """The distribution of outcomes, on the scores that the method says there are."""
    assert forecast.latent is not None
    if forecast.grid is None:
        return Censored(forecast.latent, lower, upper)
    step = forecast.grid.within(lower, upper)
    return Whole(forecast.latent, lower, upper, step, forecast.grid.origin)


def transform(predictive: Censored, y: FloatArray, step: FloatArray, seed: int) -> FloatArray:
    r"""Randomised probability integral transform, uniform on [0, 1] if the forecast is true.

    .. math:: u \sim \mathrm{Uniform}\left[P(Y < y - h/2),\; P(Y \le y + h/2)\right]

    with the rounding step h of the outcome: a score stands for all that is rounded to it, and one
    at a bound also for what lies beyond.
    """
    below, _ = predictive.cdf(y - 0.5 * step)
    _, up_to = predictive.cdf(y + 0.5 * step)
    return below + np.random.default_rng(seed).uniform(size=y.shape) * (up_to - below)


def between_tails(predictive: Censored, y: FloatArray) -> FloatArray:
    """Which share of the mass of an outcome at a bound lies between the tails; 1 elsewhere.

    An interval that reaches a bound holds all of its mass, and more than it should.
    """
    tail = 0.5 * (1.0 - COVERAGE)
    below, up_to = predictive.cdf(y)
    share = np.minimum(up_to, 1.0 - tail) - np.maximum(below, tail)
    share = np.clip(share / np.maximum(up_to - below, np.finfo(float).tiny), 0.0, 1.0)
    return np.where((y <= predictive.lower) | (y >= predictive.upper), share, 1.0)


def bound_error(predictive: Censored, y: FloatArray) -> float:
    """Expected calibration error of the probabilities at all bounds, lower and upper."""
    lower, upper = (np.isfinite(bound) for bound in (predictive.lower, predictive.upper))
    happened = np.hstack([(y <= predictive.lower)[:, lower], (y >= predictive.upper)[:, upper]])
    if not happened.size:
        return np.nan
    known = ~np.isnan(np.hstack([y[:, lower], y[:, upper]]))
    probability = np.hstack([predictive.at_lower()[:, lower], predictive.at_upper()[:, upper]])
    return bound_calibration(np.where(known, happened, np.nan), probability).expected_error


def distance_from_uniform(values: Sequence[FloatArray]) -> float:
    """Largest distance between the pooled distribution function and the diagonal (Kolmogorov).

    Examples
    --------
    >>> distance_from_uniform([np.array([0.25, 0.75]), np.array([0.5])])
    0.25
    """
    pooled = np.sort(np.concatenate(values))
    steps = np.arange(pooled.size + 1) / pooled.size
    return float(np.maximum(steps[1:] - pooled, pooled - steps[:-1]).max())


def _check(forecast: Forecast, Y: FloatArray) -> None:
    """A forecast that is not a number must not look like a good one."""
    if forecast.point.shape != Y.shape:
        raise ValueError(f"predictions have shape {forecast.point.shape}, outcomes {Y.shape}")
    wrong = ~np.isfinite(forecast.point)
    if wrong.any():
        raise ValueError(f"{wrong.sum()} of {wrong.size} predictions are not finite")
