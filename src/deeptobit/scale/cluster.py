"""Rows of Dask collections, and Parquet files read by the workers of a cluster."""

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from itertools import chain, islice
from threading import Lock
from typing import Any, Self, TypeVar
from weakref import WeakSet

import numpy as np

from deeptobit.arrays import FloatArray, column_names, is_dask
from deeptobit.extras import require
from deeptobit.scale.parquet import ParquetRows, ParquetShard
from deeptobit.scale.source import Block, RowSource, S, read_ahead, sum_of
from deeptobit.targets import default_names

Predict = Callable[..., Any]
_FAN_IN = 8
_HEAD_ROWS = 1000
T = TypeVar("T")


class DaskRows(RowSource):
    """Partitions that Dask computes wherever they are needed, again for every pass.

    Sums over partitions are made where the partitions are, and added up in a tree; what travels is
    as small as the model. Nothing is scattered: a partition that is lost with a worker is computed
    again from its source.

    Parameters
    ----------
    partitions : sequence
        Delayed objects with a method ``blocks``.
    features, targets : sequences of str
    n_rows : int, optional
        Counted if it is not known.
    one_dimensional, named : bool
        Whether y is 1-d, and whether the features' names are the user's.
    """

    def __init__(
        self,
        partitions: Sequence[Any],
        features: Sequence[str],
        targets: Sequence[str],
        *,
        n_rows: int | None = None,
        one_dimensional: bool = False,
        named: bool = True,
    ) -> None:
        self.partitions = tuple(partitions)
        self.features, self.targets = tuple(features), tuple(targets)
        self.one_dimensional, self.named = one_dimensional, named
        self._known_rows = n_rows

    @classmethod
    def of_collections(cls, X: Any, y: Any, **optional: Any) -> Self:
        """Arrays or DataFrames of Dask, partitioned alike.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (N, D)
        y : Dask array, DataFrame or Series of shape (N,) or (N, T)
        optional
            ``sample_weight``, ``groups``, the people, and ``time`` of visits: arrays or Series of
            shape (N,). ``lower``, ``upper``: arrays or DataFrames of shape (N, T).
        """
        parts = {"X": X, "y": y, **optional}
        given = {name: part for name, part in parts.items() if part is not None}
        if "y" not in given:
            raise ValueError("y is None: this requires y to be passed, but the target y is None")
        for name, part in given.items():
            if not is_dask(part):
                raise TypeError(
                    f"X is a Dask collection, but {name} is a {type(part).__name__}; pass all of "
                    "them as Dask collections, partitioned alike"
                )
        delayed = [_delayed_blocks(part, X, name) for name, part in given.items()]
        make = _delayed(_compute_rows)
        partitions = [
            make(f"partition {index}", **dict(zip(given, blocks, strict=True)))
            for index, blocks in enumerate(zip(*delayed, strict=True))
        ]
        n_rows = X.shape[0]  # not a number, or lazy, where Dask does not know it
        return cls(
            partitions,
            column_names(X) or [f"x{column}" for column in range(X.shape[1])],
            _target_names(y),
            n_rows=int(n_rows) if isinstance(n_rows, (int, np.integer)) else None,
            one_dimensional=y.ndim == 1,
            named=column_names(X) is not None,
        )

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._known_rows if self._known_rows is not None else self.total(_count_rows)

    def heads(self) -> Iterator[Block]:
        """The first rows of every partition that has any."""
        for partition in self.partitions:
            yield from _apply(partition, _head).compute()

    def total(self, task: Callable[[Iterable[Block]], S]) -> S:
        """Add up a task's results over all partitions, where they are."""
        shared = _delayed(task)  # once in the graph, not once per partition
        parts = [_apply(partition, _skip_empty, shared) for partition in self.partitions]
        while len(parts) > 1:
            starts = range(0, len(parts), _FAN_IN)
            parts = [_delayed(_add)(parts[start : start + _FAN_IN]) for start in starts]
        found: S | None = parts[0].compute()
        if found is None:
            raise ValueError("the partitions hold no rows")
        return found

    def fold(self, step: Callable[[Iterable[Block], T], T], starts: Sequence[T]) -> list[T]:
        """Pass states through groups of consecutive partitions, one group per start."""
        shared = _delayed(step)
        groups = np.array_split(np.arange(len(self.partitions)), len(starts))
        ends = []
        for members, start in zip(groups, starts, strict=True):
            state = _delayed(start)
            for member in members.tolist():
                state = _apply(self.partitions[member], shared, state)
            ends.append(state)
        return list(require("dask", "scale").compute(*ends))


def _delayed(value: Any, **options: Any) -> Any:
    return require("dask", "scale").delayed(value, pure=False, **options)


def _apply(partition: Any, function: Any, *arguments: Any) -> Any:
    """A delayed call with the blocks of a partition, and with arguments that may be delayed."""
    return _delayed(_with_blocks)(partition, function, *arguments)


def _with_blocks(content: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    keep_freed_memory()
    return function(read_ahead(iter(content.blocks())), *arguments)


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.X) for block in blocks)


def _head(blocks: Iterable[Block]) -> list[Block]:
    """The beginning of the first block, if there is one."""
    return [
        Block._make(part[:_HEAD_ROWS] if isinstance(part, np.ndarray) else part for part in block)
        for block in islice(blocks, 1)
    ]


def _skip_empty(blocks: Iterator[Block], task: Callable[[Iterable[Block]], S]) -> S | None:
    """A task's result, or None where there are no rows."""
    first = next(blocks, None)
    return None if first is None else task(chain([first], blocks))


