"""How far predicted probabilities of the bounds are from what happened."""

from __future__ import annotations

import numpy as np

from deeptobit.likelihood import Predictive
from deeptobit.plots import bound_calibrations, pit_values
from deeptobit.study import FEWEST
from deeptobit.targets import CensoredTargets

N_BINS = 10
_COARSER = (N_BINS, 5, 2, 1)  # bins of the histogram, each of them neighbours merged


def bound_errors(
    targets: CensoredTargets, predictive: Predictive, fewest: int = FEWEST
) -> dict[str, float | None]:
    """Mean distance between predicted and observed shares, by the side that has bounds.

    None where fewer are at the bound, or off it, than are told: where the probability of a bound
    is next to 0, the distance is their share.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1), targets.lower)
    >>> bound_errors(targets, predictive), bound_errors(targets, predictive, fewest=1)
    ({'lower': None}, {'lower': 0.0})
    """
    errors: dict[str, float | None] = {}
    for side, found in bound_calibrations(targets, predictive, N_BINS).items():
        there = round(float(found.observed @ found.count))
        few = any(0 < n < fewest for n in (there, round(float(found.count.sum())) - there))
        errors[side] = None if few else found.expected_error
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
