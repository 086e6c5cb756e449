"""A source and its reader: checked rows, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic

from deeptobit.scale._blocks import Block, RowReader
from deeptobit.scale._source import RowSource, S, sum_of
from deeptobit.solvers.online import RawRows


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
