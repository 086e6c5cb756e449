"""Errors in outcomes and bounds, each naming the target, the count and the first rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray

_ROWS_SHOWN = 5


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
        if not np.isfinite(bound).any():
            continue
        outside = compare(values, bound)
        if not outside.any():
            continue
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
