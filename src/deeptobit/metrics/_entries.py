"""Entries that have one recorded value, with the bounds at which that value was cut."""

from typing import NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise, Predictive, at_entries
from deeptobit.targets import CensoredTargets


class Recorded(NamedTuple):
    """Recorded values of the K entries that have one.

    Attributes
    ----------
    known : array of shape (N, T)
        Where the K entries are: observed, at a bound, or censored at a limit of their own.
    y, lower, upper : arrays of shape (K,)
        The value and the bounds in force.
    on_scale : array of shape (K,)
        False where an entry is censored at a limit of its own, which no rounding touches.
    """

    known: BoolArray
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    on_scale: BoolArray

    def predictive(self, noise: Noise, latent: FloatArray, sigma: FloatArray) -> Predictive:
        """Predictive distributions of the K entries, from latent and sigma of shape (N, T)."""
        known = self.known
        noise = at_entries(noise, known)
        return Predictive(noise, latent[known], sigma[known], self.lower, self.upper)


def recorded(targets: CensoredTargets) -> Recorded:
    """The entries with one recorded value.

    An entry that is left-censored at a limit c of its own (not at the bound of the scale) was
    recorded as max(c, y): c is its lower bound. The right side is the mirror image.

    Examples
    --------
    >>> low, high = [[2.0], [-np.inf]], [[2.0], [0.5]]
    >>> recorded(CensoredTargets.from_intervals(low, high, lower=0)).lower
    array([0. , 0.5])
    """
    known = targets.has_value
    y = targets.values[known]
    scale_lower = np.broadcast_to(targets.lower_bounds, targets.shape)[known]
    scale_upper = np.broadcast_to(targets.upper_bounds, targets.shape)[known]
    _refuse_off_scale(targets, known, (y < scale_lower) | (y > scale_upper))
    at_lower, at_upper = targets.at_lower[known], targets.at_upper[known]
    lower = np.where(at_lower, y, scale_lower)
    upper = np.where(at_upper, y, scale_upper)
    return Recorded(known, y, lower, upper, (lower == scale_lower) & (upper == scale_upper))


def _refuse_off_scale(targets: CensoredTargets, known: BoolArray, outside: BoolArray) -> None:
    for row, task in np.argwhere(known)[outside][:1].tolist():
        raise ValueError(
            f"target {targets.names[task]!r}: the value {targets.values[row, task]:g} in row {row} "
            "lies outside the bounds of its scale, where the predictive distribution has no mass"
        )
