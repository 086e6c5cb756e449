"""Scores of rows that no model had seen, with the outcomes that they should tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import (
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
