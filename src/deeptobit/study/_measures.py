"""How well predictive distributions tell what happened, target by target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import anmse, centred_anmse, crps
from deeptobit.metrics._selection import some_predictive, some_targets
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
