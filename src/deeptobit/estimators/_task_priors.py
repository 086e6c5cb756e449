"""How much tasks differ in the skew and the growth of their noise, as all of them together tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.estimators._held_out_scores import HeldOutScores, Line
from deeptobit.estimators._recalibration import growth_told, recalibrate
from deeptobit.likelihood import Noise

SKEW_WIDTH = 0.35  # standard deviation of the prior of skews around 0, of few tasks
_GROWTH = 0.1  # the same for growths
_FEW = 2.0  # tasks that these widths count for
_EM_STEPS = 30
_WIDTHS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45])  # the first is as good as none


def width_of_skews(skews: FloatArray, losses: FloatArray) -> float:
    r"""Standard deviation τ of the prior k ~ N(0, τ²) of skews, by EM.

    Where every task is skewed, as counts are, a skew needs less evidence than where few are.

    Parameters
    ----------
    skews : array of shape (K,)
    losses : array of shape (K, T)
        Negative log likelihood of every task under every skew.

    Examples
    --------
    >>> skews = np.array([0.0, -0.7, 0.7])
    >>> symmetric, skewed = np.array([0.0, 9.0, 9.0]), np.array([9.0, 9.0, 0.0])
    >>> [round(width_of_skews(skews, np.tile(task, (20, 1)).T), 2) for task in (symmetric, skewed)]
    [0.11, 0.68]
    """
    squares = np.square(skews)[:, None]
    width = SKEW_WIDTH
    for _ in range(_EM_STEPS):
        log_weight = -losses - 0.5 * squares / width**2
        weight = np.exp(log_weight - log_weight.max(axis=0))
        expected = (weight * squares).sum(axis=0) / weight.sum(axis=0)
        total = _FEW * SKEW_WIDTH**2 + expected.sum()
        width = float(np.sqrt(total / (_FEW + len(expected))))
    return width


def width_of_growths(growth: FloatArray, variance: FloatArray) -> float:
    r"""Standard deviation τ of the prior g ~ N(0, τ²) of growths that is most likely.

    An estimate of variance v is then N(0, τ² + v); one of infinite variance tells nothing.

    Examples
    --------
    >>> estimates, variance = np.full(30, 0.25), np.full(30, 0.01)
    >>> width_of_growths(estimates, variance), width_of_growths(0.2 * estimates, variance)
    (0.2, 0.06)
    """
    tells = np.isfinite(variance)
    total = np.square(_WIDTHS)[:, None] + variance[tells]
    fits = (np.log(total) + np.square(growth[tells]) / total).sum(axis=1)
    belief = np.maximum(_WIDTHS, _WIDTHS[1])  # which has nothing against no growth at all
    fits += _FEW * (2.0 * np.log(belief) + (_GROWTH / belief) ** 2)
    return float(_WIDTHS[np.argmin(fits)])


def learn_growth(scores: HeldOutScores, noise: Noise, start: Line | None) -> HeldOutScores:
    """The same scores with the prior of growths that all tasks together tell.

    Where they tell that nothing grows, no growth may move.
    """
    likelihood = scores.without_means()
    line = recalibrate(likelihood, noise, start).line
    width = width_of_growths(*growth_told(likelihood, noise, line))
    return scores.without_growth() if width == _WIDTHS[0] else replace(scores, growth_width=width)