def _add(parts: Sequence[S | None]) -> S | None:
    known = [part for part in parts if part is not None]
    return sum_of(known) if known else None


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 64 MB of freed memory, where the C library is glibc.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_`` at 64 kB. The arrays of a block, which
    are larger, would then be mapped, cleared and unmapped again and again: half of the CPU time of
    a fit by rounds.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-1, 64 * 2**20)  # M_TRIM_THRESHOLD
        mallopt(-3, 32 * 2**20)  # M_MMAP_THRESHOLD, the most that glibc takes


# Partitions of Dask collections as blocks of rows.


def _compute_rows(where: str, X: Any, y: Any, **optional: Any) -> Block:
    """A partition from its parts; all but X and y are optional."""
    found = {
        name: np.asarray(part) if name == "groups" else _numbers(part, where, name)
        for name, part in {"X": X, "y": y, **optional}.items()
    }
    X = found["X"]
    for part in found.values():
        if len(part) != len(X):
            what = f"{where}: X has {len(X)} rows, but y, the weights or bounds have {len(part)}"
            raise ValueError(f"{what}; partition them alike")
    Y = found["y"] if found["y"].ndim > 1 else found["y"][:, None]
    weight, lower, upper = map(found.get, ("sample_weight", "lower", "upper"))
    return Block(X, Y, weight, lower, upper, where, 0, found.get("groups"), found.get("time"))


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
                    "not numbers; encode it first"
                ) from None
        raise ValueError(f"{where}: {name} must hold numbers; convert it first") from None


def _target_names(y: Any) -> Sequence[str]:
    if y.ndim == 1:  # the name of an array is Dask's own
        name = None if hasattr(y, "rechunk") else y.name
        return [name] if isinstance(name, str) else default_names(1)
    return column_names(y) or default_names(y.shape[1])


# Shards of Parquet files that workers cache, so that later passes need not read them.

_MEMORY_SHARE = 1 / 3  # of a worker's; from 60 % on Dask would move what it holds to disk
_LOCK = Lock()  # a worker may have several threads


class CachedShard:
    """The rows of a shard in memory, in the precision of the file.

    Parameters
    ----------
    n_bytes : int
        Their size.
    rows : sequence of Block
        Features (n, D) and outcomes (n, T) may be in single precision.
    """

    def __init__(self, n_bytes: int, rows: tuple[Block, ...] = ()) -> None:
        self._n_bytes, self._rows = n_bytes, rows
        with _LOCK:
            _CACHED.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """By way of the constructor, so that a copy from another worker is counted."""
        return CachedShard, (self._n_bytes, self._rows)

    def __sizeof__(self) -> int:
        """Bytes of the rows, from which Dask estimates the cost of moving them."""
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


_CACHED: WeakSet[CachedShard] = WeakSet()  # those of this process


def cache_shard(shard: ParquetShard) -> CachedShard | ParquetShard:
    """A task: the rows of a shard, or the shard itself if its worker lacks the memory for them."""
    keep_freed_memory()
    cached = CachedShard(shard.n_bytes)
    if cached_bytes() > _MEMORY_SHARE * _memory_limit():
        return shard
    cached.read(shard)
    return cached


def cached_bytes() -> int:
    """Bytes of rows that this process caches, or is about to."""
    with _LOCK:
        return sum(cached.__sizeof__() for cached in _CACHED)


def _memory_limit() -> float:
    """Bytes that this task's worker may use; 0 outside a worker, and in one without a limit."""
    try:
        worker: Any = require("distributed", "scale").get_worker()
    except ValueError:
        return 0.0
    return float(worker.memory_manager.memory_limit or 0)


class ParquetPartitions(DaskRows):
    """Pieces of Parquet files, which workers read themselves.

    Parameters
    ----------
    rows : ParquetRows
    """

    def __init__(self, rows: ParquetRows) -> None:
        self._shards = rows.shards
        partitions = [_delayed(shard, traverse=False) for shard in rows.shards]
        super().__init__(partitions, rows.features, rows.targets, n_rows=rows.n_rows)

    @contextmanager
    def cached(self) -> Iterator[DaskRows]:
        """The same rows, cached by workers as far as they have memory.

        What Dask holds of a partition are its rows, or the shard where memory is short. They are
        read again if they are lost with a worker, and released in the end.
        """
        # A task that depends on nothing goes to an idle worker; those that follow go to its rows.
        tasks = [partial(cache_shard, shard) for shard in self._shards]
        persist = require("dask", "scale").persist
        persisted = persist(*(_delayed(task, traverse=False)() for task in tasks))
        rows = DaskRows(persisted, self.features, self.targets, n_rows=self.n_rows)
        del persisted
        try:
            yield rows
        finally:
            rows.partitions = ()  # Dask releases what nothing refers to


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
    width = () if one_dimensional else (len(targets),)
    if hasattr(X, "columns"):
        given = predict, tuple(targets), width
        meta = _framed(np.empty((0, *width)), None, targets)
        return X.map_partitions(_predict_frame, *given, meta=meta, **options)
    X = X.rechunk({1: -1})
    return require("dask.array", "scale").map_blocks(
        predict,
        X,
        dtype=np.float32 if X.dtype == np.float32 else np.float64,
        chunks=(X.chunks[0], *((size,) for size in width)),
        drop_axis=1 if one_dimensional else None,
        meta=np.empty((0, *width)),
        **options,
    )


def _predict_frame(
    X: Any, predict: Predict, targets: Sequence[str], width: tuple[int, ...], **options: Any
) -> Any:
    found = predict(X, **options) if len(X) else np.empty((0, *width))
    return _framed(found, X.index, targets)


def _framed(found: Any, index: Any, targets: Sequence[str]) -> Any:
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=index, name=targets[0])
    return pd.DataFrame(found, index=index, columns=list(targets))
