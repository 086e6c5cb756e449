"""A piece of a Parquet file, which any process can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.scale._blocks import Block

_NAMES_SHOWN = 10
_BUFFER_BYTES = 2**16


@dataclass(frozen=True)
class Columns:
    """Which columns are what."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    lower: dict[str, str]
    upper: dict[str, str]

    def __post_init__(self) -> None:
        """Refuse a column in two roles, and bounds of what is no target."""
        if not self.targets:
            raise ValueError("targets is empty: name at least one column to predict")
        roles = [*self.features, *self.targets, *([self.weight] if self.weight else [])]
        for name in roles:
            if roles.count(name) > 1:
                raise ValueError(f"column {name!r} is named twice; each has one role")
        for side, bounds in (("lower", self.lower), ("upper", self.upper)):
            for target in bounds:
                if target not in self.targets:
                    raise ValueError(f"{side} names {target!r}, which is not among the targets")

    def with_features(self, features: tuple[str, ...]) -> Columns:
        """The same with features."""
        if not features:
            raise ValueError("there is no column left to predict from; name some as features")
        return Columns(features, self.targets, self.weight, self.lower, self.upper)

    def check(self, schema: Any, elsewhere: list[str], path: str) -> None:
        """Refuse a file that lacks a column, or has one that does not hold numbers."""
        for name in self.names:
            if name in elsewhere:
                continue
            if name not in schema.names:
                raise ValueError(f"{path} has no column {name!r}; it has {listed(schema.names)}")
            kind = schema.field(name).type
            if not _is_number(kind):
                raise ValueError(
                    f"{path}: column {name!r} holds {kind}, not numbers. Encode it before, or name "
                    "the columns to use as features"
                )

    @property
    def names(self) -> list[str]:
        """All columns to read, each once."""
        roles = [*self.features, *self.targets, *([self.weight] if self.weight else [])]
        return list(dict.fromkeys([*roles, *self.lower.values(), *self.upper.values()]))


@dataclass(frozen=True)
class ParquetShard:
    """Some row groups of one file; it can be sent to another process, which reads it there.

    Parameters
    ----------
    fragment : pyarrow.dataset.ParquetFileFragment
        The file.
    row_groups : tuple of int
    columns : Columns
    constants : dict of float
        Columns by which the data set is partitioned: the file has one value of each.
    singles : frozenset of str
        Columns that the file stores in single precision.
    n_rows, first_row, batch_rows : int
        ``first_row`` is counted within the file.
    """

    fragment: Any
    row_groups: tuple[int, ...]
    columns: Columns
    constants: dict[str, float]
    singles: frozenset[str]
    n_rows: int
    first_row: int
    batch_rows: int

    @property
    def path(self) -> str:
        """The path of the file."""
        return str(self.fragment.path)

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows, with features and outcomes in the precision of the file."""
        columns = self.columns
        parts = [(len(names), self.kind(names)) for names in (columns.features, columns.targets)]
        n_bounds = len(columns.targets) * (bool(columns.lower) + bool(columns.upper))
        parts.append((n_bounds + (columns.weight is not None), "float64"))
        return self.n_rows * sum(width * np.dtype(kind).itemsize for width, kind in parts)

    def kind(self, names: Sequence[str]) -> str:
        """The type of numbers that holds some columns as they are stored."""
        stored = {name for name in names if name not in self.constants}
        return "float32" if stored and stored <= self.singles else "float64"

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """The rows in their order, from the row number ``skip`` on."""
        names = [name for name in self.columns.names if name not in self.constants]
        row = 0
        with naming(self.path), open_file(self.fragment) as file:
            batches = file.iter_batches(
                self.batch_rows, row_groups=list(self.row_groups), columns=names, use_threads=False
            )
            for batch in batches:
                first, row = row, row + batch.num_rows
                if row > skip:
                    yield self._block(batch.slice(max(skip - first, 0)), max(first, skip))

    def _block(self, batch: Any, first: int) -> Block:
        columns = self.columns
        shape = batch.num_rows, len(columns.targets)
        weight = None if columns.weight is None else self._matrix(batch, (columns.weight,))[:, 0]
        return Block(
            X=self._matrix(batch, columns.features),
            Y=self._matrix(batch, columns.targets),
            weight=weight,
            lower=self._bounds(batch, columns.lower, shape),
            upper=self._bounds(batch, columns.upper, shape),
            where=self.path,
            first_row=self.first_row + first,
        )

    def _matrix(self, batch: Any, names: Sequence[str]) -> FloatArray:
        """Some columns as numbers, (n, K); null is NaN."""
        kind = self.kind(names)  # in single precision there is half as much to turn around
        matrix = np.empty((len(names), batch.num_rows), dtype=kind)
        for index, name in enumerate(names):
            if name in self.constants:
                matrix[index] = self.constants[name]
            else:
                matrix[index] = batch.column(name).cast(kind).to_numpy(zero_copy_only=False)
        return matrix.T.astype(np.float64, order="C")

    def _bounds(
        self, batch: Any, bounds: Mapping[str, str], shape: tuple[int, int]
    ) -> FloatArray | None:
        """Bounds per entry, NaN where the target has none."""
        if not bounds:
            return None
        found = np.full(shape, np.nan)
        for target, name in bounds.items():
            found[:, self.columns.targets.index(target)] = self._matrix(batch, [name])[:, 0]
        return found


@contextmanager
def open_file(fragment: Any) -> Iterator[Any]:
    """A file to read batches from.

    A row group may be as large as memory: its columns are read through small buffers.
    """
    parquet = require("pyarrow.parquet", "scale")
    with fragment.open() as handle:
        yield parquet.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in whatever pyarrow has to say."""
    arrow = require("pyarrow", "scale")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"{path} cannot be read as Parquet ({reason}); write the file again, or leave it out"
        ) from error


def _is_number(kind: Any) -> bool:
    types = require("pyarrow.types", "scale")
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def listed(names: Sequence[str]) -> str:
    """Name the first few, and count the rest."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(repr, names[:_NAMES_SHOWN])) + more
