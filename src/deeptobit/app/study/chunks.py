"""The table of a study that does not fit in memory: read in chunks, summarised, split by hashes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.study import data
from deeptobit.app.study.columns import (
    ColumnSummary,
    categorical_columns,
    check_columns,
    feature_columns,
)
from deeptobit.app.study.config import Study
from deeptobit.app.study.encoding import Encoder, learn_encoder
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.tables import Table, stored_table
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.scale import ParquetTable

_MOST_CELLS = 2**21  # of a chunk, once encoded: 16 MB
_MOST_ROWS, _FEWEST_ROWS = 16_384, 256

Passes = Callable[[int, int, int], None]
"""Called with the number of the pass over the rows, how many are read, and of how many."""


class Chunk(NamedTuple):
    """Some rows of a table, and their numbers in it."""

    table: Table
    rows: NDArray[np.int64]

    def where(self, some: BoolArray) -> "Chunk":
        """Some of these rows."""
        cells, lines = self.table.cells[some], self.table.lines[some]
        return Chunk(replace(self.table, cells=cells, lines=lines, _parsed={}), self.rows[some])


class ChunkedTable:
    """The columns of a Parquet table that a study uses; the id is not read.

    Parameters
    ----------
    study : Study
    path : Path
        A Parquet file, or a folder of them.
    progress : callable
    """

    def __init__(self, study: Study, path: Path, progress: Passes) -> None:
        with _as_study_error():
            self._stored = ParquetTable(path)
        self._progress, self.n_passes = progress, 0
        self._missing = [str(code) for code in study.data.missing]
        self.file, self.n_rows = path.name, self._stored.n_rows
        check_columns(study, self)
        self.features = feature_columns(study, self)
        used = [*self.features, *([study.data.group] if study.data.group is not None else [])]
        for target in study.targets:
            used += [target.values, *target.helpers.values()]
        self._columns = list(dict.fromkeys(used))

    @property
    def columns(self) -> list[str]:
        """All columns of the files."""
        return self._stored.columns

    def chunks(self, columns: Sequence[str] | None = None, width: int = 0) -> Iterator[Chunk]:
        """All rows in their order.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read; by default all that the study uses.
        width : int
            How many features a row becomes, if more than it has columns.
        """
        columns = self._columns if columns is None else columns
        n_rows = int(np.clip(_MOST_CELLS // max(width, len(columns)), _FEWEST_ROWS, _MOST_ROWS))
        with _as_study_error():
            for frame in self._stored.frames(columns, n_rows):
                inside = np.arange(len(frame.cells))
                lines = frame.first_row + 2 + inside  # as if the file had a header
                table = stored_table(frame.cells, frame.where, lines, self._missing)
                yield Chunk(table, frame.row + inside)
                self._progress(self.n_passes + 1, frame.row + len(inside), self.n_rows)
        self.n_passes += 1  # only if all rows were read


@contextmanager
def _as_study_error() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise StudyError(str(error)) from None


# Hashes as random numbers, which a row or a group has in every pass.

_MOST_HASHES = 2**16  # groups that are counted one by one; beyond, their number is estimated


def hash_uniform(keys: NDArray[Any], seed: int) -> FloatArray:
    """A pseudo-random number in [0, 1) for every key; equal keys have equal numbers.

    Nothing has to be stored to draw the same numbers in the next pass.

    Parameters
    ----------
    keys : array of shape (N,)
        Whole numbers, or text.
    seed : int

    Examples
    --------
    >>> hash_uniform(np.array(["Ann", "Ben", "Ann"], dtype=object), seed=0).round(2)
    array([0.84, 0.38, 0.84])
    """
    from pandas.util import hash_array

    keys = keys if keys.dtype == object else keys.astype(np.uint64)
    salt = hash_array(np.array([f"seed {seed}"], dtype=object))  # the hash of the number 0 is 0
    return np.asarray(hash_array(hash_array(keys) ^ salt) / 2.0**64)


@dataclass(frozen=True)
class GroupCount:
    """The number of groups from their k smallest hashes (a k-minimum-values sketch).

    Memory holds 65,536 hashes. Up to as many groups are counted exactly. Of more, the largest
    hash that is stored estimates the number to about half a percent.

    Parameters
    ----------
    hashes : array, ascending

    Examples
    --------
    >>> groups = GroupCount(np.zeros(0))
    >>> for labels in (["Ann", "Ben"], ["Ann", "Cleo"]):
    ...     groups = groups.add(hash_uniform(np.array(labels, dtype=object), seed=0))
    >>> groups.n_groups, round(groups.quantile(0.7), 2)
    (3, 0.84)
    """

    hashes: FloatArray

    def add(self, hashes: FloatArray) -> "GroupCount":
        """With the groups of some more rows."""
        return GroupCount(np.unique(np.concatenate([self.hashes, hashes]))[:_MOST_HASHES])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        if len(self.hashes) < _MOST_HASHES:
            return len(self.hashes)
        return round((_MOST_HASHES - 1) / float(self.hashes[-1]))

    def quantile(self, share: float) -> float:
        """The hash up to which this share of the groups lies, and at least one group."""
        wanted = max(1, round(share * self.n_groups))
        return float(self.hashes[wanted - 1]) if wanted <= len(self.hashes) else share


# The first pass: summaries of the columns, and the numbers of values and groups.


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What a pass over all rows finds.

    Attributes
    ----------
    encoder : Encoder
        The same that would be learned from the table in memory.
    n_values : array of shape (T,)
        Number of values of every target.
    groups : GroupCount or None
    """

    encoder: Encoder
    n_values: NDArray[np.int64]
    groups: GroupCount | None


