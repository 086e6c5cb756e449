r"""How far held-out entries lie out, on the log scale of the model's own tails.

The score of an entry is :math:`s = -\log t` for the largest tail probability t at which the model's
central interval :math:`[q(t), q(1 - t)]` holds it; as a logarithm it tells apart values that lie
arbitrarily far out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from scipy.optimize import brentq

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise, Predictive, of_task
from deeptobit.targets import CensoredTargets

_MEDIAN = float(np.log(2.0))  # the score of an interval that is a point
_ROUNDING = 1e-9  # a value that ties with the threshold must not fall out by rounding


@dataclass(frozen=True, eq=False)
class TargetScores:
    r"""Scores of the n held-out entries of one target.

    An entry between its bounds counts as held from its score on. One at a bound is
    held by every interval that reaches the bound, true model or not, and would pull the others'
    intervals in; it counts instead for the chance that a latent score beyond the bound is held,

    .. math:: w(t) = \frac{\left(\min(p, 1 - t) - t\right)_+}{p} \le 1[t \le p],

    p being the mass at the bound. A true model then keeps its intervals. Conformal risk control
    (Angelopoulos et al., ICLR 2024) needs only that the count grows with the interval and never
    exceeds what is held.

    Parameters
    ----------
    between : array
        Ascending scores of entries between bounds; inf where an open-ended entry is held by no
        bounded interval.
    at_bound : array
        Scores −log p of entries at a bound.
    """

    between: FloatArray
    at_bound: FloatArray

    def __len__(self) -> int:
        """Count the entries, n."""
        return len(self.between) + len(self.at_bound)

    @property
    def n_open(self) -> int:
        """Entries that no bounded interval holds."""
        return int(np.isinf(self.between).sum())

    def share_inside(self, threshold: float) -> float:
        """Share of entries that the interval of that threshold holds."""
        inside = self._between_inside(threshold) + int((self.at_bound <= threshold).sum())
        return inside / len(self) if len(self) else np.nan

    def threshold(self, coverage: float) -> float:
        """The smallest at which (n + 1)·coverage entries count as held; inf if none is."""
        wanted = (len(self) + 1) * coverage - _ROUNDING
        if len(self) < self.n_needed(coverage) or len(self) - self.n_open < wanted:
            return np.inf
        low, high = _MEDIAN, 1.0
        while self._held(high) < wanted:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._held(middle) < wanted else (low, middle)
        return high

    def n_needed(self, coverage: float) -> int:
        """Entries without which the interval must be everything."""
        odds = coverage / (1.0 - coverage)
        # An entry at a bound counts as held in full by no bounded interval.
        return floor(odds + _ROUNDING) + 1 if len(self.at_bound) else ceil(odds - _ROUNDING)

    def _held(self, threshold: float) -> float:
        tail = np.exp(-threshold)
        within = np.minimum(1.0, (1.0 - tail) * np.exp(np.minimum(self.at_bound, 1.0)))
        beyond = np.exp(np.minimum(self.at_bound - threshold, 0.0))
        return self._between_inside(threshold) + float((within - beyond).sum())

    def _between_inside(self, threshold: float) -> int:
        return int(np.searchsorted(self.between, threshold, side="right"))


def score_targets(targets: CensoredTargets, predictive: Predictive) -> tuple[TargetScores, ...]:
    """Score every entry that is not missing, target by target.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> predictive = Predictive(Gaussian(), np.zeros((5, 1)), np.ones(1), lower=0.0)
    >>> y = CensoredTargets.from_bounds([0.0, 0.0, 40.0, 1.96, np.nan], lower=0)
    >>> (scores,) = score_targets(y, predictive)
    >>> scores.between.round(3).tolist(), scores.at_bound.round(3).tolist()
    ([3.689, 804.608], [0.693, 0.693])
    """
    scores, at_bound = nonconformity(targets, predictive)
    between = ~at_bound & ~targets.missing
    return tuple(
        TargetScores(np.sort(scores[between[:, task], task]), scores[at_bound[:, task], task])
        for task in range(scores.shape[1])
    )


def nonconformity(targets: CensoredTargets, predictive: Predictive) -> tuple[FloatArray, BoolArray]:
    """Scores, NaN where missing, and whether the entry is at a bound; each (N, T).

    With the entry known to lie in [low, high], cut at the bounds, the interval [q(t), q(1 − t)]
    holds all of it if F(low) ≥ t and 1 − F(high) ≥ t. At a bound one side holds by itself.
    """
    low = np.maximum(targets.low, predictive.lower)
    high = np.minimum(targets.high, predictive.upper)
    at_lower, at_upper = high <= predictive.lower, low >= predictive.upper
    between = (targets.low == targets.high) & ~(at_lower | at_upper)
    # An end of the interval that is recorded as a score holds it: the last that is, on either side.
    first, last = predictive.cell(np.where(between, low, predictive.latent))
    z_low = (np.where(between, last, low) - predictive.latent) / predictive.sigma
    z_high = (np.where(between, first, high) - predictive.latent) / predictive.sigma
    below = np.where(at_upper, 0.0, -predictive.noise.log_cdf(z_low))
    above = np.where(at_lower, 0.0, -predictive.noise.log_sf(z_high))
    return np.maximum(below, above), at_lower | at_upper


def central_interval(
    predictive: Predictive, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The model's intervals at tail probability exp(−threshold) per target, each end (N, T)."""
    ends = np.array(
        [
            _central_ends(of_task(predictive.noise, task), score)
            for task, score in enumerate(thresholds.tolist())
        ]
    )
    low, high = (predictive.latent + predictive.sigma * z for z in ends.T)
    return predictive.recorded(low), predictive.recorded(high)


def _central_ends(noise: Noise, score: float) -> tuple[float, float]:
    """Both z at which the tail beyond has probability exp(−score), nudged outwards."""
    if np.isinf(score):
        return -np.inf, np.inf
    return (
        -_reach(lambda z: float(noise.log_cdf(np.asarray(-z))), score),
        _reach(lambda z: float(noise.log_sf(np.asarray(z))), score),
    )


def _reach(log_tail: Callable[[float], float], score: float) -> float:
    """Solve log_tail(z) = −score on the log scale, where quantile functions have long rounded."""
    wide = 1.0
    while not log_tail(-wide) >= -score >= log_tail(wide):
        wide *= 2.0
    z = float(brentq(lambda z: log_tail(z) + score, -wide, wide))
    return z + _ROUNDING * max(1.0, abs(z))
