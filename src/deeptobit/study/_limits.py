"""Bounds of predictions: those of the scales, or limits that a new table gives row by row."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._table import Table


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
