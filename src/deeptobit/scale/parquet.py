"""Parquet files, read again for every pass: rows of numbers to learn from, tables of any cells."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray, listed
from deeptobit.extras import require
from deeptobit.scale.source import Block, LocalSource, RowSource

ARROW = (".arrow", ".feather")
_NAMES_SHOWN = 10
_NUMBERS = ("integer", "floating", "boolean", "decimal", "null")  # types of pyarrow
_SHORT = ("integer", "floating", "boolean", "timestamp")  # cells of fixed size
_BUFFER_BYTES = 2**16


@dataclass(frozen=True)
class Columns:
    """The roles of columns."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    lower: dict[str, str]
    upper: dict[str, str]
    group: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        """Refuse a column in two roles, and bounds of columns that are not targets."""
        if not self.targets:
            raise ValueError("targets is empty: name at least one column to predict")
        if not self.features:
            raise ValueError("there is no column left to predict from; name some as features")
        for name in self._roles:
            if self._roles.count(name) > 1:
                raise ValueError(f"column {name!r} is named twice; each has one role")
        for side, bounds in (("lower", self.lower), ("upper", self.upper)):
            for target in bounds:
                if target not in self.targets:
                    raise ValueError(f"{side} names {target!r}, which is not among the targets")

    def check(self, schema: Any, keys: Collection[str], path: str) -> None:
        """Refuse a file that lacks a column, or has one that does not hold numbers."""
        stored = [name for name in self.names if name not in keys]
        check_columns(schema, stored, path)
        for name in stored:
            kind = schema.field(name).type
            if name != self.group and not _is_any(kind, _NUMBERS):
                raise ValueError(
                    f"{path}: column {name!r} holds {kind}, not numbers. Encode it first, or name "
                    "the columns to use as features"
                )

    @property
    def names(self) -> list[str]:
        """All columns to read, each once."""
        others = [*self.lower.values(), *self.upper.values(), *([self.time] if self.time else [])]
        return list(dict.fromkeys([*self._roles, *others]))

    @property
    def _roles(self) -> list[str]:
        single = [name for name in (self.weight, self.group) if name]
        return [*self.features, *self.targets, *single]


def check_columns(schema: Any, names: Iterable[str], path: str) -> None:
    """Refuse a file that lacks a column."""
    for name in names:
        if name not in schema.names:
            there = listed(schema.names, _NAMES_SHOWN)
            raise ValueError(f"{path} has no column {name!r}; it has {there}")


