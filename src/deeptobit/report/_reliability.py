"""How far predicted probabilities of the bounds are from what happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import bound_calibration
from deeptobit.report._format import FEWEST
from deeptobit.targets import CensoredTargets

N_BINS = 10


def bound_errors(targets: CensoredTargets, predictive: Predictive) -> dict[str, float]:
    """Mean distance between predicted and observed shares, by the side that has bounds.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1), targets.lower)
    >>> bound_errors(targets, predictive)
    {'lower': 0.0}
    """
    errors = {}
    for side, happened, probability in _sides(targets, predictive):
        if not np.isnan(happened).all():
            found = bound_calibration(happened, probability, n_bins=N_BINS)
            errors[side] = found.expected_error
    return errors


def without_small_bins(targets: CensoredTargets, predictive: Predictive) -> CensoredTargets:
    """The outcomes without those in a bin of fewer than five, on either side."""
    while (few := _in_small_bins(targets, predictive)).any():
        low, high = (np.where(few, np.nan, end) for end in (targets.low, targets.high))
        targets = replace(targets, low=low, high=high)
    return targets


def _in_small_bins(targets: CensoredTargets, predictive: Predictive) -> BoolArray:
    few = np.zeros(targets.shape, dtype=np.bool_)
    for _, happened, probability in _sides(targets, predictive):
        known = ~np.isnan(happened)
        bins = np.minimum((probability * N_BINS).astype(np.intp), N_BINS - 1)
        sizes = np.bincount(bins[known], minlength=N_BINS)
        few |= known & (sizes < FEWEST)[bins]
    return few


def _sides(
    targets: CensoredTargets, predictive: Predictive
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Whether entries are at a bound, NaN where that is not known, and how likely that was."""
    recorded = targets.observed | targets.at_lower | targets.at_upper
    for side, censored, bounds, probability in (
        ("lower", targets.at_lower, targets.lower_bounds, predictive.at_lower()),
        ("upper", targets.at_upper, targets.upper_bounds, predictive.at_upper()),
    ):
        ends = np.broadcast_to(bounds, targets.shape)
        known = recorded & np.isfinite(ends) & (~censored | (targets.values == ends))
        yield side, np.where(known, censored, np.nan), np.clip(probability, 0.0, 1.0)
