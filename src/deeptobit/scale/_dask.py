"""Rows of Dask collections, and Parquet files read by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from deeptobit.extras import require
from deeptobit.scale._blocks import Block
from deeptobit.scale._dask_partitions import Partition, partitions_of
from deeptobit.scale._kept_rows import hold_in_memory
from deeptobit.scale._source import RowSource, S

if TYPE_CHECKING:
    from deeptobit.scale._parquet import ParquetRows

_FAN_IN = 8
_HEAD_ROWS = 1000
T = TypeVar("T")


class DaskRows(RowSource):
    """Partitions that Dask computes wherever they are needed, again for every pass.

    Of those of Parquet files workers keep the rows meanwhile, as far as they have room.

    Sums over partitions are made where the partitions are, and added up in a tree; what travels is
    as small as the model. Nothing is scattered: a partition that is lost with a worker is computed
    again from where it came from.

    Parameters
    ----------
    partitions : sequence of Partition
    features, targets : sequences of str
    n_rows : int, optional
        Counted if it is not known.
    one_dimensional, named : bool
        Whether y is 1-d, and whether the features' names are the user's.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        features: Sequence[str],
        targets: Sequence[str],
        *,
        n_rows: int | None = None,
        one_dimensional: bool = False,
        named: bool = True,
    ) -> None:
        self._partitions = tuple(partitions)
        self.features, self.targets = tuple(features), tuple(targets)
        self.one_dimensional, self.named = one_dimensional, named
        self._known_rows = n_rows

    @classmethod
    def of_collections(
        cls, X: Any, y: Any, sample_weight: Any = None, lower: Any = None, upper: Any = None
    ) -> DaskRows:
        """Arrays or DataFrames of Dask, partitioned alike.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (N, D)
        y : Dask array, DataFrame or Series of shape (N,) or (N, T)
        sample_weight : Dask array or Series of shape (N,), optional
        lower, upper : Dask arrays or DataFrames of shape (N, T), optional
        """
        found = partitions_of(X, y, sample_weight, lower, upper)
        return cls(**found)

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self._partitions)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        if self._known_rows is None:
            self._known_rows = int(self.total(_Count()))
        return self._known_rows

    def first(self) -> Block:
        """The first rows there are."""
        for partition in self._partitions:
            block: Block | None = partition.apply(_head).compute()
            if block is not None:
                return block
        raise ValueError("the partitions hold no rows")

    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """Add up a task's results over all partitions, where they are."""
        delayed = require("dask", "scale").delayed
        shared = delayed(task, pure=False)  # once in the graph, not once per partition
        parts = [partition.apply(_skip_empty, shared) for partition in self._partitions]
        while len(parts) > 1:
            parts = [
                delayed(_add, pure=False)(parts[start : start + _FAN_IN])
                for start in range(0, len(parts), _FAN_IN)
            ]
        found: S | None = parts[0].compute()
        if found is None:
            raise ValueError("the partitions hold no rows")
        return found

    def fold(self, step: Callable[[T, Iterable[Block]], T], starts: Sequence[T]) -> list[T]:
        """Go through groups of consecutive partitions, as many as there are starts.

        A group's state goes from partition to partition.
        """
        dask = require("dask", "scale")
        shared = dask.delayed(step, pure=False)
        groups = np.array_split(np.arange(len(self._partitions)), len(starts))
        ends = []
        for members, start in zip(groups, starts, strict=True):
            state = dask.delayed(start, pure=False)
            for member in members.tolist():
                state = self._partitions[member].apply(_go_on, shared, state)
            ends.append(state)
        return list(dask.compute(*ends))


class ParquetPartitions(DaskRows):
    """Pieces of Parquet files, which workers read themselves.

    Parameters
    ----------
    rows : ParquetRows
    """

    def __init__(self, rows: ParquetRows) -> None:
        self._shards = rows.shards
        wrap = partial(require("dask", "scale").delayed, pure=False, traverse=False)
        partitions = [Partition(wrap(shard), shard.path) for shard in rows.shards]
        super().__init__(partitions, rows.features, rows.targets, n_rows=rows.n_rows)

    @contextmanager
    def kept(self) -> Iterator[DaskRows]:
        """The same rows, which workers keep as far as they have room.

        What Dask holds of a partition are its rows, or the shard where there is no room. They are
        read again if they are lost with a worker, and gone in the end.
        """
        dask = require("dask", "scale")
        wrap = partial(dask.delayed, pure=False, traverse=False)
        # A task that depends on nothing goes to whoever is free; those that follow go to its rows.
        persisted = dask.persist(
            *(wrap(partial(hold_in_memory, shard))() for shard in self._shards)
        )
        partitions = map(Partition, persisted, (shard.path for shard in self._shards))
        rows = DaskRows(list(partitions), self.features, self.targets, n_rows=self.n_rows)
        del persisted, partitions
        try:
            yield rows
        finally:
            rows._partitions = ()  # Dask lets go of what nobody refers to


class _Count:
    """The number of rows, as a sum."""

    def __call__(self, blocks: Iterable[Block]) -> float:
        return float(sum(len(block.X) for block in blocks))


def _head(blocks: Iterator[Block]) -> Block | None:
    for block in blocks:
        return block.part(slice(0, _HEAD_ROWS))
    return None


def _skip_empty(blocks: Iterator[Block], task: Callable[[Iterable[Block]], S]) -> S | None:
    """A task's result, or None where there are no rows."""
    for first in blocks:
        return task(chain([first], blocks))
    return None


def _go_on(blocks: Iterator[Block], step: Callable[[T, Iterable[Block]], T], state: T) -> T:
    return step(state, blocks)


def _add(parts: Sequence[S | None]) -> S | None:
    total: S | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask, which need not be installed to ask."""
    return hasattr(X, "__dask_graph__")
