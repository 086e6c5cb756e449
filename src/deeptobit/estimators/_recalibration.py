"""Slope, level and noise scale of every task, refitted on rows that no model had seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deeptobit import kernels
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators._folds import HeldOut, has_value
from deeptobit.likelihood import Derivatives, Noise, Predictive
from deeptobit.solvers import CensoringKinds
from deeptobit.targets import CensoredTargets

_SLOPE_PRECISION = 60.0  # of the prior c ~ N(1, 1/60): held-out scores are few, and nearly right
_MAX_STEPS = 50
_LARGEST_STEP = 2.0  # in standard deviations of a task
_SHIFT_STEPS = 20


class Line(NamedTuple):
    """y* = level + slope · latent + σε, each (T,)."""

    level: FloatArray
    slope: FloatArray
    sigma: FloatArray


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

    Of the families the one is taken under which the held-out rows are most likely: all of them
    have as many parameters.

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

    def refit(noise: Noise) -> tuple[Line, Predictive]:
        line = recalibrate(latent, targets, weight, sigma, noise, free, fit_intercept=fit_intercept)
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


class _Entries(NamedTuple):
    """Held-out intervals and latents, centred by the latents and in units of the outcomes."""

    noise: Noise
    low: FloatArray
    high: FloatArray
    x: FloatArray
    weight: FloatArray

    def evaluate(self, point: FloatArray) -> tuple[FloatArray, Derivatives]:
        """Penalised nll of every task at (level, slope, log σ), (3, T)."""
        level, slope, log_sigma = point
        at = kernels.evaluate(
            self.noise, self.low, self.high, level + slope * self.x, np.exp(log_sigma)
        )
        return self.weight @ at.nll + 0.5 * _SLOPE_PRECISION * (slope - 1.0) ** 2, at


def recalibrate(
    latent: FloatArray,
    targets: CensoredTargets,
    weight: FloatArray,
    sigma: FloatArray,
    noise: Noise,
    free: BoolArray,
    *,
    fit_intercept: bool,
) -> Line:
    r"""Maximum likelihood of :math:`y^* = a + c\,\eta + \sigma\varepsilon` on held-out η.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. The slope has a prior around 1.

    Parameters
    ----------
    latent : array of shape (N, T)
        Scores of rows that were held out.
    targets, weight
        The outcomes of these rows and their weights.
    sigma : array of shape (T,)
        Where to start.
    free : bool array of shape (T,)
        Tasks to refit; others keep their scores and σ.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> line = recalibrate(eta, targets, np.ones(2000), np.ones(1), Gaussian(),
    ...     np.array([True]), fit_intercept=True)
    >>> [part.round(1).tolist() for part in line]
    [[1.0], [0.5], [2.0]]
    """
    centre = weight @ latent / weight.sum() if fit_intercept else np.zeros(latent.shape[1])
    entries = _Entries(
        noise,
        (targets.low - centre) / sigma,
        (targets.high - centre) / sigma,
        (latent - centre) / sigma,
        weight,
    )
    ones = np.ones(latent.shape[1])
    point = np.stack([0.0 * ones, ones, 0.0 * ones])
    movable = np.stack([free & fit_intercept, free, free])
    value, at = entries.evaluate(point)
    for _ in range(_MAX_STEPS):
        step = np.where(movable, _newton_step(entries, point, at), 0.0)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=0), 1e-300))
        point, value, at, moved = _descend(entries, point, step, value)
        if moved < 1e-8:
            break
    level, slope, log_sigma = point
    return Line(centre * (1.0 - slope) + sigma * level, slope, sigma * np.exp(log_sigma))


def _newton_step(entries: _Entries, point: FloatArray, at: Derivatives) -> FloatArray:
    """Newton steps of all tasks; directions of negative curvature count with its size, (3, T)."""
    weight, x = entries.weight, entries.x
    gradient = np.stack([weight @ at.latent, weight @ (x * at.latent), weight @ at.log_sigma])
    gradient[1] += _SLOPE_PRECISION * (point[1] - 1.0)
    bend = at.latent_latent
    hessian = np.array(
        [
            [weight @ bend, weight @ (x * bend), weight @ at.latent_log_sigma],
            [weight @ (x * bend), weight @ (x * x * bend), weight @ (x * at.latent_log_sigma)],
            [
                weight @ at.latent_log_sigma,
                weight @ (x * at.latent_log_sigma),
                weight @ at.log_sigma_log_sigma,
            ],
        ]
    )
    hessian[1, 1] += _SLOPE_PRECISION
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    along = np.einsum("tij,it->tj", axes, gradient) / values
    return np.asarray(-np.einsum("tij,tj->it", axes, along))


def _descend(
    entries: _Entries, point: FloatArray, step: FloatArray, value: FloatArray
) -> tuple[FloatArray, FloatArray, Derivatives, float]:
    """Halve the steps of the tasks that would rise, and stay where none falls."""
    factor = np.ones(point.shape[1])
    for _ in range(30):
        new_value, at = entries.evaluate(point + factor * step)
        rises = ~(new_value <= value)
        if not rises.any():
            break
        factor = np.where(rises, 0.5 * factor, factor)
    else:
        factor = np.where(rises, 0.0, factor)
        new_value, at = entries.evaluate(point + factor * step)
    return point + factor * step, new_value, at, float(np.abs(factor * step).max())


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
