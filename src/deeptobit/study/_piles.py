"""Piles of equal values at the edge of a column: the mark of a floor or a ceiling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray

_LEAST_VALUES = 20
_LEAST_DISTINCT = 6  # fewer are codes, not a scale
_LEAST_SHARE = 0.03
_LEAST_TIMES = 5
_ABOVE_NEIGHBOUR = 2.0  # a smooth distribution does not double in its last step


class Piles(NamedTuple):
    """The value at each edge where a column piles up, and the share of rows there."""

    lower: float | None
    upper: float | None
    share_lower: float
    share_upper: float


def find_piles(values: FloatArray) -> Piles:
    """Edges where at least 3 % of the values sit, and twice as many as on the value beside.

    Examples
    --------
    >>> find_piles(np.r_[np.zeros(10), np.arange(1.0, 41.0)])
    Piles(lower=0.0, upper=None, share_lower=0.2, share_upper=0.02)
    """
    known = values[~np.isnan(values)]
    distinct, counts = np.unique(known, return_counts=True)
    if len(known) < _LEAST_VALUES or len(distinct) < _LEAST_DISTINCT:
        return Piles(None, None, 0.0, 0.0)
    least = max(_LEAST_TIMES, _LEAST_SHARE * len(known))

    def piles_up(edge: int, beside: int) -> bool:
        return bool(counts[edge] >= max(least, _ABOVE_NEIGHBOUR * counts[beside]))

    return Piles(
        float(distinct[0]) if piles_up(0, 1) else None,
        float(distinct[-1]) if piles_up(-1, -2) else None,
        float(counts[0] / len(known)),
        float(counts[-1] / len(known)),
    )
