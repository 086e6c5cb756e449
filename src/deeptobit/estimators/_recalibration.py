"""Slope, level and noise scale of every task, refitted on rows that no model had seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.estimators._folds import HeldOut, has_value
from deeptobit.estimators._line import Line, common_slope, recalibrate
from deeptobit.likelihood import Noise, Predictive
from deeptobit.solvers import CensoringKinds

_SHIFT_STEPS = 20


class ErrorModel(NamedTuple):
    """A line, and the family of its ε."""

    line: Line
    noise: Noise


def held_out_errors(
    held_out: HeldOut,
    latents: Sequence[FloatArray],
    sigma: FloatArray,
    kinds: CensoringKinds,
    *,
    fit_intercept: bool,
) -> ErrorModel:
    """Slope, level, σ and family that held-out rows ask for, with E[y|x] right on average.

    Slopes are near one that all tasks share. Of the families the one is taken under which the
    held-out rows are most likely: all of them have as many parameters.

    Parameters
    ----------
    held_out : HeldOut
    latents : sequence of arrays
        Scores of the rows that each fold holds out.
    sigma : array of shape (T,)
        Where to start.
    kinds : CensoringKinds
        Tasks that say nothing keep their scores and σ.
    fit_intercept : bool
        Whether the level may move.
    """
    rows = np.concatenate([fold.test for fold in held_out.folds])
    latent = np.concatenate(latents)
    targets, weight = held_out.targets[rows], held_out.weight[rows]
    free = ~(kinds.one_sided | kinds.two_sided)
    scores_of_tasks = latent, targets, weight, sigma
    slope = common_slope(*scores_of_tasks, free, fit_intercept=fit_intercept)

    def refit(noise: Noise) -> tuple[Line, Predictive]:
        line = recalibrate(*scores_of_tasks, noise, free, slope, fit_intercept=fit_intercept)
        scores = line.level + line.slope * latent
        bounds = targets.lower_bounds, targets.upper_bounds
        return line, Predictive(noise, scores, line.sigma, *bounds)

    def log_likelihood(found: tuple[Line, Predictive]) -> float:
        known = np.where(targets.missing, 0.0, weight[:, None])
        return float((known * found[1].log_density(targets.low, targets.high)).sum())

    line, predictive = max(map(refit, held_out.families), key=log_likelihood)
    if fit_intercept:
        share = np.where(has_value(targets) & free, weight[:, None], 0.0)
        shift = shift_of_level(predictive, targets.values, share)
        line = line._replace(level=line.level + shift)
    return ErrorModel(line, predictive.noise)


def shift_of_level(predictive: Predictive, y: FloatArray, share: FloatArray) -> FloatArray:
    r"""By how much the level should rise so that E[y|x] is right on average, (T,).

    Where the noise is not what the model takes it for, the likelihood gets the mean wrong. The mean
    residual r of held-out rows is corrected by :math:`r(1 - se^2/r^2)_+`, through the level, so
    that the predictive distribution moves along.

    Parameters
    ----------
    predictive : Predictive
        Of the held-out rows.
    y : array of shape (N, T)
    share : array of shape (N, T)
        Weights of the rows, 0 where y is not known.
    """
    n_entries = share.sum(axis=0)
    unit = share / np.where(n_entries > 0.0, n_entries, 1.0)
    mean = predictive.mean()
    sigma = np.broadcast_to(predictive.sigma, unit.shape[1:])
    residual = np.where(share > 0.0, y - mean, 0.0) / sigma  # whose squares do not overflow
    bias = (unit * residual).sum(axis=0)
    squared_error = (unit * np.square(residual - bias)).sum(axis=0) / np.maximum(n_entries, 1.0)
    kept = np.maximum(1.0 - squared_error / np.maximum(bias**2, 1e-300), 0.0)
    wanted = (unit * mean).sum(axis=0) + kept * bias * sigma
    shift = np.zeros_like(bias)
    for _ in range(_SHIFT_STEPS if kept.any() else 0):
        moved = Predictive(
            predictive.noise,
            predictive.latent + shift,
            predictive.sigma,
            predictive.lower,
            predictive.upper,
        )
        slope = np.maximum((unit * moved.uncensored()).sum(axis=0), 1e-3)
        step = (wanted - (unit * moved.mean()).sum(axis=0)) / slope
        shift += np.where(kept > 0.0, np.clip(step, -0.5 * sigma, 0.5 * sigma), 0.0)
    return np.asarray(shift)
