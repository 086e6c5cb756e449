"""Array types of signatures, arguments, and what tables of several libraries have in common."""

import sys
from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None

_ARROW_TIMES = ("date", "time", "duration")


def in_precision_of(X: Any, result: FloatArray) -> FloatArray:
    """The result in single precision if X is, else in double.

    Numbers beyond 3e38, the largest in single precision, stay in double.

    Examples
    --------
    >>> in_precision_of(np.zeros((1, 2), np.float32), np.ones(1))
    array([1.], dtype=float32)
    """
    types = [] if getattr(X, "dtype", None) == np.float64 else _types_of(X)
    # By name, which NumPy, pandas and polars agree on: float32, Float32.
    if not types or any(str(dtype).lower() != "float32" for dtype in types):
        return np.asarray(result, dtype=np.float64)
    with np.errstate(over="ignore"):
        single: Any = np.asarray(result, dtype=np.float32)
    return single if (np.isinf(single) == np.isinf(result)).all() else result


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask need not be installed."""
    return hasattr(X, "__dask_graph__")


def check_count(name: str, count: Any, least: int = 1) -> None:
    """Refuse an argument that is not a whole number of at least ``least``.

    Examples
    --------
    >>> check_count("rank", 2.5)
    Traceback (most recent call last):
    ValueError: rank must be a whole number, at least 1; got 2.5
    """
    if not (isinstance(count, Integral) and int(count) >= least):
        raise ValueError(f"{name} must be a whole number, at least {least}; got {count!r}")


def read_groups(groups: Any, n_rows: int) -> Any:
    """Labels of shape (N,), one person per row; None: each row is a person of its own."""
    if groups is None:
        return np.arange(n_rows)
    import pandas as pd

    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups must hold one label per row ({n_rows}); got shape {labels.shape}")
    missing = pd.isna(labels)
    if missing.any():
        raise ValueError(
            f"groups is missing in row {int(missing.argmax())} ({int(missing.sum())} such rows); "
            "every row needs a label"
        )
    return labels


def refuse_dates(table: Any, what: str) -> None:
    """Refuse dates and durations, which NumPy would turn into counts of nanoseconds.

    Examples
    --------
    >>> import pandas as pd
    >>> refuse_dates(pd.DataFrame({"age": [70], "visit": [pd.Timestamp("2026-11-16")]}), "X")
    Traceback (most recent call last):
    ValueError: column 'visit' of X holds dates or durations; turn them into numbers first, ...
    """
    for position, dtype in enumerate(_types_of(table)):
        if _is_temporal(dtype):
            columns = column_names(table)
            where = what if columns is None else f"column {columns[position]!r} of {what}"
            raise ValueError(
                f"{where} holds dates or durations; turn them into numbers first, such as days "
                "since the first visit"
            )


def without_mask(table: Any) -> Any:
    """A masked array with NaN for masked entries; anything else as it is.

    Examples
    --------
    >>> without_mask(np.ma.masked_equal([1, -999, 3], -999))
    array([ 1., nan,  3.])
    """
    if not isinstance(table, np.ma.MaskedArray) or not np.ma.is_masked(table):
        return table
    real = table.dtype if table.dtype.kind in "fc" else np.float64
    return np.ma.filled(table.astype(real), np.nan)


def first_not_a_number(table: Any) -> tuple[tuple[int, ...], Any] | None:
    """Place and value of the first entry that is no number; None in rows of different lengths.

    Examples
    --------
    >>> first_not_a_number([[1, 2.5], [3, "high"]])
    ((1, 1), 'high')
    """
    try:
        entries = np.asarray(table, dtype=object)
    except ValueError:
        return None
    for index, value in np.ndenumerate(entries):
        try:
            float(value)
        except (TypeError, ValueError):
            return index, value
    return None


def column_names(table: Any) -> list[str] | None:
    """The names of the columns of a data frame or an Arrow table; None of anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"MMSE": [30], 2: [1]})), column_names(np.ones((2, 2)))
    (['MMSE', '2'], None)
    """
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None else [str(name) for name in columns]


def listed(names: Iterable[object], shown: int = 5) -> str:
    """Name the first few in a message, and count the rest.

    Examples
    --------
    >>> listed(["a", "b", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    quoted = [repr(name) for name in names]
    rest = len(quoted) - shown
    return ", ".join(quoted[:shown]) + (f" and {rest} more" if rest > 0 else "")


def with_names(X: Any) -> Any:
    """A data frame whose names scikit-learn reads; anything else as it is.

    Before version 1.9 scikit-learn finds no names in data frames of polars 2.0, and would accept
    their columns in any order.
    """
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(X, polars.DataFrame) or hasattr(X, "__dataframe__"):
        return X
    import pandas as pd

    return pd.DataFrame(np.asarray(X), columns=column_names(X))


def _types_of(table: Any) -> list[Any]:
    """The types of the columns of a data frame, or the one type of an array or a series."""
    if hasattr(table, "column_names"):  # Arrow
        return list(table.schema.types)
    if hasattr(table, "columns"):
        return list(table.dtypes)
    return [getattr(table, "dtype", None)]


def _is_temporal(dtype: Any) -> bool:
    """Whether a type of NumPy, pandas, polars or Arrow is one of dates, times or durations."""
    of_polars = getattr(dtype, "is_temporal", lambda: False)
    if of_polars() or getattr(dtype, "kind", None) in ("M", "m"):
        return True
    return type(dtype).__module__.startswith("pyarrow") and str(dtype).startswith(_ARROW_TIMES)
