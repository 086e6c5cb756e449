"""The normal distribution of scores that outcomes alone determine."""

from __future__ import annotations

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian
from deeptobit.objective import TargetScaling
from deeptobit.scale._moments import Moments, Shift

_STEPS = 20
_LONGEST = 0.5  # step of the mean, in units of the spread, and of the spread's logarithm


def marginal(
    moments: Moments, shift: Shift, scaling: TargetScaling
) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of every task's scores in standard units, by maximum likelihood, each (T,).

    The likelihood of the uncensored entries depends on their number, mean and variance alone, so
    that two entries in their place do as well; entries at a bound are counted. Where bounds differ
    from row to row, the middle is taken: it is a start. 0 and 1 where nothing is uncensored.
    """
    usable = moments.inside > 0.0
    inside = np.where(usable, moments.inside, 1.0)
    mean = moments.y_inside / inside + shift.Y
    deviation = np.sqrt(
        np.maximum(moments.yy_inside / inside - (moments.y_inside / inside) ** 2, 0)
    )
    below, above = (_middle(side) for side in (moments.at_lower, moments.at_upper))
    never = np.full_like(mean, np.inf)
    low = scaling.apply(np.stack([mean - deviation, mean + deviation, -never, above]))
    high = scaling.apply(np.stack([mean - deviation, mean + deviation, below, never]))
    half = 0.5 * moments.inside
    weight = np.stack([half, half, moments.left, moments.right]) / np.maximum(moments.known, 1e-300)
    centre, log_spread = np.where(usable, low[:2].mean(axis=0), 0.0), np.zeros_like(mean)
    for _ in range(_STEPS):
        latent, sigma = np.tile(centre, (len(low), 1)), np.exp(log_spread)
        at = likelihood.evaluate(Gaussian(), low, high, latent, sigma)
        _, slope, by_spread, bend, cross, curve = ((weight * part).sum(axis=0) for part in at)
        slope, bend, cross = slope * sigma, np.maximum(bend * sigma**2, 0.1), cross * sigma
        curve = np.maximum(curve, 0.1)
        determinant = np.maximum(bend * curve - cross**2, 0.1 * bend * curve)
        move = (curve * slope - cross * by_spread) / determinant
        stretch = (bend * by_spread - cross * slope) / determinant
        centre = centre - sigma * np.clip(move, -_LONGEST, _LONGEST)
        log_spread = log_spread - np.clip(stretch, -_LONGEST, _LONGEST)
    return np.where(usable, centre, 0.0), np.where(usable, np.exp(log_spread), 1.0)


def _middle(extremes: FloatArray) -> FloatArray:
    """The middle of the bounds; 0 where there are none."""
    return np.asarray(0.5 * np.where(np.isfinite(extremes), extremes, 0.0).sum(axis=0))
