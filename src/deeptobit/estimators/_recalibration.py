"""Slope, level and noise scale of every task, refitted on rows that no model had seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from deeptobit import kernels
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Gaussian, Noise, Predictive
from deeptobit.targets import CensoredTargets

_SLOPE_PRECISION = 60.0  # of the prior c ~ N(1, 1/60): held-out scores are few, and nearly right
_MEAN_WEIGHT = 1.0  # of squared errors of E[y|x], beside the likelihood
_MAX_STEPS = 50
_TOLERANCE = 1e-8  # of a step, in standard units
_ROUNDING = 1e-12  # of the objective, which is a sum over rows
_LARGEST_STEP = 2.0  # in standard deviations of a task


class Line(NamedTuple):
    """y* = level + slope · latent + σε, each (T,)."""

    level: FloatArray
    slope: FloatArray
    sigma: FloatArray


class Refit(NamedTuple):
    """A line, and what it leaves of the objective, (T,)."""

    line: Line
    loss: FloatArray


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of rows that were held out, and the outcomes that they should tell.

    Everything is centred by the scores of its task and divided by ``scale``.

    Parameters
    ----------
    x : array of shape (N, T)
        The scores.
    low, high : arrays of shape (N, T)
        Ends of the outcomes' intervals.
    y, lower, upper : arrays of shape (N, T) or (T,)
        Recorded values and bounds.
    weight : array of shape (N,)
    mean_weight : array of shape (N, T)
        Of the squared error of an entry, 0 where it has no value.
    centre, scale : arrays of shape (T,)
    movable : bool array of shape (3, T)
        Which of level, slope and log σ may move.
    """

    x: FloatArray
    low: FloatArray
    high: FloatArray
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    mean_weight: FloatArray
    centre: FloatArray
    scale: FloatArray
    movable: BoolArray

    @classmethod
    def build(
        cls,
        latent: FloatArray,
        targets: CensoredTargets,
        weight: FloatArray,
        sigma: FloatArray,
        free: BoolArray,
        *,
        fit_intercept: bool,
    ) -> HeldOutScores:
        """From scores and outcomes in the user's units.

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
        fit_intercept : bool
            Whether the level may move.
        """
        centre = weight @ latent / weight.sum() if fit_intercept else np.zeros(latent.shape[1])

        def standard(values: FloatArray) -> FloatArray:
            return np.asarray((values - centre) / sigma)

        x, y = standard(latent), standard(targets.values)
        lower, upper = standard(targets.lower_bounds), standard(targets.upper_bounds)
        share = np.where(targets.has_value & free, weight[:, None], 0.0)
        mean = Predictive(Gaussian(), x, np.ones_like(sigma), lower, upper).mean()
        total = share.sum(axis=0)
        squares = (share * np.where(share > 0.0, y - mean, 0.0) ** 2).sum(axis=0)
        per_square = np.where(squares > 0.0, total / np.where(squares > 0.0, squares, 1.0), 0.0)
        return cls(
            x=x,
            low=standard(targets.low),
            high=standard(targets.high),
            y=y,
            lower=lower,
            upper=upper,
            weight=weight,
            mean_weight=_MEAN_WEIGHT * share * per_square,
            centre=centre,
            scale=sigma,
            movable=np.stack([free & fit_intercept, free, free]),
        )

    @property
    def level_weight(self) -> FloatArray:
        """Weight of the entries that tell where the level should be, (N, T)."""
        telling = (self.mean_weight > 0.0) & self.movable[0]
        return np.where(telling, self.weight[:, None], 0.0)

    def predictive(self, noise: Noise, point: FloatArray) -> Predictive:
        """Distributions of the outcomes at (level, slope, log σ), (N, T)."""
        level, slope, log_sigma = point
        latent = level + slope * self.x
        return Predictive(noise, latent, np.exp(log_sigma), self.lower, self.upper)

    def without_means(self) -> HeldOutScores:
        """The same for the likelihood alone."""
        return replace(self, mean_weight=np.zeros_like(self.mean_weight))

    def to_user(self, point: FloatArray) -> Line:
        """The line at (level, slope, log σ) in the user's units."""
        level, slope, log_sigma = point
        return Line(
            self.centre * (1.0 - slope) + self.scale * level, slope, self.scale * np.exp(log_sigma)
        )

    def from_user(self, line: Line) -> FloatArray:
        """(level, slope, log σ) of a line, (3, T)."""
        level = (line.level - self.centre * (1.0 - line.slope)) / self.scale
        return np.stack([level, line.slope, np.log(line.sigma / self.scale)])


