"""What the online kernels work on: a block of rows, an iterate, and a plan for its steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray


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


class PlainPlan(NamedTuple):
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
