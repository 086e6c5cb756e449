"""Values that so few rows have that their number could point to a person."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray

FEWEST = 5  # smaller counts of rows are not published
_MOST_CODES = 10  # with more different values, a mean tells no count


def tells_few(values: FloatArray) -> bool:
    """Whether the mean of a column would tell how many rows have a value, and they are few.

    Of a column with a handful of different values (a flag, a code, a category as 0 and 1), the
    mean and the standard deviation are counts in disguise.

    Parameters
    ----------
    values : array of shape (N,)
        NaN where unknown.

    Examples
    --------
    >>> flag = np.zeros(60)
    >>> flag[:2] = 1.0
    >>> flag.mean().round(3), tells_few(flag), tells_few(np.arange(60.0))
    (np.float64(0.033), True, False)
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return bool(1 < len(distinct) <= _MOST_CODES and counts.min() < FEWEST)
