"""Slope, level and noise scale of every task, refitted on rows that no model had seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import (
    Derivatives,
    Gaussian,
    Noise,
    Predictive,
    ScoreGrid,
    Spread,
    bend,
    grid_of,
    with_grid,
)
from deeptobit.targets import CensoredTargets, find_step

# Scores of rows that no model had seen, with the outcomes that they should tell.

_GROWTH_WIDTH = 0.1  # of the prior of growths around 0, until all tasks together tell a better one
_MEAN_WEIGHT = 1.0  # of squared errors of E[y|x], beside the likelihood
_NO_WIDTH = 1e-9  # of scores, in units of σ: all are one
_FINEST_STEP = 0.02  # between scores, in units of σ: finer ones make no difference
_COARSEST_STEP = 1.0


class Line(NamedTuple):
    """y* = level + slope · latent + σε, and how σ grows with the score, each (T,)."""

    level: FloatArray
    slope: FloatArray
    sigma: FloatArray
    growth: FloatArray


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
    middle, width : arrays of shape (T,)
        Mean and standard deviation of the scores.
    movable : bool array of shape (4, T)
        Which of level, slope, log σ and growth may move.
    grid : ScoreGrid, optional
        The scores that outcomes have, in the user's units.
    growth_width : float
        Standard deviation of the prior of growths around 0.
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
    middle: FloatArray
    width: FloatArray
    movable: BoolArray
    grid: ScoreGrid | None = None
    growth_width: float = _GROWTH_WIDTH

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
        middle = weight @ x / weight.sum()
        width = np.sqrt(weight @ np.square(x - middle) / weight.sum())
        varies = width > _NO_WIDTH
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
            middle=middle,
            width=np.where(varies, width, 1.0),
            movable=np.stack([free & fit_intercept, free, free, free & varies]),
            grid=_find_grid(targets, weight, sigma, free),
        )

    @property
    def level_weight(self) -> FloatArray:
        """Weight of the entries that tell where the level should be, (N, T)."""
        telling = (self.mean_weight > 0.0) & self.movable[0]
        return np.where(telling, self.weight[:, None], 0.0)

    @cached_property
    def directions(self) -> tuple[FloatArray, FloatArray]:
        """What moves the scores (level, slope), and what log σ (itself, growth), (2, N, T) each."""
        one = np.ones_like(self.x)
        bent = bend((self.x - self.middle) / self.width)
        return np.stack([one, self.x]), np.stack([one, bent])

    @cached_property
    def standard_grid(self) -> ScoreGrid | None:
        """The scores that there are, centred and divided as outcomes are."""
        if self.grid is None:
            return None
        return ScoreGrid(self.grid.step / self.scale, (self.grid.origin - self.centre) / self.scale)

    def predictive(self, noise: Noise, point: FloatArray) -> Predictive:
        """Distributions of the outcomes at (level, slope, log σ, growth), (N, T)."""
        level, slope, log_sigma, growth = point
        sigma = np.exp(log_sigma)
        if growth.any():
            sigma = sigma * np.exp(growth * self.directions[1][1])
        latent, noise = level + slope * self.x, with_grid(noise, self.standard_grid)
        return Predictive(noise, latent, sigma, self.lower, self.upper)

    def without_means(self) -> HeldOutScores:
        """The same for the likelihood alone."""
        return replace(self, mean_weight=np.zeros_like(self.mean_weight))

    def without_growth(self) -> HeldOutScores:
        """The same for one spread at all scores."""
        still = np.zeros_like(self.movable[:1])
        return replace(self, movable=np.concatenate([self.movable[:3], still]))

    def with_grid_of(self, noise: Noise) -> HeldOutScores:
        """The same on the scores that a noise knows of."""
        return replace(self, grid=grid_of(noise))

    def to_user(self, point: FloatArray) -> Line:
        """The line at (level, slope, log σ, growth) in the user's units."""
        level, slope, log_sigma, growth = point
        level = self.centre * (1.0 - slope) + self.scale * level
        return Line(level, slope, self.scale * np.exp(log_sigma), growth)

    def from_user(self, line: Line) -> FloatArray:
        """(level, slope, log σ, growth) of a line, (4, T)."""
        level = (line.level - self.centre * (1.0 - line.slope)) / self.scale
        return np.stack([level, line.slope, np.log(line.sigma / self.scale), line.growth])

    def spread(self, line: Line) -> Spread:
        """How σ changes with the scores on the line, in the user's units."""
        width = line.slope * self.scale * self.width
        told = width != 0.0  # where all scores are one, nothing grows with them
        return Spread(
            np.where(told, line.growth, 0.0),
            line.level + line.slope * (self.centre + self.scale * self.middle),
            np.where(told, width, 1.0),
        )


