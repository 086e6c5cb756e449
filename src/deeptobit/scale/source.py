"""Sources of rows that are read again for every pass, and sums over their rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.online import RawRows
from deeptobit.targets import CensoredTargets

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
        The file or partition, for error messages.
    first_row : int
        Number of the first row in it.
    group, time : arrays of shape (n,), optional
        The person of every row, and when the visit was.
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None
    where: str
    first_row: int
    group: Any = None
    time: FloatArray | None = None

    def blocks(self) -> "Iterator[Block]":
        """The block itself, as the only one of its partition; none where it has no rows."""
        return iter([self] if len(self.X) else [])


@dataclass(frozen=True)
class RowReader:
    """Checks blocks and finds which of their outcomes are censored.

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
            "Drop or impute such rows first"
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


S = TypeVar("S")  # anything that can be added up


def sum_of(parts: Iterable[S]) -> S:
    """Add up at least one part."""
    return reduce(add, parts)


class RowSource(ABC):
    """Rows that can be read again and again, block by block.

    This is all that data beyond memory must offer. Every result is a sum over blocks, so that it
    does not matter which process reads them and in which order.
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
    def heads(self) -> Iterator[Block]:
        """Blocks from the beginning on; of a part that is elsewhere only its first rows."""

    def first(self) -> Block:
        """The first rows there are."""
        for block in self.heads():
            return block
        raise ValueError("the partitions hold no rows")

    @abstractmethod
    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """Add up a task's results over all shards; the task sees the blocks of one shard."""

    @contextmanager
    def cached(self) -> "Iterator[RowSource]":
        """The same rows for several passes, in memory meanwhile where there is enough of it."""
        yield self


class LocalSource(RowSource):
    """A source whose blocks this process reads itself."""

    @abstractmethod
    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in their order, from the row number ``skip`` on."""

    def heads(self) -> Iterator[Block]:
        """All blocks."""
        return self.blocks()

    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """The task's result over all blocks."""
        return task(read_ahead(self.blocks()))


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the next one is read while the last one is processed."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


@dataclass(frozen=True)
class Rows:
    """The rows of a source, checked.

    Parameters
    ----------
    source : RowSource
    reader : RowReader
    """

    source: RowSource
    reader: RowReader

    def total(self, task: Callable[[RawRows], S]) -> S:
        """Add up a task's results over all rows."""
        return self.source.total(partial(_read_and_sum, self.reader, task))


def _read_and_sum(reader: RowReader, task: Callable[[RawRows], S], blocks: Iterable[Block]) -> S:
    return sum_of(task(reader(block)) for block in blocks)
