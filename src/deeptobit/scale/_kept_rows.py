"""Rows that stay with the worker that read them, so that later passes need not read."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np

from deeptobit.extras import require
from deeptobit.scale._allocation import keep_freed_memory
from deeptobit.scale._blocks import Block
from deeptobit.scale._parquet_shard import ParquetShard

_SHARE = 1 / 3  # of a worker's memory; from 60 % on Dask would move what it holds to disk
_LOCK = Lock()  # a worker may have several threads


class RowsInMemory:
    """The rows of a shard in memory, in the precision of the file.

    Parameters
    ----------
    n_bytes : int
        What they take.
    rows : sequence of Block
        Features (n, D) and outcomes (n, T) may be in single precision.
    """

    def __init__(self, n_bytes: int, rows: tuple[Block, ...] = ()) -> None:
        self._n_bytes, self._rows = n_bytes, rows
        with _LOCK:
            _KEPT.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """By way of the constructor, which counts what arrives."""
        return RowsInMemory, (self._n_bytes, self._rows)

    def __sizeof__(self) -> int:
        """Bytes of the rows: what Dask thinks it costs to move them."""
        return self._n_bytes

    def read(self, shard: ParquetShard) -> None:
        """Read the rows; single precision loses nothing where the file has no more."""
        features, targets = map(shard.kind, (shard.columns.features, shard.columns.targets))
        self._rows = tuple(
            block._replace(X=block.X.astype(features), Y=block.Y.astype(targets))
            for block in shard.blocks()
        )

    def blocks(self) -> Iterator[Block]:
        """The rows in their order, in double precision."""
        for block in self._rows:
            yield block._replace(X=block.X.astype(np.float64), Y=block.Y.astype(np.float64))


_KEPT: WeakSet[RowsInMemory] = WeakSet()  # those of this process


def hold_in_memory(shard: ParquetShard) -> RowsInMemory | ParquetShard:
    """A task: the rows of a shard, or the shard itself if its worker has no room for them."""
    keep_freed_memory()
    kept = RowsInMemory(shard.n_bytes)
    if kept_bytes() > _SHARE * _memory_limit():
        return shard
    kept.read(shard)
    return kept


def kept_bytes() -> int:
    """Bytes of rows that this process keeps, or is about to."""
    with _LOCK:
        return sum(kept.__sizeof__() for kept in _KEPT)


def _memory_limit() -> float:
    """Bytes that this task's worker may use; 0 outside a worker, and in one without a limit."""
    try:
        worker: Any = require("distributed", "scale").get_worker()
    except ValueError:
        return 0.0
    return float(worker.memory_manager.memory_limit or 0)
