"""Outcomes from arrays and data frames, with their names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from deeptobit.arrays import FloatArray, column_names, refuse_dates, without_mask


def read_outcomes(
    Y: Any, names: Sequence[str] | None, *, what: str = "Y", infinite: bool = False
) -> tuple[FloatArray, tuple[str, ...], bool]:
    """Outcomes as a fresh (N, T) float array, their names, and whether they were 1-d."""
    found = _names_of(Y) if names is None else tuple(str(name) for name in names)
    values = _as_floats(Y, what)
    one_dimensional = values.ndim == 1
    if one_dimensional:
        values = values[:, None]
    if values.ndim != 2:
        raise ValueError(
            f"{what} must be 1-d or 2-d (rows by targets); got {values.ndim} dimensions"
        )
    if values.shape[1] == 0:
        raise ValueError(f"{what} has no column: there is no target to learn")
    found = found or default_names(values.shape[1])
    if len(found) != values.shape[1]:
        raise ValueError(
            f"{what} has {values.shape[1]} target(s) but {len(found)} name(s) were given"
        )
    if len(set(found)) < len(found):
        twice = sorted({name for name in found if found.count(name) > 1})
        raise ValueError(f"target names must differ; {', '.join(map(repr, twice))} occur(s) twice")
    if not infinite and np.isinf(values).any():
        row, task = np.argwhere(np.isinf(values))[0]
        raise ValueError(
            f"{what} contains infinity or a value too large: target {found[task]!r}, row {row}. "
            "Missing entries are NaN; entries known only as intervals go through "
            "CensoredTargets.from_intervals"
        )
    return values, found, one_dimensional


def default_names(n_tasks: int) -> tuple[str, ...]:
    """Names of targets that came without any."""
    return ("y",) if n_tasks == 1 else tuple(f"y{task}" for task in range(n_tasks))


def _names_of(Y: Any) -> tuple[str, ...]:
    columns = column_names(Y)
    if columns is not None:
        return tuple(columns)
    name = getattr(Y, "name", None)
    return (name,) if isinstance(name, str) and name else ()  # polars names with "" what has none


def _as_floats(Y: Any, what: str) -> FloatArray:
    if Y is None:
        raise ValueError(f"{what} is None: this requires y to be passed, but the target y is None")
    if issparse(Y):
        raise TypeError(f"{what} is sparse; pass a dense array: zeros are values, NaN is missing")
    refuse_dates(Y, what)
    try:
        values = np.asarray(without_mask(Y))
        if values.dtype == object:
            values = _without_na(values)
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must hold numbers (NaN where missing); {_first_word(Y)}"
        ) from None
    raise ValueError(f"Complex data not supported in {what}")


def _without_na(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """NaN for what the nullable types of pandas write as <NA>."""
    import pandas as pd

    return np.where(pd.isna(values), np.nan, values)


def _first_word(Y: Any) -> str:
    """Name the first entry that is not a number."""
    try:
        frame = np.asarray(Y, dtype=object)
    except ValueError:
        return "its rows have different lengths"
    for index, value in np.ndenumerate(frame):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"found {value!r} at row {index[0]}" + (
                f", column {index[1]}" if len(index) > 1 else ""
            )
    return "its rows have different lengths"