def read_first_pass(study: Study, table: ChunkedTable) -> FirstPass:
    """Read and check every cell once, before any model is fitted."""
    declared = categorical_columns(study, table)
    summaries = [ColumnSummary(name, name in declared) for name in table.features]
    n_values = np.zeros(len(study.targets), dtype=np.int64)
    groups = None
    for chunk in table.chunks():
        for summary in summaries:
            summary.add(chunk.table)
        n_values += (~np.isnan(data.read_entries(study, chunk.table).values)).sum(axis=0)
        labels = data.read_groups(study, chunk.table)
        if labels is not None:
            hashes = hash_uniform(labels, study.model.seed)
            groups = (groups or GroupCount(np.zeros(0))).add(hashes)
    data.check_values(study, n_values)
    for summary in summaries:
        data.check_useful(study, summary)
    encoder = learn_encoder(summaries, study.features.missing, table.file)
    return FirstPass(encoder, n_values, groups)


# Which rows are held out: the same in every pass.

MOST_HELD_OUT = 10_000  # held-out rows: R² is then known to about 0.01
_SHARE = 0.1  # of rows or groups, at most
_STEP = 2**20  # rows that are hashed at a time


@dataclass(frozen=True)
class HeldOutRows:
    """The rows, or whole groups of rows, that the model is tested on and never fitted to.

    Attributes
    ----------
    study : Study
    limit : float
        Rows or groups with a hash up to this are held out.
    """

    study: Study
    limit: float

    @classmethod
    def choose(cls, study: Study, n_rows: int, groups: GroupCount | None) -> "HeldOutRows":
        """A tenth of the rows, or about 10,000 if that is less; or a tenth of the groups."""
        if groups is None:
            return cls(study, min(_SHARE, MOST_HELD_OUT / n_rows))
        if groups.n_groups < data.FEWEST_GROUPS:
            message = f"there are {groups.n_groups} groups of {study.data.group!r}, which are never"
            message += f" split, and at least {data.FEWEST_GROUPS} are needed"
            raise study.source.error(("data", "group"), message)
        return cls(study, groups.quantile(_SHARE))

    def among(self, chunk: Chunk) -> BoolArray:
        """Which rows of a chunk are held out."""
        groups = data.read_groups(self.study, chunk.table)
        return self._chosen(chunk.rows if groups is None else groups)

    def count(self, table: ChunkedTable) -> int:
        """How many rows of a table are held out."""
        group, n_rows = self.study.data.group, table.n_rows
        if group is None:
            starts = range(0, n_rows, _STEP)
            parts = (self._chosen(np.arange(k, min(k + _STEP, n_rows))) for k in starts)
        else:
            parts = (self.among(chunk) for chunk in table.chunks([group]))
        n_held_out = sum(int(part.sum()) for part in parts)
        if not 0 < n_held_out < n_rows:
            raise StudyError(
                f"{table.file}: {n_held_out:,} of {n_rows:,} rows would be held out, which leaves "
                "none to train or none to test on; add rows or groups"
            )
        return n_held_out

    def _chosen(self, keys: NDArray[Any]) -> BoolArray:
        return np.asarray(hash_uniform(keys, self.study.model.seed) <= self.limit)
