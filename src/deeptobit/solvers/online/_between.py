"""Numbers between limits."""

import numpy as np

from deeptobit.arrays import FloatArray


def between(low: FloatArray | float, values: FloatArray, high: FloatArray | float) -> FloatArray:
    """The same as ``np.clip``, which takes three times as long for a hundred numbers."""
    return np.minimum(np.maximum(values, low), high)
