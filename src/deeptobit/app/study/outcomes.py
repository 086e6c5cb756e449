"""Targets of a study: values, bounds, limits that differ by row, flags of what is censored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit.app.study.config import Source, Study, TargetSettings
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.tables import Table, parse_flags, parse_numbers, split_limits
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.targets import CensoredTargets


class Entries(NamedTuple):
    """Targets of some rows as they are recorded; (N,) for one target, (N, T) for all.

    Parameters
    ----------
    values : array
        NaN where missing, the limit where censored.
    lower, upper : arrays
        Limits of every entry, ∓inf where open.
    """

    values: FloatArray
    lower: FloatArray
    upper: FloatArray


def read_outcomes(study: Study, table: Table) -> CensoredTargets:
    """All targets of a study as intervals."""
    entries = read_entries(study, table)
    for target, values in zip(study.targets, entries.values.T, strict=True):
        if np.isnan(values).all():
            raise study.source.error(
                ("targets", target.name),
                f"target {target.name!r} has no value at all; leave it out",
            )
    return targets_of(study, entries)


def read_entries(study: Study, table: Table) -> Entries:
    """All targets of the rows of a table, which may be some of many."""
    found = [_Reader(target, table, study.source).read() for target in study.targets]
    return Entries(*(np.column_stack(arrays) for arrays in zip(*found, strict=True)))


def targets_of(study: Study, entries: Entries) -> CensoredTargets:
    """Entries as intervals."""
    by_row_lower, by_row_upper = limits_by_row(study, entries)
    return CensoredTargets.from_bounds(
        entries.values,
        *task_bounds(study),
        entry_lower=by_row_lower,
        entry_upper=by_row_upper,
        names=[target.name for target in study.targets],
    )


def limits_by_row(study: Study, entries: Entries) -> tuple[FloatArray | None, FloatArray | None]:
    """Limits of every entry, (N, T), if one differs from the bounds of its scale."""
    lower, upper = task_bounds(study)
    if (entries.lower == lower).all() and (entries.upper == upper).all():
        return None, None
    return entries.lower, entries.upper


def task_bounds(study: Study) -> tuple[FloatArray, FloatArray]:
    """Bounds of the scales, (T,), ∓inf where open or different by row."""
    sides = (("lower", -np.inf), ("upper", np.inf))
    lower, upper = (
        np.array([_number(getattr(target, side), open_side) for target in study.targets])
        for side, open_side in sides
    )
    return lower, upper


def _number(bound: float | str | None, open_side: float) -> float:
    return float(bound) if isinstance(bound, int | float) else open_side


class _Reader:
    """One target of a table."""

    def __init__(self, target: TargetSettings, table: Table, source: Source) -> None:
        self.target, self.table, self.source = target, table, source

    def read(self) -> Entries:
        values, below, above = self._values()
        below = below | self._flags(self.target.below)
        above = above | self._flags(self.target.above)
        self._refuse(below & above, "is flagged both below and above detection")
        known = ~np.isnan(values) | below | above
        lower = self._limits("lower", -np.inf, known)
        upper = self._limits("upper", np.inf, known)
        # A flagged cell holds its own limit, or is blank and takes that of the row.
        lower = np.where(below, np.fmax(values, lower), lower)
        upper = np.where(above, np.fmin(values, upper), upper)
        self._refuse(below & np.isinf(lower), "is flagged below detection, but has no limit")
        self._refuse(above & np.isinf(upper), "is flagged above detection, but has no limit")
        values = np.where(below, lower, np.where(above, upper, values))
        self._refuse(known & ~(lower < upper), "has a lower limit that is not below the upper one")
        return Entries(self._inside(values, lower, upper), lower, upper)

    def _values(self) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Numbers, and where the cell says ``<`` or ``>``."""
        table, column = self.table, self.target.values
        values, wrong = table.parse(column)
        nowhere = np.zeros(len(table), dtype=np.bool_)
        if not wrong.any():
            return values, nowhere, nowhere
        bare, below, above = split_limits(table.text(column))
        values, wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)
        if wrong.any():
            found = table.text(column)[wrong].iloc[0]
            raise self._error(
                "column",
                f"must hold numbers (or limits such as <0.5); found {found!r} ({table.at(wrong)})",
            )
        return values, below, above

    def _flags(self, column: str | None) -> BoolArray:
        if column is None:
            return np.zeros(len(self.table), dtype=np.bool_)
        text = self.table.text(column)
        yes, unclear = parse_flags(text)
        if unclear.any():
            raise StudyError(
                f"{self.table.at(unclear)}: column {column!r} flags censored values of "
                f"{self.target.name!r} and must say yes or no (1 or 0, true or false); found "
                f"{text[unclear].iloc[0]!r}"
            )
        return yes

    def _limits(self, side: str, open_side: float, needed: BoolArray) -> FloatArray:
        """Limits of one side by row: the number, the column, or an open side."""
        bound = getattr(self.target, side)
        if not isinstance(bound, str):
            return np.full(len(self.table), open_side if bound is None else float(bound))
        limits = self.table.numbers(bound, f"the {side} limit of {self.target.name!r}, column")
        self._refuse(np.isnan(limits) & needed, f"has a value, but no {side} limit in {bound!r}")
        return np.where(np.isnan(limits), open_side, limits)

    def _inside(self, values: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        for side, outside, bound in (
            ("lower", values < lower, lower),
            ("upper", values > upper, upper),
        ):
            if self.target.outside == "error" and outside.any():
                raise self._error(
                    side,
                    f"has {int(outside.sum())} value(s) beyond its {side} bound "
                    f"({self.table.at(outside)}; the first is {values[outside][0]:g}, the bound "
                    f"{bound[outside][0]:g}). Correct the bound or the cells, list codes for "
                    "missing values in [data] missing, or write outside = 'clip'",
                )
        return np.clip(values, lower, upper)

    def _refuse(self, rows: BoolArray, what: str) -> None:
        if rows.any():
            raise self._error("", f"{what} in {int(rows.sum())} row(s) ({self.table.at(rows)})")

    def _error(self, key: str, what: str) -> StudyError:
        where = ("targets", self.target.name, *([key] if key else []))
        return self.source.error(where, f"target {self.target.name!r} {what}")


# Bounds of predictions: those of the scales, or limits that a new table gives row by row.


def read_limits(study: Study, table: Table) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of every row and target, (N, T), ∓inf where open.

    Where the study names a column of limits, a side is open in rows without one, and in all rows
    of a table that lacks the column.
    """
    lower = _side(study, table, "lower", -np.inf)
    upper = _side(study, table, "upper", np.inf)
    crossed = lower >= upper
    for task in np.flatnonzero(crossed.any(axis=0)).tolist():
        raise StudyError(
            f"{table.at(crossed[:, task])}: target {study.targets[task].name!r} has a lower limit "
            "that is not below the upper one"
        )
    return lower, upper


def _side(study: Study, table: Table, side: str, open_side: float) -> FloatArray:
    limits = np.full((len(table), len(study.targets)), open_side)
    for task, target in enumerate(study.targets):
        bound = getattr(target, side)
        if isinstance(bound, str) and bound in table.columns:
            by_row = table.numbers(bound, f"the {side} limit of {target.name!r}, column")
            limits[:, task] = np.where(np.isnan(by_row), open_side, by_row)
        elif isinstance(bound, int | float):
            limits[:, task] = bound
    return limits


# Piles of equal values at the edge of a column: the mark of a floor or a ceiling.

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
