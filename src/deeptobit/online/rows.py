"""Rows as they come, the blocks the solver works on, its iterate and the plan of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import FloatArray


class RawRows(NamedTuple):
    """Rows as the user gave them, dense and in double precision; NaN marks a missing entry."""

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray


def rows_with_outcomes(X: Any, low: Any, high: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    """The rows that have a positive weight and at least one known outcome.

    Examples
    --------
    >>> Y = np.array([[1.0], [np.nan], [3.0]])
    >>> X, low, high, weight = rows_with_outcomes(np.eye(3), Y, Y, np.array([1.0, 1.0, 0.0]))
    >>> X, low, weight
    (array([[1., 0., 0.]]), array([[1.]]), array([1.]))
    """
    empty = np.isnan(low[:, 0])
    empty[empty] = np.isnan(low[empty]).all(axis=1)
    if weight is not None:
        empty |= np.asarray(weight) == 0.0
    if not empty.any():
        return X, low, high, weight
    return X[~empty], low[~empty], high[~empty], None if weight is None else weight[~empty]


@dataclass
class RowBuffer:
    """Rows that wait until their block is full.

    Blocks depend on the number of rows alone, not on how many come at a time.

    Parameters
    ----------
    parts : list of RawRows
        The rows of the unfinished block.
    n_rows : int
        Their number.
    n_total : int
        Number of rows so far, those in finished blocks included.

    Examples
    --------
    >>> buffer, Y = RowBuffer(), np.ones((5, 1))
    >>> [len(rows.weight) for rows in buffer.blocks(Y, Y, Y, None, lambda: 2)], buffer.n_rows
    ([2, 2], 1)
    """

    parts: list[RawRows] = field(default_factory=list)
    n_rows: int = 0
    n_total: int = 0

    def blocks(
        self, X: Any, low: Any, high: Any, weight: Any, size: Callable[[], int]
    ) -> Iterator[RawRows]:
        """Add rows, and yield each block as soon as it is full.

        Rows without weight or without any outcome are skipped.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
        low, high : arrays of shape (n, T)
        weight : array of shape (n,), optional
        size : callable
            Number of rows of the block that is being filled.
        """
        X, low, high, weight = rows_with_outcomes(X, low, high, weight)
        first, n_rows = 0, X.shape[0]
        self.n_total += n_rows
        while first < n_rows:
            wanted = size()
            rows = _dense_rows(X, low, high, weight, slice(first, first + wanted - self.n_rows))
            first += len(rows.weight)
            if len(rows.weight) == wanted:
                yield rows
                continue
            # A copy, because the caller may reuse its arrays.
            self.parts.append(RawRows(*(np.array(array) for array in rows)))
            self.n_rows += len(rows.weight)
            if self.n_rows == wanted:
                yield self.take()

    def take(self) -> RawRows:
        """Remove the rows of the unfinished block and return them."""
        parts, self.parts, self.n_rows = self.parts, [], 0
        columns = zip(*parts, strict=True)
        return RawRows(*(np.concatenate(column) for column in columns))


def _dense_rows(X: Any, low: Any, high: Any, weight: Any, rows: slice) -> RawRows:
    sparse = bool(issparse(X))
    x = X[rows].toarray() if sparse else X[rows]
    share = np.ones(len(low[rows])) if weight is None else weight[rows]
    parts = (x, low[rows], high[rows], share)
    return RawRows(*(np.ascontiguousarray(part, dtype=np.float64) for part in parts))


class Block(NamedTuple):
    """Some rows in standard units, with their entries sorted by kind.

    Parameters
    ----------
    X : array of shape (n, D)
    low, high : arrays of shape (n, T)
    edge, sign : arrays of shape (n, T)
        y and 0 where observed, the finite end and ±1 where censored on one side, else NaN and 0.
    weight : array of shape (n,)
    closed : int
        Number of entries with two different finite ends.
    """

    X: FloatArray
    low: FloatArray
    high: FloatArray
    edge: FloatArray
    sign: FloatArray
    weight: FloatArray
    closed: int


class Iterate(NamedTuple):
    """Parameters, changed in place: V (R, D), Ut (R, T), intercept (T,), sigma (T,)."""

    V: FloatArray
    Ut: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    def copy(self) -> Iterate:
        """The same numbers in other memory, row by row."""
        return Iterate(*(part.copy(order="C") for part in self))

    def set_to(self, other: Iterate) -> None:
        """Take over the numbers of another iterate."""
        for mine, theirs in zip(self, other, strict=True):
            mine[...] = theirs

    def is_finite(self) -> bool:
        """Whether every number is."""
        return all(bool(np.isfinite(part.sum())) for part in self)  # NaN and infinity spread


class RowPlan(NamedTuple):
    """Steps for the rows of one block.

    Parameters
    ----------
    Z : array of shape (n, D)
        Rows times the feature preconditioner.
    step, forget : arrays of shape (n,) or (number of batches,)
        γ of the parameters and f of the running moments.
    inverse : array of shape (R, R)
        G⁻¹, the preconditioner of the sketch.
    spread : float
        ρ ≥ 1, how far the curvature of a row may exceed its mean.
    lowest, highest : arrays of shape (T,)
        Limits of σ.
    learns_intercept, learns_sigma : float
        1 or 0.
    every : int
        Rows between two moves of the averages; the size of a batch.
    """

    Z: FloatArray
    step: FloatArray
    forget: FloatArray
    inverse: FloatArray
    spread: float
    lowest: FloatArray
    highest: FloatArray
    learns_intercept: float
    learns_sigma: float
    every: int


class GradientPlan(NamedTuple):
    """Given steps for the rows of one block.

    Parameters
    ----------
    step, forget : arrays of shape (n,)
        Step of U and V, and f of the running noise scale.
    alpha : float
        Ridge on U and V.
    learns_intercept, learns_sigma : float
        1 or 0.
    """

    step: FloatArray
    forget: FloatArray
    alpha: float
    learns_intercept: float
    learns_sigma: float


def rows_of(block: Block, rows: slice) -> Block:
    """Some rows of a block."""
    X, low, high, edge, sign, weight, closed = block
    return Block(X[rows], low[rows], high[rows], edge[rows], sign[rows], weight[rows], closed)


def tasks_of(block: Block, tasks: slice) -> Block:
    """Some tasks of a block."""
    X, low, high, edge, sign, weight, closed = block
    low, high, edge, sign = (array[:, tasks] for array in (low, high, edge, sign))
    return Block(X, low, high, edge, sign, weight, closed)


def first_half(block: Block) -> Block:
    """The first half of the rows, at least one."""
    return rows_of(block, slice(0, max(1, len(block.X) // 2)))


def bounded_entries(block: Block) -> FloatArray:
    """Weight of the entries that are observed or an interval, by task, (T,)."""
    bounded = ~np.isnan(block.low) & (block.sign == 0.0)
    return np.asarray(block.weight @ bounded.astype(np.float64))


def count_entries(block: Block) -> tuple[float, FloatArray]:
    """Weight of the known entries, and of the observed ones of each task, (T,)."""
    known = (~np.isnan(block.low)).astype(np.float64)
    exact = (block.low == block.high).astype(np.float64)
    return float((block.weight @ known).sum()), block.weight @ exact


# Work that is decoupled by task, in pieces that are shared among threads.

Result = TypeVar("Result")

PIECE = 512  # tasks; fixed, so that results do not depend on the number of threads


@dataclass(frozen=True)
class TaskPieces:
    """Slices of tasks, and threads to share them, if any."""

    pieces: list[slice]
    pool: ThreadPoolExecutor | None

    def map(self, work: Callable[[slice], Result]) -> list[Result]:
        """Results of the pieces, in their order."""
        if self.pool is None:
            return [work(piece) for piece in self.pieces]
        # Each with the caller's context: how NumPy treats an overflow is part of it.
        waiting = [self.pool.submit(copy_context().run, work, piece) for piece in self.pieces]
        return [future.result() for future in waiting]


def by_pieces(n_tasks: int, n_threads: int, work: Callable[[slice], FloatArray]) -> FloatArray:
    """Results of all pieces side by side.

    Examples
    --------
    >>> by_pieces(3, 1, lambda piece: np.ones((2, piece.stop - piece.start))).shape
    (2, 3)
    """
    if n_tasks <= PIECE:
        return work(slice(0, n_tasks))
    with task_pieces(n_tasks, n_threads) as tasks:
        return np.hstack(tasks.map(work))


@contextmanager
def task_pieces(n_tasks: int, n_threads: int) -> Iterator[TaskPieces]:
    """The pieces of so many tasks, with threads while the context lasts.

    Examples
    --------
    >>> with task_pieces(1000, n_threads=2) as tasks:
    ...     tasks.map(lambda piece: (piece.start, piece.stop))
    [(0, 512), (512, 1000)]
    """
    pieces = [slice(at, min(at + PIECE, n_tasks)) for at in range(0, n_tasks, PIECE)]
    if n_threads == 1 or len(pieces) == 1:
        yield TaskPieces(pieces, None)
        return
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        yield TaskPieces(pieces, pool)
