"""Rows that wait until their block is full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import FloatArray


class RawRows(NamedTuple):
    """Rows as the user gave them, dense and in double precision; NaN marks a missing entry."""

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray

    def part(self, rows: slice) -> RawRows:
        """Some of the rows."""
        return RawRows(*(array[rows] for array in self))


def telling_rows(X: Any, low: Any, high: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    """The rows that have a weight and a known outcome: others count as if they were not there.

    Examples
    --------
    >>> Y = np.array([[1.0], [np.nan], [3.0]])
    >>> X, low, high, weight = telling_rows(np.eye(3), Y, Y, np.array([1.0, 1.0, 0.0]))
    >>> X, low, weight
    (array([[1., 0., 0.]]), array([[1.]]), array([1.]))
    """
    silent = np.isnan(low[:, 0])
    silent[silent] = np.isnan(low[silent]).all(axis=1)
    if weight is not None:
        silent |= np.asarray(weight) == 0.0
    if not silent.any():
        return X, low, high, weight
    return X[~silent], low[~silent], high[~silent], None if weight is None else weight[~silent]


def read_rows(X: Any, low: Any, high: Any, weight: Any, rows: slice) -> RawRows:
    """Some rows of what ``learn`` was given."""
    sparse = bool(issparse(X))
    x = X[rows].toarray() if sparse else X[rows]
    start, end = _dense(low[rows]), _dense(high[rows])
    share = np.ones(len(start)) if weight is None else _dense(weight[rows])
    return RawRows(_dense(x), start, end, share)


def _dense(array: Any) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)


@dataclass
class Pending:
    """The rows of an unfinished block."""

    parts: list[RawRows] = field(default_factory=list)
    n_rows: int = 0

    def add(self, rows: RawRows) -> None:
        """Keep a copy: the caller may reuse its arrays."""
        self.parts.append(RawRows(*(np.array(array) for array in rows)))
        self.n_rows += len(rows.weight)

    def take(self) -> RawRows:
        """All rows, and forget them."""
        parts, self.parts, self.n_rows = self.parts, [], 0
        if len(parts) == 1:
            return parts[0]
        columns = zip(*parts, strict=True)
        return RawRows(*(np.concatenate(column) for column in columns))