def recalibrate(
    scores: HeldOutScores, noise: Noise, start: Line | None = None, max_steps: int = _MAX_STEPS
) -> Refit:
    r"""The line :math:`y^* = a + c\,\eta + \sigma\varepsilon` that held-out scores η ask for.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. Minimised is

    .. math::
        \sum_i w_i \left[\mathrm{nll}_i + \frac{(y_i - E[y_i])^2}{2 s^2}\right]
        + \frac{60}{2} (c - 1)^2

    with the mean square s² of the held-out errors as they are. The likelihood alone would give up
    slopes, and with them E[y|x], for a better fit of wild values: heavy tails make it robust, which
    a mean is not. The slope has a prior around 1.

    Parameters
    ----------
    scores : HeldOutScores
    noise : Noise
    start : Line, optional
        By default level 0, slope 1 and the σ that the scores came with.
    max_steps : int
        Newton steps at most; a few of them tell which noise suits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(2000), np.ones(1), np.array([True]), fit_intercept=True)
    >>> [part.round(1).tolist() for part in recalibrate(scores, Gaussian()).line]
    [[1.0], [0.5], [2.0]]
    """
    if start is None:
        point = np.zeros((3, scores.x.shape[1]))
        point[1] = 1.0
    else:
        point = scores.from_user(start)
    here = _look(scores, noise, point)
    for _ in range(max_steps):
        step = np.where(scores.movable, _newton_step(scores, here), 0.0)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=0), 1e-300))
        here, moved = _descend(scores, noise, here, step)
        if moved < _TOLERANCE:
            break
    return Refit(scores.to_user(here.point), here.loss)


class _Place(NamedTuple):
    """The objective of every task at a point (3, T), and what its derivatives are made of."""

    point: FloatArray
    loss: FloatArray
    at: Derivatives
    predictive: Predictive
    residual: FloatArray


def _look(scores: HeldOutScores, noise: Noise, point: FloatArray) -> _Place:
    predictive = scores.predictive(noise, point)
    at = kernels.evaluate(noise, scores.low, scores.high, predictive.latent, predictive.sigma)
    loss = scores.weight @ at.nll + 0.5 * _SLOPE_PRECISION * (point[1] - 1.0) ** 2
    residual = np.zeros_like(scores.x)
    if scores.mean_weight.any():
        residual = np.where(scores.mean_weight > 0.0, scores.y - predictive.mean(), 0.0)
        loss = loss + 0.5 * (scores.mean_weight * residual**2).sum(axis=0)
    return _Place(point, loss, at, predictive, residual)


def _newton_step(scores: HeldOutScores, here: _Place) -> FloatArray:
    """Newton steps of all tasks; directions of negative curvature count with its size, (3, T)."""
    weight, x, at = scores.weight, scores.x, here.at
    gradient = np.stack([weight @ at.latent, weight @ (x * at.latent), weight @ at.log_sigma])
    gradient[1] += _SLOPE_PRECISION * (here.point[1] - 1.0)
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
    if scores.mean_weight.any():
        mean = _mean_derivatives(scores, here.predictive)
        gradient -= (mean * scores.mean_weight * here.residual).sum(axis=1)
        hessian += np.einsum("int,nt,jnt->ijt", mean, scores.mean_weight, mean, optimize=True)
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    along = np.einsum("tij,it->tj", axes, gradient) / values
    return np.asarray(-np.einsum("tij,tj->it", axes, along))


def _mean_derivatives(scores: HeldOutScores, predictive: Predictive) -> FloatArray:
    """Of E[y|x] by level, slope and log σ, (3, N, T)."""
    by_latent = 1.0 - predictive.at_lower() - predictive.at_upper()
    by_log_sigma = predictive.sigma * predictive.noise_inside()
    return np.stack([by_latent, scores.x * by_latent, by_log_sigma])


def _descend(
    scores: HeldOutScores, noise: Noise, here: _Place, step: FloatArray
) -> tuple[_Place, float]:
    """Halve the steps of the tasks that would rise, and stay where none falls."""
    factor = np.ones(step.shape[1])
    most = here.loss + _ROUNDING * np.abs(here.loss)
    for _ in range(30):
        there = _look(scores, noise, here.point + factor * step)
        rises = ~(there.loss <= most)
        if not rises.any():
            break
        factor = np.where(rises, 0.5 * factor, factor)
    else:
        factor = np.where(rises, 0.0, factor)
        there = _look(scores, noise, here.point + factor * step)
    return there, float(np.abs(factor * step).max())
