"""Partitions of Dask collections as blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.scale._allocation import keep_freed_memory
from deeptobit.scale._blocks import Block
from deeptobit.scale._source import read_ahead


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