@dataclass(frozen=True)
class ParquetShard:
    """Some row groups of one file; it can be sent to another process, which reads it there.

    Only the path travels: a fragment of pyarrow would open the file when it arrives, in a thread of
    the cluster that an error leaves waiting.

    Parameters
    ----------
    path : str
    filesystem : pyarrow.fs.FileSystem
    row_groups : tuple of int
    columns : Columns
    constants : dict
        Columns by which the data set is partitioned: the file has one value of each.
    singles : frozenset of str
        Columns that the file stores in single precision.
    n_rows, first_row, batch_rows : int
        ``first_row`` is counted within the file.
    """

    path: str
    filesystem: Any
    row_groups: tuple[int, ...]
    columns: Columns
    constants: dict[str, Any]
    singles: frozenset[str]
    n_rows: int
    first_row: int
    batch_rows: int

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows, with features and outcomes in the precision of the file."""
        columns = self.columns
        parts = [(len(names), self.kind(names)) for names in (columns.features, columns.targets)]
        n_bounds = len(columns.targets) * (bool(columns.lower) + bool(columns.upper))
        single = columns.weight, columns.group, columns.time
        parts.append((n_bounds + sum(name is not None for name in single), "float64"))
        return self.n_rows * sum(width * np.dtype(kind).itemsize for width, kind in parts)

    def kind(self, names: Sequence[str]) -> str:
        """The type of numbers that holds some columns as they are stored."""
        stored = {name for name in names if name not in self.constants}
        return "float32" if stored and stored <= self.singles else "float64"

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """The rows in their order, from the row number ``skip`` on."""
        names, first = [name for name in self.columns.names if name not in self.constants], 0
        with naming(self.path):
            open_file = partial(self.filesystem.open_input_file, self.path)
            for batch in batches(open_file, names, self.batch_rows, self.row_groups):
                if first + batch.num_rows > skip:
                    yield self._block(batch.slice(max(skip - first, 0)), max(first, skip))
                first += batch.num_rows

    def _block(self, batch: Any, first: int) -> Block:
        columns = self.columns
        weight, time = (
            None if name is None else self._matrix(batch, (name,))[:, 0]
            for name in (columns.weight, columns.time)
        )
        group = None
        if columns.group in self.constants:
            group = np.full(batch.num_rows, self.constants[columns.group])
        elif columns.group is not None:
            group = np.asarray(batch.column(columns.group).to_pandas())
        return Block(
            X=self._matrix(batch, columns.features),
            Y=self._matrix(batch, columns.targets),
            weight=weight,
            lower=self._bounds(batch, columns.lower),
            upper=self._bounds(batch, columns.upper),
            where=self.path,
            first_row=self.first_row + first,
            group=group,
            time=time,
        )

    def _matrix(self, batch: Any, names: Sequence[str]) -> FloatArray:
        """Some columns as numbers, (n, K); null is NaN."""
        kind = self.kind(names)  # in single precision there is half as much to transpose
        matrix = np.empty((len(names), batch.num_rows), dtype=kind)
        for index, name in enumerate(names):
            if name in self.constants:
                matrix[index] = self.constants[name]
            else:
                matrix[index] = batch.column(name).cast(kind).to_numpy(zero_copy_only=False)
        return matrix.T.astype(np.float64, order="C")

    def _bounds(self, batch: Any, bounds: Mapping[str, str]) -> FloatArray | None:
        """Bounds per entry, NaN where the target has none."""
        if not bounds:
            return None
        found = np.full((batch.num_rows, len(self.columns.targets)), np.nan)
        for target, name in bounds.items():
            found[:, self.columns.targets.index(target)] = self._matrix(batch, [name])[:, 0]
        return found


def batches(
    open_file: Callable[[], Any],
    names: list[str],
    batch_rows: int,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Some columns of a file, or of some of its row groups.

    A row group may be as large as memory: its columns are read through small buffers.
    """
    parquet = require("pyarrow.parquet", "scale")
    options = {"columns": names, "row_groups": row_groups, "use_threads": False}
    with open_file() as handle:
        file = parquet.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        yield from file.iter_batches(batch_rows, **options)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in errors of pyarrow."""
    arrow = require("pyarrow", "scale")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"{path} cannot be read as Parquet ({reason}); write the file again, or leave it out"
        ) from error


def _is_any(kind: Any, names: Iterable[str]) -> bool:
    types = require("pyarrow.types", "scale")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


_BATCH_ROWS = 16_384
_SHARD_ROWS = 131_072  # row groups are joined up to this: fewer tasks, and each takes a while
_INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index that has no name


class ParquetRows(LocalSource):
    """A Parquet file, a folder of them, or a partitioned data set, as rows to learn from.

    Memory holds some thousand rows at a time, whatever the size of the files. Rows come in the
    order of the files' names.

    Parameters
    ----------
    path : str, Path or list of them
        A file, a folder, or files.
    targets : sequence of str
        Columns of the outcomes, null or NaN where missing.
    features : sequence of str, optional
        By default all other columns of the files, those by which a data set is partitioned
        excepted.
    weight : str, optional
        Column of row weights.
    lower, upper : dict of str, optional
        Columns that hold bounds per entry, by target: detection limits that differ from row to
        row. Targets that are not named have the bounds of the model's constructor.
    group, time : str, optional
        Columns of the person and of the time of a visit, for :class:`MixedTobitRegressor`; time may
        be a feature as well. The rows of a person follow each other, in one file.
    batch_rows : int
        Rows in memory at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit import SubspaceTobitRegressor
    >>> from deeptobit.scale import ParquetRows
    >>> table = pd.DataFrame({"age": [60.0, 70.0, 80.0], "MMSE": [30, 28, 25]})
    >>> with TemporaryDirectory() as folder:
    ...     table.to_parquet(Path(folder, "cohort.parquet"))
    ...     rows = ParquetRows(folder, targets=["MMSE"])
    >>> rows.n_rows, rows.features
    (3, ('age',))
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        targets: Sequence[str],
        features: Sequence[str] | None = None,
        weight: str | None = None,
        lower: Mapping[str, str] | None = None,
        upper: Mapping[str, str] | None = None,
        group: str | None = None,
        time: str | None = None,
        batch_rows: int = _BATCH_ROWS,
    ) -> None:
        if batch_rows < 1:
            raise ValueError(f"batch_rows must be at least 1; got {batch_rows}")
        if isinstance(targets, str):
            raise ValueError(f"targets must be a list of columns; write targets=[{targets!r}]")
        dataset, lower, upper = open_dataset(path), dict(lower or {}), dict(upper or {})
        if features is None:
            taken = {*targets, weight, group, *lower.values(), *upper.values()}
            taken |= {*partition_keys(dataset)}
            features = [field.name for field in fields_of(dataset) if field.name not in taken]
        self.features, self.targets = tuple(features), tuple(targets)
        self.columns = Columns(self.features, self.targets, weight, lower, upper, group, time)
        self.shards = _shards(dataset, self.columns, int(batch_rows))

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' own counts."""
        return sum(shard.n_rows for shard in self.shards)

    def on_cluster(self) -> RowSource:
        """The same rows, read by the workers of the running ``dask.distributed.Client``."""
        from deeptobit.scale.cluster import ParquetPartitions

        return ParquetPartitions(self)

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in their order, from the row number ``skip`` on."""
        for shard in self.shards:
            if skip < shard.n_rows:
                yield from shard.blocks(skip)
            skip = max(skip - shard.n_rows, 0)


def open_dataset(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Any:
    """The data set at a path."""
    dataset = require("pyarrow.dataset", "scale")
    one = isinstance(path, (str, os.PathLike))
    paths = [os.fspath(path)] if one else [os.fspath(part) for part in path]  # type: ignore[arg-type, union-attr]
    for part in paths:
        if "://" not in part and not Path(part).exists():
            raise FileNotFoundError(f"there is no file or folder {part}")
    with naming(", ".join(paths)):
        kind = "ipc" if Path(paths[0]).suffix.lower() in ARROW else "parquet"
        return dataset.dataset(paths[0] if one else paths, format=kind, partitioning="hive")


def fields_of(dataset: Any) -> list[Any]:
    """Columns of a data set as the user named them."""
    return [field for field in dataset.schema if not _INDEX.fullmatch(field.name)]


def partition_keys(dataset: Any) -> list[str]:
    """Columns by which a data set is partitioned: folders are named by them, files lack them."""
    fragment = next(dataset.get_fragments(), None)
    stored = dataset.schema.names if fragment is None else fragment.physical_schema.names
    return [name for name in dataset.schema.names if name not in stored]


def fragments_of(dataset: Any) -> list[Any]:
    """The files of a data set in the order of their names."""
    return sorted(dataset.get_fragments(), key=lambda fragment: str(fragment.path))


def partition_values(fragment: Any, keys: Collection[str]) -> dict[str, Any]:
    """The values of some partition keys in the folders that hold a file; None if unknown."""
    dataset = require("pyarrow.dataset", "scale")
    found = dataset.get_partition_keys(fragment.partition_expression)
    return {key: found.get(key) for key in keys}


def _shards(dataset: Any, columns: Columns, batch_rows: int) -> tuple[ParquetShard, ...]:
    """All files in pieces; the columns of every file are checked."""
    keys = partition_keys(dataset)
    shards: list[ParquetShard] = []
    for fragment in fragments_of(dataset):
        with naming(fragment.path):
            physical, groups = fragment.physical_schema, fragment.row_groups
        columns.check(physical, keys, fragment.path)
        wanted, first = [key for key in keys if key in columns.names], 0
        constants = _constants(fragment, wanted, columns.group)
        singles = frozenset(field.name for field in physical if str(field.type) == "float")
        # People are whole in a file, not in a row group.
        most = _SHARD_ROWS if columns.group is None else sys.maxsize
        for ids, n_rows in _joined([group.num_rows for group in groups], most):
            place = str(fragment.path), fragment.filesystem
            shards.append(
                ParquetShard(*place, ids, columns, constants, singles, n_rows, first, batch_rows)
            )
            first += n_rows
    if not shards:
        raise ValueError("the Parquet files hold no rows")
    return tuple(shards)


def _constants(fragment: Any, keys: Collection[str], group: str | None) -> dict[str, Any]:
    """The values of some partition keys as numbers; that of ``group`` may be anything."""
    values = partition_values(fragment, keys)
    try:
        return {key: value if key == group else float(value) for key, value in values.items()}
    except (TypeError, ValueError):
        raise ValueError(
            f"{fragment.path}: the data set is partitioned by {', '.join(sorted(keys))}, whose "
            "values are not numbers here; leave it out of the features"
        ) from None


def _joined(sizes: Sequence[int], most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Consecutive row groups, joined up to that many rows."""
    ids, n_rows = list[int](), 0
    for index, size in enumerate(sizes):
        if ids and n_rows + size > most:
            yield tuple(ids), n_rows
            ids, n_rows = [], 0
        ids, n_rows = [*ids, index], n_rows + size
    if n_rows:
        yield tuple(ids), n_rows


