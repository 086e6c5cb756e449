"""How far predicted probabilities of the bounds are from what happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import bound_calibration
from deeptobit.plots import pit_values
from deeptobit.study import FEWEST
from deeptobit.targets import CensoredTargets

N_BINS = 10
_COARSER = (N_BINS, 5, 2, 1)  # bins of the histogram, each of them neighbours merged


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


def histogram_bins(targets: CensoredTargets, predictive: Predictive, fewest: int = FEWEST) -> int:
    """How many bins the histogram of places may have, so that none tells a small count.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds(np.linspace(-2.0, 2.0, 12)[:, None])
    >>> predictive = Predictive(Gaussian(), np.zeros((12, 1)), np.ones(1))
    >>> histogram_bins(targets, predictive), histogram_bins(targets, predictive, fewest=1)
    (2, 10)
    """
    places = pit_values(targets, predictive)
    for n_bins in _COARSER:
        counts, _ = np.histogram(places, n_bins, (0.0, 1.0))
        if not ((counts > 0) & (counts < fewest)).any():
            return n_bins
    return 1


def without_small_bins(
    targets: CensoredTargets, predictive: Predictive, fewest: int = FEWEST
) -> CensoredTargets:
    """The outcomes without those in a bin of fewer than are told, on either side."""
    while (few := _in_small_bins(targets, predictive, fewest)).any():
        low, high = (np.where(few, np.nan, end) for end in (targets.low, targets.high))
        targets = replace(targets, low=low, high=high)
    return targets


def _in_small_bins(targets: CensoredTargets, predictive: Predictive, fewest: int) -> BoolArray:
    few = np.zeros(targets.shape, dtype=np.bool_)
    for _, happened, probability in _sides(targets, predictive):
        known = ~np.isnan(happened)
        bins = np.minimum((probability * N_BINS).astype(np.intp), N_BINS - 1)
        sizes = np.bincount(bins[known], minlength=N_BINS)
        few |= known & (sizes < fewest)[bins]
    return few


def _sides(
    targets: CensoredTargets, predictive: Predictive
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Whether entries are at a bound, NaN where that is not known, and how likely that was."""
    recorded = targets.has_value
    for side, censored, bounds, probability in (
        ("lower", targets.at_lower, targets.lower_bounds, predictive.at_lower()),
        ("upper", targets.at_upper, targets.upper_bounds, predictive.at_upper()),
    ):
        ends = np.broadcast_to(bounds, targets.shape)
        known = recorded & np.isfinite(ends) & (~censored | (targets.values == ends))
        yield side, np.where(known, censored, np.nan), np.clip(probability, 0.0, 1.0)
