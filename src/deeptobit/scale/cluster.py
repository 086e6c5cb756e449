"""Rows of Dask collections, and Parquet files read by the workers of a cluster."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.scale.parquet import ParquetShard
from deeptobit.scale.source import Block, RowSource, S, read_ahead

if TYPE_CHECKING:
    from deeptobit.scale.parquet import ParquetRows


# Memory that one block frees and the next one needs.

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of mallopt's parameters in malloc.h
_KEPT_BYTES = 64 * 2**20
_LARGEST_KEPT = 32 * 2**20  # the most that glibc takes


@cache
def keep_freed_memory() -> bool:
    """Let this process keep some freed memory, where the C library is glibc; whether it does.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_`` at 64 kB. The arrays of a block, which
    are larger, are then mapped, cleared and unmapped again and again, which is a third of a
    worker's time. Now at most 64 MB stay with the worker.

    Examples
    --------
    >>> keep_freed_memory() in (True, False)
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _LARGEST_KEPT))
    return all(mallopt(parameter, size) == 1 for parameter, size in settings)


# Partitions of Dask collections as blocks of rows.


class Readable(Protocol):
    """What hands out blocks."""

    def blocks(self) -> Iterable[Block]:
        """Blocks of rows."""
        ...


@dataclass(frozen=True)
class Partition:
    """Rows that a task can ask for.

    Parameters
    ----------
    content : Readable or a delayed one
    where : str
    """

    content: Any
    where: str

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A delayed call with the blocks, and with arguments that may be delayed."""
        delayed = require("dask", "scale").delayed
        return delayed(_with_blocks, pure=False)(self.content, function, *arguments)


def _with_blocks(content: Readable, function: Callable[..., Any], *arguments: Any) -> Any:
    keep_freed_memory()
    return function(read_ahead(iter(content.blocks())), *arguments)


@dataclass(frozen=True)
class ArrayRows:
    """The rows of one partition, computed."""

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None
    where: str

    def blocks(self) -> Iterator[Block]:
        """One block, or none where there are no rows."""
        if len(self.X):
            yield Block(self.X, self.Y, self.weight, self.lower, self.upper, self.where, 0)


def partitions_of(X: Any, y: Any, weight: Any, lower: Any, upper: Any) -> dict[str, Any]:
    """What :class:`DaskRows` needs to know of collections that belong together."""
    parts = {"X": X, "y": y, "sample_weight": weight, "lower": lower, "upper": upper}
    given = {name: part for name, part in parts.items() if part is not None}
    if "y" not in given:
        raise ValueError("y is None: this requires y to be passed, but the target y is None")
    for name, part in given.items():
        if not hasattr(part, "__dask_graph__"):
            raise TypeError(
                f"X is a Dask collection, but {name} is a {type(part).__name__}; pass all of them "
                "as Dask collections, partitioned alike"
            )
    delayed = {name: _delayed_blocks(part, X, name) for name, part in given.items()}
    make = require("dask", "scale").delayed(_make_rows, pure=False)
    partitions = []
    for index in range(len(delayed["X"])):
        where = f"partition {index}"
        blocks = {name: found[index] for name, found in delayed.items()}
        partitions.append(Partition(make(where, **blocks), where))
    n_rows = X.shape[0]  # not a number, or lazy, where Dask does not know it
    return {
        "partitions": partitions,
        "features": _names(X) or [f"x{column}" for column in range(X.shape[1])],
        "targets": _target_names(y),
        "n_rows": int(n_rows) if isinstance(n_rows, (int, np.integer)) else None,
        "one_dimensional": y.ndim == 1,
        "named": _names(X) is not None,
    }


def _delayed_blocks(part: Any, X: Any, name: str) -> list[Any]:
    """The partitions of a collection, each delayed; arrays are cut as X is."""
    if hasattr(part, "rechunk"):
        if part.ndim == 2:
            part = part.rechunk({1: -1})
        if hasattr(X, "rechunk") and part.shape[0] == X.shape[0]:
            part = part.rechunk({0: X.chunks[0]})
    found = list(np.ravel(part.to_delayed()))
    if len(found) != part.npartitions:
        # Few columns of small files are read together, and then no longer as those of X are.
        found = list(np.ravel(part.to_delayed(optimize_graph=False)))
    expected = X.numblocks[0] if hasattr(X, "rechunk") else X.npartitions
    if len(found) != expected:
        raise ValueError(
            f"{name} has {len(found)} partitions of rows, but X has {expected}; repartition one of "
            "them so that they are partitioned alike"
        )
    return found


def _make_rows(
    where: str,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    lower: Any = None,
    upper: Any = None,
) -> ArrayRows:
    Y = _numbers(y, where, "y")
    found = ArrayRows(
        _numbers(X, where, "X"),
        Y[:, None] if Y.ndim == 1 else Y,
        None if sample_weight is None else _numbers(sample_weight, where, "sample_weight"),
        None if lower is None else _numbers(lower, where, "lower"),
        None if upper is None else _numbers(upper, where, "upper"),
        where,
    )
    for part in (found.Y, found.weight, found.lower, found.upper):
        if part is not None and len(part) != len(found.X):
            raise ValueError(
                f"{where}: X has {len(found.X)} rows, but y, the weights or bounds have "
                f"{len(part)}; partition them alike"
            )
    return found


def _numbers(part: Any, where: str, name: str) -> FloatArray:
    """An array or a frame as numbers; the first column that holds none is named."""
    try:
        if hasattr(part, "to_numpy"):
            return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        for column in getattr(part, "columns", ()):
            if part[column].dtype.kind not in "biuf":
                raise ValueError(
                    f"{where}: column {column!r} of {name} holds {part[column].dtype}, "
                    "not numbers; encode it before"
                ) from None
        raise ValueError(f"{where}: {name} must hold numbers; convert it before") from None


def _names(X: Any) -> list[str] | None:
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def _target_names(y: Any) -> list[str]:
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    if y.ndim == 1:
        name = getattr(y, "name", None)
        return [name if isinstance(name, str) and not hasattr(y, "rechunk") else "y"]
    n_tasks = y.shape[1]
    return ["y"] if n_tasks == 1 else [f"y{task}" for task in range(n_tasks)]


# Rows that stay with the worker that read them, so that later passes need not read.

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


# Predictions for Dask collections: lazy, one partition at a time.

Predict = Callable[..., Any]


def predict_lazily(
    predict: Predict, X: Any, targets: Sequence[str], *, one_dimensional: bool, **options: Any
) -> Any:
    """A Dask collection of predictions, partitioned as X is; nothing is computed yet.

    Parameters
    ----------
    predict : function
        From features (n, D) in memory and ``options`` to predictions (n, T), or (n,).
    X : Dask array or DataFrame of shape (N, D)
    targets : sequence of str
        Names of the T tasks: the columns, if X is a DataFrame.
    one_dimensional : bool
        Whether predictions have no task axis.

    Returns
    -------
    Dask array of shape (N, T) or (N,), or a DataFrame or Series if X is a DataFrame
    """
    if hasattr(X, "columns"):
        meta = _framed(np.empty((0, len(targets))), None, targets, one_dimensional)
        return X.map_partitions(
            _predict_frame, predict, tuple(targets), one_dimensional, meta=meta, **options
        )
    array = require("dask.array", "scale")
    X = X.rechunk({1: -1})
    single = X.dtype == np.float32
    chunks = (X.chunks[0],) if one_dimensional else (X.chunks[0], (len(targets),))
    return array.map_blocks(
        _predict_block,
        X,
        predict,
        dtype=np.float32 if single else np.float64,
        chunks=chunks,
        drop_axis=1 if one_dimensional else None,
        meta=np.empty((0,) if one_dimensional else (0, 0)),
        **options,
    )


def _predict_block(X: Any, predict: Predict, **options: Any) -> Any:
    return predict(X, **options)


def _predict_frame(
    X: Any, predict: Predict, targets: Sequence[str], one_dimensional: bool, **options: Any
) -> Any:
    shape = (0,) if one_dimensional else (0, len(targets))
    found = predict(X, **options) if len(X) else np.empty(shape)
    return _framed(found, X.index, targets, one_dimensional)


def _framed(found: Any, index: Any, targets: Sequence[str], one_dimensional: bool) -> Any:
    import pandas as pd

    if one_dimensional:
        return pd.Series(np.ravel(found), index=index, name=targets[0])
    return pd.DataFrame(found, index=index, columns=list(targets))
