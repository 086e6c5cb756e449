"""Outcomes and bounds as users write them, read and checked.

Bounds are a number, one per task, a dict by target name or ``None``; or one per entry. Errors name
the target, the number of rows and the first of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from deeptobit.arrays import (
    BoolArray,
    FloatArray,
    column_names,
    first_not_a_number,
    refuse_dates,
    without_mask,
)

_LARGEST = 1e150  # beyond this, squares overflow
_ROWS_SHOWN = 5

BoundsLike: TypeAlias = (
    float | Sequence[float | None] | Mapping[Any, float | None] | ArrayLike | None
)


def task_bounds(
    lower: BoundsLike, upper: BoundsLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """One lower and one upper bound per task; −inf and +inf where a side is open.

    Parameters
    ----------
    lower, upper : number, sequence of T, dict or Series by target name, or None
        ``None`` (also inside a sequence or dict) is an open side; a dict may leave names out.
    names : sequence of str
        The T target names.

    Returns
    -------
    lower, upper : arrays of shape (T,)

    Examples
    --------
    >>> task_bounds(0, {"MMSE": 30}, ["MMSE", "errors"])
    (array([0., 0.]), array([30., inf]))
    """
    low = _one_bound_per_task(lower, names, "lower")
    high = _one_bound_per_task(upper, names, "upper")
    for task in np.flatnonzero(~(low < high)).tolist():
        raise ValueError(
            f"target {names[task]!r}: the lower bound {low[task]:g} is not below the upper bound "
            f"{high[task]:g}"
        )
    return low, high


def by_name(values: Any) -> Any:
    """A Series whose index holds names as the dict that it is; anything else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> by_name(pd.Series({"MMSE": 30, "ADAS": 70})), by_name(pd.Series([30, 70])).tolist()
    ({'MMSE': 30, 'ADAS': 70}, [30, 70])
    """
    named = _is_series(values) and any(isinstance(label, str) for label in values.index)
    return values.to_dict() if named else values


def by_target(values: Any, names: Sequence[str], what: str) -> Any:
    """Values by the targets' names, which are strings, as a dict; anything else as it is.

    A column 0 of a data frame is the target ``"0"``, and so is the key 0. A Series of numbers
    for labels is by name if these are names of targets, and in the order of the targets if not.

    Parameters
    ----------
    values : Any
        A mapping or a Series by name, or what a user may write instead.
    names : sequence of str
        The T target names.
    what : str
        What the values are, for errors.

    Examples
    --------
    >>> by_target({0: 30, 1: None}, ["0", "1"], "upper"), by_target(30, ["0", "1"], "upper")
    ({'0': 30, '1': None}, 30)
    """
    if _is_series(values):
        labels = [str(label) for label in values.index]
        if not (isinstance(by_name(values), dict) or (labels and set(labels) <= set(names))):
            return values
    elif not isinstance(values, Mapping):
        return values
    found: dict[str, Any] = {}
    for key, value in values.items():
        if str(key) in found:
            raise ValueError(f"{what} names target {str(key)!r} twice")
        found[str(key)] = value
    return found


def entry_bounds(bound: ArrayLike, n_samples: int, names: Sequence[str], side: str) -> FloatArray:
    """Per-entry bounds of shape (N, T), checked.

    Examples
    --------
    >>> entry_bounds([0.5, 0.1], 2, ["assay"], "lower")
    array([[0.5],
           [0.1]])
    """
    entries = by_entry(
        bound, _as_floats(bound, side, _open(side)), (n_samples, len(names)), names, side
    )
    if np.isnan(entries).any():
        row, task = np.argwhere(np.isnan(entries))[0]
        raise ValueError(
            f"{side} is NaN in row {row}, column {task}; write -inf or inf where there is no bound"
        )
    _refuse_large(entries, names, side)
    return entries


def by_entry(
    given: Any, values: FloatArray, shape: tuple[int, int], names: Sequence[str], what: str
) -> FloatArray:
    """The values that are given for every entry of Y, (N, T), in the order of the targets."""
    columns = [str(name) for name in getattr(given, "columns", names)]
    if columns != list(names) and sorted(columns) == sorted(names):
        raise ValueError(
            f"the columns of {what} are {', '.join(columns)}, but the targets are "
            f"{', '.join(names)}, in this order"
        )
    found = values[:, None] if values.ndim == 1 and shape[1] == 1 else values
    if found.shape != shape:
        raise ValueError(f"{what} must have the shape of Y, {shape}; got {values.shape}")
    return found


def _one_bound_per_task(bound: BoundsLike, names: Sequence[str], side: str) -> FloatArray:
    values = one_per_task(bound, names, side, default=_open(side))
    if np.isnan(values).any():
        name = names[int(np.flatnonzero(np.isnan(values))[0])]
        raise ValueError(f"{side} bound of target {name!r} is NaN; use None for an open side")
    _refuse_large(values[None], names, side)
    return values


def one_per_task(values: Any, names: Sequence[str], what: str, default: float) -> FloatArray:
    """Numbers (T,) from one number, one per task, or a dict by target name; None is the default.

    Examples
    --------
    >>> one_per_task({"MMSE": 30}, ["MMSE", "ADAS"], "upper", np.inf)
    array([30., inf])
    """
    values = by_target(values, names, what)
    if isinstance(values, dict):
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(
                f"{what} names unknown target(s) {', '.join(map(repr, unknown))}; "
                f"the targets are {', '.join(map(repr, names))}"
            )
        values = [values.get(name) for name in names]
    found = _as_floats(values, what, default)
    if found.ndim == 0:
        found = np.full(len(names), found)
    if found.shape != (len(names),):
        raise ValueError(
            f"{what} must be a number, a dict by target name or one value per target "
            f"({len(names)}); got {found.size} values of shape {found.shape}"
        )
    return found


def _is_series(values: Any) -> bool:
    return hasattr(values, "index") and hasattr(values, "to_dict")


def _refuse_large(bounds: FloatArray, names: Sequence[str], side: str) -> None:
    """Refuse bounds (N, T) whose squares overflow; some people write 1e300 for an open side."""
    large = np.isfinite(bounds) & (np.abs(bounds) > _LARGEST)
    for row, task in np.argwhere(large)[:1].tolist():
        raise ValueError(
            f"{side} bound of target {names[task]!r} is too large ({bounds[row, task]:g}); use "
            "None for an open side, or rescale the target"
        )


def _open(side: str) -> float:
    return -np.inf if side == "lower" else np.inf


def _as_floats(given: object, what: str, default: float) -> FloatArray:
    """The numbers in an array of their own; None is the default."""
    values = np.asarray(without_mask(given), dtype=object)
    try:
        return np.where(values == np.array(None), default, values).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold numbers or None; got {given!r}") from None


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
    low = np.where(values <= lower, -np.inf, np.minimum(values, upper))
    return low, np.where(values >= upper, np.inf, np.maximum(values, lower))


def _first_rows(rows: NDArray[np.intp]) -> str:
    shown = ", ".join(str(row) for row in rows[:_ROWS_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > _ROWS_SHOWN else ''}"


def check_order(lower: FloatArray, upper: FloatArray, names: Sequence[str]) -> None:
    """Bounds must be in order in every row.

    Examples
    --------
    >>> check_order(np.array([0.0]), np.array([0.0]), ["MMSE"])
    Traceback (most recent call last):
        ...
    ValueError: target 'MMSE': the lower bound is not below the upper bound in 1 row(s) (row 0)
    """
    wrong = np.atleast_2d(~(lower < upper))
    for task in np.flatnonzero(wrong.any(axis=0)).tolist():
        rows = np.flatnonzero(wrong[:, task])
        raise ValueError(
            f"target {names[task]!r}: the lower bound is not below the upper bound in "
            f"{len(rows)} row(s) ({_first_rows(rows)})"
        )


def refuse_outside(
    values: FloatArray, lower: FloatArray, upper: FloatArray, names: Sequence[str], advice: str
) -> None:
    """A value beyond its bound is an error that names target, count and first rows.

    ``advice`` begins with "or": what can be done beside correcting the data or the bound.
    """
    for side, compare, bound in (
        ("below its lower", np.less, lower),
        ("above its upper", np.greater, upper),
    ):
        outside = compare(values, bound)
        for task in np.flatnonzero(outside.any(axis=0)).tolist():
            rows = np.flatnonzero(outside[:, task])
            at = np.broadcast_to(bound, values.shape)[rows[0], task]
            raise ValueError(
                f"target {names[task]!r}: {len(rows)} value(s) lie {side} bound "
                f"({_first_rows(rows)}; the first is {values[rows[0], task]:g}, the bound {at:g}). "
                f"Correct the data or the bound, {advice}"
            )


def check_intervals(
    low: FloatArray, high: FloatArray, missing: BoolArray, names: Sequence[str]
) -> None:
    """An interval must not be empty, nor known on one side and missing on the other."""
    impossible = np.isposinf(low) | np.isneginf(high)
    wrong = ~missing & (~(low <= high) | impossible)
    for task in np.flatnonzero(wrong.any(axis=0)).tolist():
        rows = np.flatnonzero(wrong[:, task])
        raise ValueError(
            f"target {names[task]!r}: {len(rows)} interval(s) are empty or half missing "
            f"({_first_rows(rows)}; the first is [{low[rows[0], task]:g}, "
            f"{high[rows[0], task]:g}]); low must not exceed high, and both are NaN where an entry "
            "is missing"
        )


def read_outcomes(
    Y: Any, names: Sequence[str] | None, *, what: str = "Y", infinite: bool = False
) -> tuple[FloatArray, tuple[str, ...], bool]:
    """Outcomes as a fresh (N, T) float array, their names, and whether they were 1-d."""
    if names is None:
        name = getattr(Y, "name", None)
        single = [name] if isinstance(name, str) and name else []  # polars writes "" for no name
        columns = column_names(Y)
        names = single if columns is None else columns
    found = tuple(str(name) for name in names)
    values = _outcomes_as_floats(Y, what)
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


def _outcomes_as_floats(Y: Any, what: str) -> FloatArray:
    if Y is None:
        raise ValueError(f"{what} is None: this requires y to be passed, but the target y is None")
    if issparse(Y):
        raise TypeError(f"{what} is sparse; pass a dense array: zeros are values, NaN is missing")
    refuse_dates(Y, what)
    try:
        values = np.asarray(without_mask(Y))
        if values.dtype == object:  # pandas writes <NA> for what is missing
            import pandas as pd

            values = np.where(pd.isna(values), np.nan, values)
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        found, where = first_not_a_number(Y), "its rows have different lengths"
        if found is not None:
            index, value = found
            places = [f"{axis} {at}" for axis, at in zip(("row", "column"), index, strict=False)]
            where = f"found {value!r} at {', '.join(places)}" if places else f"got {value!r}"
        raise ValueError(f"{what} must hold numbers (NaN where missing); {where}") from None
    raise ValueError(f"Complex data not supported in {what}")
