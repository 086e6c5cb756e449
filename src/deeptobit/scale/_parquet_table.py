"""Columns of any kind in Parquet files, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deeptobit.extras import require
from deeptobit.scale._parquet import fields_of, open_dataset, partition_keys
from deeptobit.scale._parquet_shard import listed, naming, open_file

if TYPE_CHECKING:
    import pandas as pd


class Frame(NamedTuple):
    """Some consecutive rows of a table.

    Parameters
    ----------
    cells : DataFrame
    where : str
        Name of the file.
    first_row : int
        Number of the first row in that file.
    row : int
        Its number in the whole table.
    """

    cells: pd.DataFrame
    where: str
    first_row: int
    row: int


class ParquetTable:
    """A Parquet file, a folder of them, or a partitioned data set, as a table of any columns.

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
    ...     frames = [frame.cells["sex"].tolist() for frame in table.frames(["sex"], 2)]
    >>> table.columns, table.n_rows, table.n_words, frames
    (['age', 'sex'], 3, 1, [['f', 'm'], ['f']])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        dataset = open_dataset(path)
        self._fragments = sorted(dataset.get_fragments(), key=lambda fragment: str(fragment.path))
        self._keys = partition_keys(dataset)
        fields = fields_of(dataset)
        self.columns = [str(field.name) for field in fields]
        self.n_rows = sum(_count(fragment) for fragment in self._fragments)
        self.n_words = sum(_holds_words(field.type) for field in fields)

    def frames(self, columns: Sequence[str], batch_rows: int) -> Iterator[Frame]:
        """Some columns of all rows, at most ``batch_rows`` rows at a time."""
        before = 0
        for fragment in self._fragments:
            yield from self._frames(fragment, list(columns), batch_rows, before)
            before += _count(fragment)

    def _frames(
        self, fragment: Any, columns: list[str], batch_rows: int, before: int
    ) -> Iterator[Frame]:
        """Those of one file, which has ``before`` rows before it."""
        path = str(fragment.path)
        stored = [name for name in columns if name not in self._keys]
        for name in stored:
            if name not in fragment.physical_schema.names:
                names = listed(fragment.physical_schema.names)
                raise ValueError(f"{path} has no column {name!r}; it has {names}")
        constants = _constants(fragment, set(columns) & set(self._keys))
        first = 0
        with naming(path), open_file(fragment) as file:
            for batch in file.iter_batches(batch_rows, columns=stored, use_threads=False):
                cells = batch.select(stored).to_pandas(ignore_metadata=True)
                for name, value in constants.items():
                    cells[name] = value
                yield Frame(cells, os.path.basename(path), first, before + first)
                first += batch.num_rows


def _count(fragment: Any) -> int:
    with naming(str(fragment.path)):
        return int(fragment.count_rows())


def _constants(fragment: Any, keys: set[str]) -> dict[str, Any]:
    """What the folders that hold a file say of all its rows."""
    dataset = require("pyarrow.dataset", "scale")
    found = dataset.get_partition_keys(fragment.partition_expression)
    return {key: found.get(key) for key in keys}


def _holds_words(kind: Any) -> bool:
    types = require("pyarrow.types", "scale")
    short = (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp)
    return not any(test(kind) for test in short)