def _find_grid(
    targets: CensoredTargets, weight: FloatArray, sigma: FloatArray, free: BoolArray
) -> ScoreGrid | None:
    """The scores of tasks whose steps are neither lost in the noise nor wider than it."""
    values = targets.values[weight > 0.0]
    lower = np.atleast_2d(targets.lower_bounds).min(axis=0)
    upper = np.atleast_2d(targets.upper_bounds).max(axis=0)
    step, origin = np.zeros((2, len(free)))
    for task in np.flatnonzero(free):
        found = find_step(values[:, task], lower[task], upper[task])
        if _FINEST_STEP <= found / sigma[task] <= _COARSEST_STEP:
            ends = [lower[task], upper[task], np.nanmin(values[:, task]) % found]
            step[task], origin[task] = found, next(end for end in ends if np.isfinite(end))
    return ScoreGrid(step, origin) if step.any() else None


_SLOPE_PRECISION = 60.0  # of the prior c ~ N(1, 1/60): held-out scores are few, and nearly right
_MAX_STEPS = 50
_TOLERANCE = 1e-8  # of a step, in standard units
_ROUNDING = 1e-12  # of the objective, which is a sum over rows
_LARGEST_STEP = 2.0  # in standard deviations of a task
_USUAL = np.array([[0.0], [1.0], [0.0], [0.0]])  # level, slope, log σ and growth without a refit


class Refit(NamedTuple):
    """A line, and what it leaves of the objective, (T,)."""

    line: Line
    loss: FloatArray


def recalibrate(
    scores: HeldOutScores, noise: Noise, start: Line | None = None, max_steps: int = _MAX_STEPS
) -> Refit:
    r"""The line :math:`y^* = a + c\,\eta + \sigma\varepsilon` that held-out scores η ask for.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. Minimised is

    .. math::
        \sum_i w_i \left[\mathrm{nll}_i + \frac{(y_i - E[y_i])^2}{2 s^2}\right]
        + \frac{60}{2} (c - 1)^2 + \frac{g^2}{2\tau^2}

    with the mean square s² of the held-out errors as they are. σ grows with the score, by the
    factor :math:`e^g` per standard deviation of the scores (:class:`Spread`). The likelihood alone
    would give up slopes, and with them E[y|x], for a better fit of wild values: heavy tails make it
    robust, which a mean is not. The slope has a prior around 1.

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
    >>> from deeptobit.likelihood import Gaussian
    >>> from deeptobit.targets import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(2000), np.ones(1), np.array([True]), fit_intercept=True)
    >>> line = recalibrate(scores.without_growth(), Gaussian()).line
    >>> [part.round(1).tolist() for part in line]
    [[1.0], [0.5], [2.0], [0.0]]
    """
    if start is None:
        point = np.repeat(_USUAL, scores.x.shape[1], axis=1)
    else:
        point = scores.from_user(start)
        point[3] = np.where(scores.movable[3], point[3], 0.0)
    here = _look(scores, noise, point)
    for _ in range(max_steps):
        step = _newton_step(scores, here)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=0), 1e-300))
        here, moved = _descend(scores, noise, here, step)
        if moved < _TOLERANCE:
            break
    return Refit(scores.to_user(here.point), here.loss)


def growth_told(scores: HeldOutScores, noise: Noise, line: Line) -> tuple[FloatArray, FloatArray]:
    """The growth that each task asks for by itself, and its variance: inf where it tells none.

    By Laplace's approximation at the optimum of the likelihood and the priors, without the prior
    of the growth; each (T,).
    """
    here = _look(scores, noise, scores.from_user(line))
    with_prior = 1.0 / _inverse(_held(_curvature(scores, here), scores.movable))[3, 3]
    prior = scores.growth_width**-2
    alone = with_prior - prior
    tells = scores.movable[3] & (alone > 1e-3 * prior)
    alone = np.where(tells, alone, 1.0)
    estimate = np.where(tells, line.growth * with_prior / alone, 0.0)
    return estimate, np.where(tells, 1.0 / alone, np.inf)


class _Place(NamedTuple):
    """The objective of every task at a point (4, T), and what its derivatives are made of."""

    point: FloatArray
    loss: FloatArray
    at: Derivatives
    predictive: Predictive
    residual: FloatArray


def _look(scores: HeldOutScores, noise: Noise, point: FloatArray) -> _Place:
    predictive = scores.predictive(noise, point)
    at = likelihood.evaluate(noise, scores.low, scores.high, predictive.latent, predictive.sigma)
    loss = scores.weight @ at.nll + 0.5 * _precision(scores) @ np.square(point - _USUAL)
    residual = np.zeros_like(scores.x)
    if scores.mean_weight.any():
        residual = np.where(scores.mean_weight > 0.0, scores.y - predictive.mean(), 0.0)
        loss = loss + 0.5 * (scores.mean_weight * residual**2).sum(axis=0)
    return _Place(point, loss, at, predictive, residual)