class Frame(NamedTuple):
    """Some consecutive rows of a table.

    Parameters
    ----------
    cells : pyarrow.RecordBatch
    where : str
        Name of the file.
    lines : array of shape (n,)
        Their lines in that file, as if it were text and began with a header.
    row : int
        Number of the first row in the whole table.
    """

    cells: Any
    where: str
    lines: NDArray[np.int64]
    row: int


class ParquetTable:
    """A Parquet or Arrow file, a folder of them, or a partitioned data set, of any columns.

    Where :class:`ParquetRows` hands out numbers, this hands out cells as they are stored: words,
    dates and all. Rows come in the order of the files' names, the same in every pass.

    Parameters
    ----------
    path : str or Path
        A file or a folder.

    Attributes
    ----------
    columns : list of str
        Those by which a data set is partitioned come last.
    n_rows : int
    n_words : int
        Columns that hold neither numbers nor dates: their cells take more memory.

    Examples
    --------
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.scale import ParquetTable
    >>> cells = pd.DataFrame({"age": [60.0, 70.0, 80.0], "sex": ["f", "m", "f"]})
    >>> with TemporaryDirectory() as folder:
    ...     cells.to_parquet(Path(folder, "cohort.parquet"))
    ...     table = ParquetTable(folder)
    ...     frames = [frame.cells["sex"].to_pylist() for frame in table.frames(["sex"], 2)]
    >>> table.columns, table.n_rows, table.n_words, frames
    (['age', 'sex'], 3, 1, [['f', 'm'], ['f']])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        dataset = open_dataset(path)
        self._fragments = fragments_of(dataset)
        self._keys = partition_keys(dataset)
        fields = fields_of(dataset)
        self.columns = [str(field.name) for field in fields]
        self.n_rows = 0
        for fragment in self._fragments:
            with naming(str(fragment.path)):
                self.n_rows += int(fragment.count_rows())
        self.n_words = sum(not _is_any(field.type, _SHORT) for field in fields)

    def frames(self, columns: Sequence[str] | None, batch_rows: int) -> Iterator[Frame]:
        """Some columns of all rows, at most ``batch_rows`` rows at a time."""
        arrow, row = require("pyarrow", "scale"), 0
        names = self.columns if columns is None else columns
        for fragment in self._fragments:
            path, line = str(fragment.path), 2
            stored = [name for name in names if name not in self._keys]
            check_columns(fragment.physical_schema, stored, path)
            constants = partition_values(fragment, [key for key in self._keys if key in names])
            with naming(path):
                for batch in self._batches(fragment, stored, batch_rows):
                    n_rows = batch.num_rows
                    cells = batch.select(stored)
                    for name, value in constants.items():
                        cells = cells.append_column(name, arrow.repeat(value, n_rows))
                    lines = np.arange(line, line + n_rows)
                    yield Frame(cells, os.path.basename(path), lines, row)
                    line, row = line + n_rows, row + n_rows

    def _batches(self, fragment: Any, names: list[str], batch_rows: int) -> Iterator[Any]:
        if fragment.format.default_extname == "parquet":
            return batches(fragment.open, names, batch_rows)
        options = {"batch_readahead": 1, "use_threads": False}
        return iter(fragment.to_batches(columns=names, batch_size=batch_rows, **options))
