"""The array types that signatures speak of, and the precision in which answers are given."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
SingleArray: TypeAlias = NDArray[np.float32]


def in_precision_of(X: Any, result: FloatArray) -> FloatArray:
    """Answer single precision in single precision, all else in double.

    Numbers beyond 3e38, where single precision ends, stay in double.

    Examples
    --------
    >>> in_precision_of(np.zeros((1, 2), np.float32), np.ones(1))
    array([1.], dtype=float32)
    """
    if not _is_single_precision(X):
        return np.asarray(result, dtype=np.float64)
    with np.errstate(over="ignore"):
        single: Any = np.asarray(result, dtype=np.float32)
    return single if (np.isinf(single) == np.isinf(result)).all() else result


def _is_single_precision(X: Any) -> bool:
    """Whether X came in single precision, array or data frame."""
    dtypes = getattr(X, "dtypes", None)
    found = [getattr(X, "dtype", None)] if dtypes is None else list(dtypes)
    # By name, which NumPy, pandas and polars agree on: float32, Float32.
    return bool(found) and all(str(dtype).lower() == "float32" for dtype in found)
