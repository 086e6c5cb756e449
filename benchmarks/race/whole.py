"""Distributions on whole scores, by sums over all of them, whatever the family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.race.censored import Censored
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.targets import OFF_GRID

_TAIL = 1e-4  # beyond these quantiles, and all outcomes, squares of distribution functions are none
_ROUNDING = 1e-9  # of a step, by which outcomes may differ from their score
_MOST = 5000  # scores of a task


@dataclass(frozen=True, eq=False)
class Whole(Censored):
    """Y is the score nearest to Z, and a bound if Z lies beyond it, for every entry (N, T).

    Attributes
    ----------
    step, origin : arrays of shape (T,)
        Distance between neighbouring scores, 0 where an outcome is continuous, and one of them.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> bounds = np.array([0.0]), np.array([2.0])
    >>> y = Whole(norm([[1.0]], 1.0), *bounds, step=np.ones(1), origin=np.zeros(1))
    >>> [part.ravel().round(4) for part in y.cdf(np.array([[1.0]]))]
    [array([0.1587]), array([0.8413])]
    >>> y.crps(np.array([[1.0]])).ravel().round(4)  # 0.1587² on either side
    array([0.0503])
    """

    step: FloatArray
    origin: FloatArray

    def cdf(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(Y < y) and P(Y ≤ y); they differ at scores and at bounds."""
        smooth = super().cdf(y)
        last, reached = (
            np.ceil(self._places(y) - OFF_GRID) - 1.0,
            np.floor(self._places(y) + OFF_GRID),
        )
        whole = tuple(self._up_to(self.origin + self._h * place) for place in (last, reached))
        below, up_to = (np.where(self._is_whole, *both) for both in zip(whole, smooth, strict=True))
        return below, up_to

    def quantile(self, q: float) -> FloatArray:
        """The q-quantile of Y."""
        smooth = super().quantile(q)
        clipped = np.clip(smooth, self.lower + self._h, self.upper - self._h)
        score = self.origin + self._h * self._places(clipped).round()
        inside = self._is_whole & (smooth > self.lower) & (smooth < self.upper)
        return np.where(inside, score, smooth)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Ends of the scores whose mid-p value P(Y < k) + P(Y = k) / 2 is between the tails."""
        tail = 0.5 * (1.0 - coverage)
        smooth = super().interval(coverage)
        low, high = (self._moved(end, 0.0) for end in smooth)
        low = np.where(self._middle(low) < tail, self._moved(low, 1.0), low)
        high = np.where(self._middle(high) > 1.0 - tail, self._moved(high, -1.0), high)
        low, high = low - _ROUNDING * self._h, high + _ROUNDING * self._h
        pairs = zip((low, high), smooth, strict=True)
        low, high = (np.where(self._is_whole, *pair) for pair in pairs)
        return low, high

    def _moved(self, y: FloatArray, places: float) -> FloatArray:
        """The score so many places from the one nearest to y, within the bounds."""
        score = self.origin + self._h * (self._places(y).round() + places)
        return np.clip(score, self.lower, self.upper)

    def _middle(self, score: FloatArray) -> FloatArray:
        below, up_to = self.cdf(score)
        return 0.5 * (below + up_to)

    def log_score(self, y: FloatArray) -> FloatArray:
        """Minus the log of the mass at a bound, of that of a score over the step between them."""
        score = self.origin + self._h * self._places(y).round()
        start, end = self._edge(score - self._h), self._edge(score)
        # Far out, the difference of what is nearly 1 on both sides rounds to nothing.
        above = self.latent.sf(start)
        from_below = self.latent.cdf(end) - self.latent.cdf(start)
        mass = np.where(above < 0.5, above - self.latent.sf(end), from_below)
        told = self._is_whole & (y > self.lower) & (y < self.upper) & (mass > 0.0)
        logs = np.log(self._h) - np.log(np.where(told, mass, 1.0))
        return np.where(told, logs, super().log_score(y))

    def crps(self, y: FloatArray) -> FloatArray:
        """Sum over scores of h (P(Y ≤ score) − 1[y ≤ score])², NaN where y is."""
        total = np.zeros_like(y)
        for score, counts in self._scores(y):
            happened = y <= score + OFF_GRID * self._h
            total += np.where(counts, self._h * np.square(self._up_to(score) - happened), 0.0)
        total = np.where(np.isnan(y), np.nan, total)
        return total if self._is_whole.all() else np.where(self._is_whole, total, super().crps(y))

    @property
    def _is_whole(self) -> BoolArray:
        return np.asarray(self.step > 0.0)

    @property
    def _h(self) -> FloatArray:
        return np.where(self._is_whole, self.step, 1.0)

    def _places(self, y: FloatArray) -> FloatArray:
        return np.asarray((y - self.origin) / self._h)

    def _up_to(self, score: FloatArray) -> FloatArray:
        """P(Y ≤ score), for scores that there are."""
        inside = np.where(
            score > self.upper - 0.5 * self._h, 1.0, self.latent.cdf(self._edge(score))
        )
        return np.where(score < self.lower - 0.5 * self._h, 0.0, inside)

    def _edge(self, score: FloatArray) -> FloatArray:
        """The largest Z that is recorded as a score below the upper bound, or below it."""
        edge = np.where(score > self.upper - 1.5 * self._h, self.upper, score + 0.5 * self._h)
        return np.where(score < self.lower + 0.5 * self._h, self.lower, edge)

    def _scores(self, y: FloatArray) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores from the first that can be told from none, and whether a task has them still."""
        first, last = (np.asarray(self.latent.ppf(q)) for q in (_TAIL, 1.0 - _TAIL))
        first = np.maximum(np.fmin(first, y).min(axis=0), self.lower)
        last = np.minimum(np.fmax(last, y).max(axis=0), self.upper)
        start = self.origin + self._h * np.floor(self._places(first) + OFF_GRID)
        n_scores = np.where(self._is_whole, np.ceil((last - start) / self._h - OFF_GRID), 0.0)
        for place in range(int(min(n_scores.max(), _MOST))):
            yield start + place * self._h, place < n_scores
