"""Rows of Parquet files, read again for every pass."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeptobit.extras import require
from deeptobit.scale._blocks import Block
from deeptobit.scale._parquet_shard import Columns, ParquetShard, naming
from deeptobit.scale._source import LocalSource

if TYPE_CHECKING:
    from deeptobit.scale._dask import DaskRows

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
        batch_rows: int = _BATCH_ROWS,
    ) -> None:
        if batch_rows < 1:
            raise ValueError(f"batch_rows must be at least 1; got {batch_rows}")
        if isinstance(targets, str):
            raise ValueError(f"targets must be a list of columns; write targets=[{targets!r}]")
        dataset = open_dataset(path)
        columns = Columns(
            features=(),
            targets=tuple(targets),
            weight=weight,
            lower=dict(lower or {}),
            upper=dict(upper or {}),
        )
        if features is None:
            keys = set(partition_keys(dataset))
            taken = {*columns.names, *keys}
            features = [field.name for field in fields_of(dataset) if field.name not in taken]
        columns = columns.with_features(tuple(features))
        self.columns = columns
        self.features, self.targets = columns.features, columns.targets
        self.shards = _shards(dataset, columns, int(batch_rows))

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' own counts."""
        return sum(shard.n_rows for shard in self.shards)

    def on_cluster(self) -> DaskRows:
        """The same rows, read by the workers of the running ``dask.distributed.Client``."""
        from deeptobit.scale._dask import ParquetPartitions

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
        return dataset.dataset(paths[0] if one else paths, format="parquet", partitioning="hive")


def fields_of(dataset: Any) -> list[Any]:
    """Columns of a data set as the user named them."""
    return [field for field in dataset.schema if not _INDEX.fullmatch(field.name)]


def partition_keys(dataset: Any) -> list[str]:
    """Columns by which a data set is partitioned: folders are named by them, files lack them."""
    for fragment in dataset.get_fragments():
        inside = fragment.physical_schema.names
        return [name for name in dataset.schema.names if name not in inside]
    return []


def _shards(dataset: Any, columns: Columns, batch_rows: int) -> tuple[ParquetShard, ...]:
    """All files in pieces, after a look at every file's columns."""
    keys = partition_keys(dataset)
    shards: list[ParquetShard] = []
    for fragment in sorted(dataset.get_fragments(), key=lambda fragment: str(fragment.path)):
        with naming(fragment.path):
            physical, groups = fragment.physical_schema, fragment.row_groups
        columns.check(physical, keys, fragment.path)
        constants, first = _constants(fragment, set(columns.names) & set(keys)), 0
        singles = frozenset(field.name for field in physical if str(field.type) == "float")
        for ids, n_rows in _joined([group.num_rows for group in groups]):
            shards.append(
                ParquetShard(fragment, ids, columns, constants, singles, n_rows, first, batch_rows)
            )
            first += n_rows
    if not shards:
        raise ValueError("the Parquet files hold no rows")
    return tuple(shards)


def _constants(fragment: Any, keys: set[str]) -> dict[str, float]:
    """What the folders that hold a file say of it."""
    dataset = require("pyarrow.dataset", "scale")
    found = dataset.get_partition_keys(fragment.partition_expression)
    try:
        return {key: float(found[key]) for key in keys}
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{fragment.path}: the data set is partitioned by {', '.join(sorted(keys))}, whose "
            "values are not numbers here; leave it out of the features"
        ) from None


def _joined(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Consecutive row groups, joined while they are small."""
    ids, n_rows = list[int](), 0
    for index, size in enumerate(sizes):
        if ids and n_rows + size > _SHARD_ROWS:
            yield tuple(ids), n_rows
            ids, n_rows = [], 0
        ids, n_rows = [*ids, index], n_rows + size
    if n_rows:
        yield tuple(ids), n_rows
