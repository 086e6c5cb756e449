"""The table of a study beyond memory, some rows at a time, pass after pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray
from deeptobit.scale import ParquetTable
from deeptobit.study._columns import check_columns, feature_columns
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._table import Table, stored_table

_MOST_CELLS = 2**21  # of a chunk, once encoded: 16 MB
_MOST_ROWS, _FEWEST_ROWS = 16_384, 256

Passes = Callable[[int, int, int], None]
"""Told the number of the pass over the rows, how many are read, and of how many."""


class Chunk(NamedTuple):
    """Some rows of a table, and their numbers in it."""

    table: Table
    rows: NDArray[np.int64]

    def where(self, some: BoolArray) -> Chunk:
        """Some of these rows."""
        cells, lines = self.table.cells[some], self.table.lines[some]
        return Chunk(replace(self.table, cells=cells, lines=lines, _parsed={}), self.rows[some])


class ChunkedTable:
    """The columns of a Parquet table that a study speaks of; the id is not read.

    Parameters
    ----------
    study : Study
    path : Path
        Of a Parquet file or a folder.
    progress : callable
    """

    def __init__(self, study: Study, path: Path, progress: Passes) -> None:
        with _sentences():
            self._stored = ParquetTable(path)
        self._progress, self.n_passes = progress, 0
        self._missing = [str(code) for code in study.data.missing]
        self.file, self.n_rows = path.name, self._stored.n_rows
        check_columns(study, self)
        self.features = feature_columns(study, self)
        self._columns = _used(study, self.features)

    @property
    def columns(self) -> list[str]:
        """All columns of the files."""
        return self._stored.columns

    def chunks(self, columns: Sequence[str] | None = None, width: int = 0) -> Iterator[Chunk]:
        """All rows in their order.

        Parameters
        ----------
        columns : sequence of str, optional
            Those to read; by default all that the study speaks of.
        width : int
            How many numbers a row becomes, if more than it has columns.
        """
        columns = self._columns if columns is None else columns
        n_rows = int(np.clip(_MOST_CELLS // max(width, len(columns)), _FEWEST_ROWS, _MOST_ROWS))
        with _sentences():
            for frame in self._stored.frames(columns, n_rows):
                inside = np.arange(len(frame.cells))
                lines = frame.first_row + 2 + inside  # as if the file had a header
                table = stored_table(frame.cells, frame.where, lines, self._missing)
                yield Chunk(table, frame.row + inside)
                self._progress(self.n_passes + 1, frame.row + len(inside), self.n_rows)
        self.n_passes += 1  # of which all rows were wanted


@contextmanager
def _sentences() -> Iterator[None]:
    """What is wrong with a file is wrong with the study."""
    try:
        yield
    except ValueError as error:
        raise StudyError(str(error)) from None


def _used(study: Study, features: Sequence[str]) -> list[str]:
    """Features, targets with their limits and flags, and the group, each once."""
    named = [*features]
    for target in study.targets:
        named += [target.values, *target.helpers.values()]
    if study.data.group is not None:
        named.append(study.data.group)
    return list(dict.fromkeys(named))
