"""Where rows come from, pass after pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, Protocol, TypeVar

from deeptobit.scale._blocks import Block


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
    def kept(self) -> Iterator[RowSource]:
        """The same rows for several passes; whoever has memory for them may keep them meanwhile."""
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
