"""Level, slope and noise scale of every task on given scores, by penalised likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit import kernels
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Gaussian, Noise
from deeptobit.targets import CensoredTargets

_SLOPE_PRECISION = 60.0  # of the prior c ~ N(c̄, 1/60): held-out scores are few, and nearly right
_LEAST_INFORMATION = 1e-3  # below this, tasks say nothing about their slopes
_MAX_CENTRES = 10
_NEAR_ENOUGH = 0.01  # of a slope that tasks share
_MAX_STEPS = 50
_LARGEST_STEP = 2.0  # in standard deviations of a task


class Line(NamedTuple):
    """y* = level + slope · latent + σε, each (T,)."""

    level: FloatArray
    slope: FloatArray
    sigma: FloatArray


class _Entries(NamedTuple):
    """Held-out intervals and latents, centred by the latents and in units of the outcomes."""

    noise: Noise
    low: FloatArray
    high: FloatArray
    x: FloatArray
    weight: FloatArray
    slope: float

    @classmethod
    def of(
        cls,
        latent: FloatArray,
        targets: CensoredTargets,
        weight: FloatArray,
        sigma: FloatArray,
        noise: Noise,
        slope: float,
        centre: FloatArray,
    ) -> _Entries:
        low, high, x = ((part - centre) / sigma for part in (targets.low, targets.high, latent))
        return cls(noise, low, high, x, weight, slope)

    def evaluate(self, point: FloatArray) -> tuple[FloatArray, Derivatives]:
        """Penalised nll of every task at (level, slope, log σ), (3, T)."""
        level, slope, log_sigma = point
        at = kernels.evaluate(
            self.noise, self.low, self.high, level + slope * self.x, np.exp(log_sigma)
        )
        return self.weight @ at.nll + 0.5 * _SLOPE_PRECISION * (slope - self.slope) ** 2, at


def common_slope(
    latent: FloatArray,
    targets: CensoredTargets,
    weight: FloatArray,
    sigma: FloatArray,
    free: BoolArray,
    *,
    fit_intercept: bool,
) -> float:
    r"""The slope around which those of the tasks lie: the centre c̄ of their prior.

    Where features tell little, the scores of all tasks are too bold in the same way, and what one
    task alone could not tell from chance, they tell together. With slopes :math:`c_t` under a prior
    of precision p around m and information :math:`I_t` of the rows about them, slopes around c̄ are
    as often above it as below at

    .. math:: \bar c = \sum_t \Bigl(c_t - \frac{m\,p}{I_t + p}\Bigr)
        \Big/ \sum_t \frac{I_t}{I_t + p}

    as far as the likelihood is quadratic; with c̄ for m, again and again, it need not be.

    The noise is taken for Gaussian, whatever it may be: slopes under heavier tails suit most rows,
    and not the mean of all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(40, 30))
    >>> Y = 0.5 * eta + 2 * rng.normal(size=eta.shape)
    >>> targets = CensoredTargets.from_bounds(Y)
    >>> free = np.full(30, True)
    >>> slope = common_slope(eta, targets, np.ones(40), np.ones(30), free, fit_intercept=True)
    >>> 0.4 < slope < 0.6
    True
    """
    centre = _centre(latent, weight, fit_intercept)
    entries = _Entries.of(latent, targets, weight, sigma, Gaussian(), 1.0, centre)
    for _ in range(_MAX_CENTRES):
        point, at = _fit(entries, free, fit_intercept=fit_intercept)
        information = _information_about_slope(entries, at, fit_intercept=fit_intercept)[free]
        kept = information / (information + _SLOPE_PRECISION)
        if kept.sum() < _LEAST_INFORMATION:
            return 1.0
        drawn = point[1][free] - entries.slope * (1.0 - kept)  # towards the centre of the prior
        slope = max(float(drawn.sum() / kept.sum()), 0.0)
        if abs(slope - entries.slope) < _NEAR_ENOUGH:
            break
        entries = entries._replace(slope=slope)
    return slope


def recalibrate(
    latent: FloatArray,
    targets: CensoredTargets,
    weight: FloatArray,
    sigma: FloatArray,
    noise: Noise,
    free: BoolArray,
    slope: float = 1.0,
    *,
    fit_intercept: bool,
) -> Line:
    r"""Maximum likelihood of :math:`y^* = a + c\,\eta + \sigma\varepsilon` on held-out η.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. The slopes have a prior.

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
    slope : float
        The centre of the prior.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> line = recalibrate(eta, targets, np.ones(2000), np.ones(1), Gaussian(),
    ...     np.array([True]), fit_intercept=True)
    >>> [part.round(1).tolist() for part in line]
    [[1.0], [0.5], [2.0]]
    """
    centre = _centre(latent, weight, fit_intercept)
    entries = _Entries.of(latent, targets, weight, sigma, noise, slope, centre)
    (level, slopes, log_sigma), _ = _fit(entries, free, fit_intercept=fit_intercept)
    return Line(centre * (1.0 - slopes) + sigma * level, slopes, sigma * np.exp(log_sigma))


def _centre(latent: FloatArray, weight: FloatArray, fit_intercept: bool) -> FloatArray:
    """Where slope and level say little about each other, (T,)."""
    if not fit_intercept:
        return np.zeros(latent.shape[1])
    return np.asarray(weight @ latent / weight.sum())


def _fit(
    entries: _Entries, free: BoolArray, *, fit_intercept: bool
) -> tuple[FloatArray, Derivatives]:
    """Level, slope and log σ of every task, (3, T), and the derivatives there."""
    ones = np.ones(len(free))
    point = np.stack([0.0 * ones, np.where(free, entries.slope, 1.0), 0.0 * ones])
    movable = np.stack([free & fit_intercept, free, free])
    value, at = entries.evaluate(point)
    for _ in range(_MAX_STEPS):
        step = np.where(movable, _newton_step(entries, point, at), 0.0)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=0), 1e-300))
        point, value, at, moved = _descend(entries, point, step, value)
        if moved < 1e-8:
            break
    return point, at


def _information_about_slope(
    entries: _Entries, at: Derivatives, *, fit_intercept: bool
) -> FloatArray:
    """Curvature of the likelihood by the slope where level and σ give way to it, (T,)."""
    hessian = _hessian(entries, at)
    others = [0, 2] if fit_intercept else [2]
    within = hessian[np.ix_(others, others)].transpose(2, 0, 1)
    across = hessian[1, others].T
    way = np.einsum("tij,tj->ti", np.linalg.pinv(within, hermitian=True), across)
    return np.asarray(np.maximum(hessian[1, 1] - (across * way).sum(axis=1), 0.0))


def _newton_step(entries: _Entries, point: FloatArray, at: Derivatives) -> FloatArray:
    """Newton steps of all tasks; directions of negative curvature count with its size, (3, T)."""
    weight, x = entries.weight, entries.x
    gradient = np.stack([weight @ at.latent, weight @ (x * at.latent), weight @ at.log_sigma])
    gradient[1] += _SLOPE_PRECISION * (point[1] - entries.slope)
    hessian = _hessian(entries, at)
    hessian[1, 1] += _SLOPE_PRECISION
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    along = np.einsum("tij,it->tj", axes, gradient) / values
    return np.asarray(-np.einsum("tij,tj->it", axes, along))


def _hessian(entries: _Entries, at: Derivatives) -> FloatArray:
    """Of the likelihood of every task by level, slope and log σ, (3, 3, T)."""
    weight, x, bend = entries.weight, entries.x, at.latent_latent
    along = weight @ (x * bend)
    by_scale, along_scale = weight @ at.latent_log_sigma, weight @ (x * at.latent_log_sigma)
    return np.array(
        [
            [weight @ bend, along, by_scale],
            [along, weight @ (x * x * bend), along_scale],
            [by_scale, along_scale, weight @ at.log_sigma_log_sigma],
        ]
    )


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