def _precision(scores: HeldOutScores) -> FloatArray:
    """Of the priors of level, slope, log σ and growth."""
    return np.array([0.0, _SLOPE_PRECISION, 0.0, scores.growth_width**-2])


def _newton_step(scores: HeldOutScores, here: _Place) -> FloatArray:
    """Newton steps of all tasks; directions of negative curvature count with its size, (4, T)."""
    weight, movable = scores.weight[:, None], scores.movable
    by_latent, by_log_sigma = scores.directions
    gradient = np.concatenate(
        [
            (by_latent * (weight * here.at.latent)).sum(axis=1),
            (by_log_sigma * (weight * here.at.log_sigma)).sum(axis=1),
        ]
    )
    gradient += _precision(scores)[:, None] * (here.point - _USUAL)
    hessian = _curvature(scores, here)
    if scores.mean_weight.any():
        mean = _mean_derivatives(scores, here.predictive)
        gradient -= (mean * scores.mean_weight * here.residual).sum(axis=1)
        hessian += _products(mean, scores.mean_weight, mean)
    inverse = _inverse(_held(hessian, movable))
    return np.asarray(-np.einsum("ijt,jt->it", inverse, np.where(movable, gradient, 0.0)))


def _curvature(scores: HeldOutScores, here: _Place) -> FloatArray:
    """Second derivatives of the likelihood and the priors, (4, 4, T)."""
    weight, at = scores.weight[:, None], here.at
    by_latent, by_log_sigma = scores.directions
    hessian = np.empty((4, 4, scores.x.shape[1]))
    hessian[:2, :2] = _products(by_latent, weight * at.latent_latent, by_latent)
    hessian[:2, 2:] = _products(by_latent, weight * at.latent_log_sigma, by_log_sigma)
    hessian[2:, :2] = hessian[:2, 2:].transpose(1, 0, 2)
    hessian[2:, 2:] = _products(by_log_sigma, weight * at.log_sigma_log_sigma, by_log_sigma)
    return hessian + np.diag(_precision(scores))[:, :, None]


def _products(left: FloatArray, weight: FloatArray, right: FloatArray) -> FloatArray:
    """Sums over rows of all pairs of directions."""
    return np.asarray(np.einsum("int,nt,jnt->ijt", left, weight, right, optimize=True))


def _held(hessian: FloatArray, movable: BoolArray) -> FloatArray:
    """The curvature where only some parameters move: the others stand apart."""
    apart = np.eye(len(movable))[:, :, None]
    return np.where(movable[:, None] & movable[None, :], hessian, apart)


def _inverse(hessian: FloatArray) -> FloatArray:
    """Of every task, with the sizes of its eigenvalues, none of them 0, (4, 4, T)."""
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    return np.asarray(np.einsum("tik,tk,tjk->ijt", axes, 1.0 / values, axes, optimize=True))


def _mean_derivatives(scores: HeldOutScores, predictive: Predictive) -> FloatArray:
    """Of E[y|x] by level, slope, log σ and growth, (4, N, T)."""
    moves_latent, moves_log_sigma = scores.directions
    by_latent, by_sigma = predictive.mean_slopes()
    return np.concatenate([moves_latent * by_latent, moves_log_sigma * predictive.sigma * by_sigma])


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


# The level at which E[y|x] is right on average.

_STEPS = 20
_LEVEL_TOLERANCE = 1e-12  # of a step, in noise scales


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
    sigma = np.broadcast_to(predictive.sigma, unit.shape).mean(axis=0)
    residual = np.where(share > 0.0, y - mean, 0.0) / sigma  # whose squares do not overflow
    bias = (unit * residual).sum(axis=0)
    squared_error = (unit * np.square(residual - bias)).sum(axis=0) / np.maximum(n_entries, 1.0)
    kept = np.maximum(1.0 - squared_error / np.maximum(bias**2, 1e-300), 0.0)
    wanted = (unit * mean).sum(axis=0) + kept * bias * sigma
    shift = np.zeros_like(bias)
    for _ in range(_STEPS if kept.any() else 0):
        moved = replace(predictive, latent=predictive.latent + shift)
        slope = np.maximum((unit * moved.mean_slopes()[0]).sum(axis=0), 1e-3)
        step = (wanted - (unit * moved.mean()).sum(axis=0)) / slope
        step = np.where(kept > 0.0, np.clip(step, -0.5 * sigma, 0.5 * sigma), 0.0)
        shift += step
        if (np.abs(step) <= _LEVEL_TOLERANCE * sigma).all():
            break
    return np.asarray(shift)
