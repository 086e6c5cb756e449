"""How well predictive distributions tell what happened, target by target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto import HeldOutScores, Recalibration, fit_error_model, match_quartiles
from deeptobit.estimators import TobitRegressor
from deeptobit.likelihood import Gaussian, Noise, Predictive, of_task, with_one_spread
from deeptobit.metrics import (
    anmse,
    censored_log_score,
    centred_anmse,
    crps,
    some_predictive,
    some_targets,
)
from deeptobit.targets import CensoredTargets


def measure(
    targets: CensoredTargets, predictive: Predictive, coverage: float
) -> dict[str, FloatArray]:
    r"""Four measures, each of shape (T,).

    ``r2`` is 1 − squared error of E[y|x] over that of the target's mean, ``anmse`` the squared
    error over the mean square of the target, ``crps`` the continuous ranked probability score
    in units of the target, ``coverage`` the share of values inside their central interval. What a
    target does not determine (no values, or all the same) is NaN.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
    coverage : float
        That the intervals promise, between 0 and 1.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[30.0], [21.0], [27.0]], 0, 30, names=["MMSE"])
    >>> latent, sigma = np.array([[31.0], [22.0], [26.0]]), np.full((3, 1), 2.0)
    >>> predictive = Predictive(Gaussian(), latent, sigma, targets.lower, targets.upper)
    >>> {name: of.round(2).tolist() for name, of in measure(targets, predictive, 0.9).items()}
    {'r2': [0.95], 'anmse': [0.0], 'crps': [0.46], 'coverage': [1.0]}
    """
    recorded = targets.has_value
    values = np.where(recorded, targets.values, np.nan)
    some = np.asarray(recorded.any(axis=0))
    least, largest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    varied = np.asarray(least < largest)
    not_zero = np.asarray(some & (varied | (largest != 0.0)))
    inside = _inside(values, predictive, coverage)
    return {
        "r2": 1.0 - _where(varied, targets, predictive, _centred_error),
        "anmse": _where(not_zero, targets, predictive, _error),
        "crps": _where(some, targets, predictive, _crps),
        "coverage": np.where(some, inside.sum(axis=0) / np.fmax(recorded.sum(axis=0), 1), np.nan),
    }


def _where(
    usable: BoolArray,
    targets: CensoredTargets,
    predictive: Predictive,
    of: Callable[[CensoredTargets, Predictive], Any],
) -> FloatArray:
    """A measure of the targets that determine it, NaN for the others, (T,)."""
    result = np.full(len(usable), np.nan)
    tasks = np.flatnonzero(usable).tolist()
    if tasks:
        result[tasks] = of(some_targets(targets, tasks), some_predictive(predictive, tasks))
    return result


def _centred_error(targets: CensoredTargets, predictive: Predictive) -> Any:
    return centred_anmse(targets, predictive.mean(), multioutput="raw_values")


def _error(targets: CensoredTargets, predictive: Predictive) -> Any:
    return anmse(targets, predictive.mean(), multioutput="raw_values")


def _crps(targets: CensoredTargets, predictive: Predictive) -> Any:
    return crps(
        targets,
        predictive.latent,
        predictive.sigma,
        noise=predictive.noise,
        multioutput="raw_values",
    )


def _inside(values: FloatArray, predictive: Predictive, coverage: float) -> BoolArray:
    """Where a value lies in its central interval; nowhere if there is none."""
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    return np.asarray((low <= values) & (values <= high))


# The model without features, to which every other is compared.


def predict_null(noise: Noise, train: CensoredTargets, test: CensoredTargets) -> Predictive:
    """The same distribution for every row of ``test``, with the noise of another model.

    Tasks of which ``train`` has no value between the bounds have the quartiles of a Gaussian fit.

    Examples
    --------
    >>> y = CensoredTargets.from_bounds(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    >>> predict_null(Gaussian(), y, y[:2]).mean().round(1).ravel()
    array([2., 2.])
    """
    # A feature that is 0 everywhere leaves the intercepts; the ridge says what it should be.
    null = TobitRegressor(alpha=1.0).fit(np.zeros((len(train), 1)), train)
    level = np.broadcast_to(null.intercept_, train.shape)
    free = np.asarray(train.observed.any(axis=0))
    scores = HeldOutScores.build(
        level, train, np.ones(len(train)), null.sigma_, free, fit_intercept=True
    )
    noise = with_one_spread(noise)
    found, _ = fit_error_model(scores, (noise,))
    families = [of_task(noise, task) for task in range(train.shape[1])]
    matched = match_quartiles(found, [Gaussian()] * len(families), families)
    found = Recalibration(*(np.where(free, *both) for both in zip(found, matched, strict=True)))
    latent = np.broadcast_to(found.intercept + found.slope * null.intercept_, test.shape)
    sigma = np.broadcast_to(found.sigma, test.shape)
    return Predictive(noise, latent, sigma, test.lower_bounds, test.upper_bounds)


# How well one fitted method predicts the test rows, target by target.


def measure_measures(
    model: Any, X: FloatArray, targets: CensoredTargets, coverage: float
) -> dict[str, FloatArray]:
    """Measures of a fitted estimator, each of shape (T,).

    ``width`` is that of the central intervals, ``coverage`` the share of entries that agree with
    theirs; the point prediction is what ``model.predict`` returns by default, within the bounds of
    each entry.
    """
    latent = model.predict(X, kind="latent")
    lower, upper = targets.lower_bounds, targets.upper_bounds
    predictive = Predictive(model.noise_, latent, model.sigma_, lower, upper)
    point = predictive.mean() if model.prediction == "mean" else np.clip(latent, lower, upper)
    relative = np.asarray(centred_anmse(targets, point, multioutput="raw_values"))
    scores = {"noise": model.noise_, "multioutput": "raw_values"}
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    known = ~targets.missing
    agrees = known & (low <= targets.high) & (high >= targets.low)
    n_known = known.sum(axis=0)
    return {
        "entries": n_known,
        "r2": 1.0 - relative,
        "anmse": np.asarray(anmse(targets, point, multioutput="raw_values")),
        "centred_anmse": relative,
        "crps": np.asarray(crps(targets, latent, model.sigma_, **scores)),
        "log_score": np.asarray(censored_log_score(targets, latent, model.sigma_, **scores)),
        "coverage": agrees.sum(axis=0) / n_known,
        "width": (known * (high - low)).sum(axis=0) / n_known,
    }
