"""From values and bounds to intervals."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray

_PIECE = 256  # rows: what is computed on the way stays in the processor's cache


def censor(
    values: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of values (N, T) within bounds (T,) or (N, T); NaN stays NaN.

    Examples
    --------
    >>> low, high = censor(np.array([[0.0], [4.0], [9.0]]), np.zeros(1), np.full(1, 9.0))
    >>> low.ravel(), high.ravel()
    (array([-inf,   4.,   9.]), array([ 0.,  4., inf]))
    """
    low, high = np.empty(values.shape), np.empty(values.shape)
    for first in range(0, len(values), _PIECE):
        rows = slice(first, first + _PIECE)
        floor, ceiling = (bound[rows] if bound.ndim == 2 else bound for bound in (lower, upper))
        _censor_piece(values[rows], floor, ceiling, low[rows], high[rows])
    return low, high


def _censor_piece(
    values: FloatArray, lower: FloatArray, upper: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    """Write the ends; a side that is open for all costs hardly anything."""
    starts: FloatArray | float = 0.0
    ends: FloatArray | float = 0.0
    top = bottom = values
    if np.isfinite(lower).any():
        bottom, starts = np.maximum(values, lower), _infinite_unless(values > lower, -np.inf)
    if np.isfinite(upper).any():
        top, ends = np.minimum(values, upper), _infinite_unless(values < upper, np.inf)
    np.add(top, starts, out=low)
    np.add(bottom, ends, out=high)


def _infinite_unless(inside: BoolArray, infinity: float) -> FloatArray:
    """``where(inside, 0, infinity)`` without a branch for every entry: three times as fast."""
    sign = np.copysign(1.0, infinity)
    with np.errstate(divide="ignore"):
        result = np.divide(sign, inside)  # ±1 or ±inf
    result -= sign
    return np.asarray(result)
