"""Where rows come from, pass after pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.online import RawRows
from deeptobit.targets import CensoredTargets

# Rows as a source hands them out, and the same rows checked, with their censoring.

_LARGEST = 1e150  # beyond this, squares overflow


class Block(NamedTuple):
    """Some consecutive rows of a table.

    Parameters
    ----------
    X : array of shape (n, D)
    Y : array of shape (n, T)
        NaN where missing.
    weight : array of shape (n,), optional
    lower, upper : arrays of shape (n, T), optional
        Bounds per entry; NaN where those of the task hold.
    where : str
        What errors call the place the rows are from.
    first_row : int
        Number of the first row in that place.
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None
    where: str
    first_row: int

    def part(self, rows: slice) -> Block:
        """Some of the first rows."""
        weight, lower, upper = (
            None if part is None else part[rows] for part in (self.weight, self.lower, self.upper)
        )
        X, Y = self.X[rows], self.Y[rows]
        return Block(X, Y, weight, lower, upper, self.where, self.first_row)


@dataclass(frozen=True)
class RowReader:
    """Checks blocks and tells how their outcomes are censored.

    Parameters
    ----------
    features, targets : tuples of str
    lower, upper : arrays of shape (T,)
        Bounds of the tasks, where a block has none of its own.
    outside : {"raise", "clip"}
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    outside: Literal["raise", "clip"]

    def __call__(self, block: Block) -> RawRows:
        """The rows of positive weight.

        Examples
        --------
        >>> block = Block(np.ones((2, 1)), np.array([[0.0], [2.0]]), None, None, None, "a.pq", 0)
        >>> reader = RowReader(("x",), ("y",), np.zeros(1), np.full(1, np.inf), "raise")
        >>> reader(block).low
        array([[-inf],
               [  2.]])
        """
        self._check_features(block)
        try:
            targets = CensoredTargets.from_bounds(
                block.Y,
                self.lower,
                self.upper,
                entry_lower=_filled(block.lower, self.lower),
                entry_upper=_filled(block.upper, self.upper),
                names=self.targets,
                outside=self.outside,
            )
        except ValueError as error:
            since = f", counting rows from {block.first_row:,}" if block.first_row else ""
            raise ValueError(f"{block.where}{since}: {error}") from None
        weight = self._weights(block)
        rows = RawRows(block.X, targets.low, targets.high, weight)
        present = weight > 0.0
        return rows if present.all() else RawRows(*(array[present] for array in rows))

    def _check_features(self, block: Block) -> None:
        if block.X.min(initial=0.0) >= -_LARGEST and block.X.max(initial=0.0) <= _LARGEST:
            return
        wrong = ~(np.abs(block.X) <= _LARGEST)
        row, column = np.argwhere(wrong)[0].tolist()
        value = block.X[row, column]
        what = "NaN" if np.isnan(value) else f"a value that is not finite or too large ({value:g})"
        raise ValueError(
            f"{block.where}: feature {self.features[column]!r} is {what} in row "
            f"{block.first_row + row:,} ({int(wrong.sum())} such values in {len(wrong):,} rows). "
            "Drop or impute such rows before"
        )

    def _weights(self, block: Block) -> FloatArray:
        if block.weight is None:
            return np.ones(len(block.X))
        wrong = ~(np.isfinite(block.weight) & (block.weight >= 0.0))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{block.where}: weights must be finite and not negative; row "
                f"{block.first_row + row:,} has {block.weight[row]:g}"
            )
        return block.weight


def _filled(entries: FloatArray | None, tasks: FloatArray) -> FloatArray | None:
    return None if entries is None else np.where(np.isnan(entries), tasks, entries)


class Sum(Protocol):
    """What can be added up."""

    def __add__(self, other: Any, /) -> Any:
        """The sum of both."""
        ...


S = TypeVar("S", bound=Sum)


def sum_of(parts: Iterable[S]) -> S:
    """Add up at least one part."""
    return reduce(add, parts)


class RowSource(ABC):
    """Rows that can be read again and again, block by block.

    Nothing else is asked of data that do not fit into memory. Every result is a sum over blocks,
    so that it does not matter who reads them and in which order.
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    one_dimensional: bool = False  # whether y is, so that predictions drop the task axis
    named: bool = True  # whether the features' names are the user's

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def first(self) -> Block:
        """The first rows there are."""

    @abstractmethod
    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """Add up a task's results over all shards; the task sees the blocks of one shard."""

    @contextmanager
    def cached(self) -> Iterator[RowSource]:
        """The same rows for several passes, in memory meanwhile where there is enough of it."""
        yield self


class LocalSource(RowSource):
    """A source whose blocks this process reads itself."""

    @abstractmethod
    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in their order, from the row number ``skip`` on."""

    def first(self) -> Block:
        """The first rows there are."""
        return next(iter(self.blocks()))

    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """The task's result over all blocks."""
        return task(read_ahead(self.blocks()))


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the next one is read while the last one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


# A source and its reader: checked rows, and sums over them.


@dataclass(frozen=True)
class Rows:
    """The rows of a source as the solvers want them.

    Parameters
    ----------
    source : RowSource
    reader : RowReader
    """

    source: RowSource
    reader: RowReader

    def first(self) -> Block:
        """The first rows there are, checked."""
        block = self.source.first()
        self.reader(block)
        return block

    def total(self, task: Callable[[RawRows], S]) -> S:
        """Add up a task's results over all rows."""
        return self.source.total(ReadAndSum(self.reader, task))


@dataclass(frozen=True)
class ReadAndSum(Generic[S]):
    """A task for a shard: read its blocks and add up what another task makes of them."""

    reader: RowReader
    task: Callable[[RawRows], S]

    def __call__(self, blocks: Iterable[Block]) -> S:
        """The sum over the blocks of a shard."""
        return sum_of(self.task(self.reader(block)) for block in blocks)
