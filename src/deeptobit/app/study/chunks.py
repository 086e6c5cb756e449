"""The table of a study beyond memory, some rows at a time, pass after pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.study.columns import (
    MOST_CATEGORIES,
    CellCounts,
    Kind,
    categorical_columns,
    check_columns,
    feature_columns,
    holds_dates,
    kind_by,
    largest_of,
)
from deeptobit.app.study.config import Study
from deeptobit.app.study.data import USELESS, check_values, read_groups, useless
from deeptobit.app.study.encoding import FEWEST, EncodedColumn, Encoder, check_distinct, tells_few
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.outcomes import read_entries
from deeptobit.app.study.tables import Table, as_text, stored_table
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.scale import ParquetTable

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


# Lots: numbers by chance that a row or a group has in every pass over a table.

_MOST = 2**16  # groups that are counted one by one; beyond, their number is estimated


def draw_lots(of: NDArray[Any], seed: int) -> FloatArray:
    """A number between 0 and 1 for every row number or label, the same for the same one.

    Lots are hashes: nothing has to be remembered to draw them again, and they look like chance
    because the hash of a number does.

    Parameters
    ----------
    of : array of shape (N,)
        Whole numbers, or text.
    seed : int

    Examples
    --------
    >>> draw_lots(np.array(["Ann", "Ben", "Ann"], dtype=object), seed=0).round(2)
    array([0.84, 0.38, 0.84])
    """
    from pandas.util import hash_array

    keys = of if of.dtype == object else of.astype(np.uint64)
    salt = hash_array(np.array([f"seed {seed}"], dtype=object))  # that of the number 0 is 0
    return np.asarray(hash_array(hash_array(keys) ^ salt) / 2.0**64)


@dataclass(frozen=True)
class SmallestLots:
    """The smallest lots of all groups, which tell how many groups there are.

    Memory holds 65,536 lots. Up to as many groups are counted exactly; of more, the largest lot
    that is kept tells the number to about half a percent.

    Parameters
    ----------
    lots : array, ascending

    Examples
    --------
    >>> groups = SmallestLots(np.zeros(0))
    >>> for labels in (["Ann", "Ben"], ["Ann", "Cleo"]):
    ...     groups = groups.more(draw_lots(np.array(labels, dtype=object), seed=0))
    >>> groups.n_groups, round(groups.below(0.7), 2)
    (3, 0.84)
    """

    lots: FloatArray

    def more(self, lots: FloatArray) -> SmallestLots:
        """With the groups of some more rows."""
        return SmallestLots(np.unique(np.concatenate([self.lots, lots]))[:_MOST])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        if len(self.lots) < _MOST:
            return len(self.lots)
        return round((_MOST - 1) / float(self.lots[-1]))

    def below(self, share: float) -> float:
        """The lot up to which a share of the groups has theirs, and at least one has."""
        wanted = max(1, round(share * self.n_groups))
        return float(self.lots[wanted - 1]) if wanted <= len(self.lots) else share


# What a column holds, found a part of the table at a time in bounded memory.

MOST_DECLARED = 1000  # categories of a column that the study calls categorical


@dataclass
class ColumnTally:
    """Counts of the cells of a column; memory does not grow with the rows.

    Parameters
    ----------
    name : str
    declared : bool
        Whether the study calls the column categorical, whatever its cells look like.
    n_rows, n_known, n_words : int
        Cells; those that are not blank; those of them that are no numbers.
    total, largest : float
        Sum of the numbers, and the largest, whatever its sign.
    dates : bool
        Whether all parts that have values hold dates.
    levels : Counter or None
        How often each cell occurs, as text; None once there are too many different ones.
    example : str
        The first word and where it stands.

    Examples
    --------
    >>> import pandas as pd
    >>> tally = ColumnTally("sex")
    >>> for cells in (["f", "m", "f"], [None, "f"]):
    ...     tally.add(Table(pd.DataFrame({"sex": cells}), "a.parquet", np.arange(len(cells))))
    >>> tally.kind, dict(tally.levels), tally.n_rows
    ('categories', {'f': 3, 'm': 1}, 5)
    >>> tally.encoded().features
    ['sex=m', 'sex (missing)']
    """

    name: str
    declared: bool = False
    n_rows: int = 0
    n_known: int = 0
    n_words: int = 0
    total: float = 0.0
    largest: float = 0.0
    dates: bool = True
    levels: Counter[str] | None = field(default_factory=Counter)
    example: str = ""

    def add(self, table: Table) -> None:
        """Count the cells of some more rows."""
        values, wrong = table.parse(self.name)
        numbers = values[~np.isnan(values)]
        n_known = len(numbers) + int(wrong.sum())
        self.n_rows += len(values)
        self.n_known += n_known
        self.n_words += int(wrong.sum())
        self.total += float(numbers.sum())
        self.largest = max(self.largest, largest_of(numbers))
        self.dates &= n_known == 0 or holds_dates(table, self.name)
        if wrong.any() and not self.example:
            found = table.text(self.name)[wrong].iloc[0]
            self.example = f" ({found!r}: {table.at(wrong)})"
        self._count_levels(table)

    def _count_levels(self, table: Table) -> None:
        if self.levels is None:
            return
        most = MOST_DECLARED if self.declared else MOST_CATEGORIES
        counts = table.cells[self.name].value_counts()
        for cell, count in counts.head(most + 1).items():
            self.levels[as_text(cell)] += int(count)
        if len(self.levels) > most:
            self.levels = None

    @property
    def kind(self) -> Kind:
        """What the column holds."""
        if self.declared:
            return "categories"
        distinct = MOST_CATEGORIES + 1 if self.levels is None else len(self.levels)
        dates = self.dates and self.n_known > 0
        return kind_by(CellCounts(self.n_known, self.n_words, self.largest, dates, distinct))

    def encoded(self) -> EncodedColumn:
        """How the column becomes features."""
        if self.n_known == 0:
            raise StudyError(f"feature {self.name!r} has no value at all; exclude it")
        indicator = self.n_known < self.n_rows
        counts = self.levels
        if self.kind != "categories":
            few = counts is not None and tells_few(_capped(list(counts.values())))
            mean = self.total / self.n_known
            return EncodedColumn(self.name, (), None, (mean,), indicator, (few,))
        if counts is None:
            raise StudyError(
                f"feature {self.name!r} has over {MOST_DECLARED:,} categories, more than a table "
                "beyond memory may have; join the rare ones, or exclude it"
            )
        reference = min(counts, key=lambda level: (-counts[level], level))
        levels = tuple(sorted(counts.keys() - {reference}))
        return EncodedColumn(
            self.name,
            levels,
            reference,
            tuple(counts[level] / self.n_known for level in levels),
            indicator,
            tuple(
                tells_few(_capped([counts[level], self.n_known - counts[level]]))
                for level in levels
            ),
        )


def encoder_of(tallies: Mapping[str, ColumnTally], missing: str, file: str) -> Encoder:
    """The encoder that all rows of a table teach; ``file`` is its name in errors."""
    encoder = Encoder(tuple(tally.encoded() for tally in tallies.values()), missing)
    check_distinct(encoder.features, file)
    return encoder


def _capped(counts: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A column with as many different values; how often one occurs beyond a few is left out."""
    return np.repeat(np.arange(len(counts), dtype=np.float64), np.minimum(counts, FEWEST))


# The first pass over a table beyond memory: what its columns, targets and groups are.


@dataclass(frozen=True, eq=False)
class Survey:
    """What all rows of a table say together.

    Parameters
    ----------
    encoder : Encoder
        The one that the table would teach in memory.
    known : array of shape (T,)
        Number of values of every target.
    groups : SmallestLots or None
    """

    encoder: Encoder
    known: NDArray[np.int64]
    groups: SmallestLots | None


def survey_table(study: Study, table: ChunkedTable) -> Survey:
    """Read every cell once; what is wrong with one is said before any model is fitted."""
    declared = categorical_columns(study, table)
    tallies = {name: ColumnTally(name, declared=name in declared) for name in table.features}
    known = np.zeros(len(study.targets), dtype=np.int64)
    groups = None
    for chunk in table.chunks():
        for tally in tallies.values():
            tally.add(chunk.table)
        known += (~np.isnan(read_entries(study, chunk.table).values)).sum(axis=0)
        labels = read_groups(study, chunk.table)
        if labels is not None:
            lots = draw_lots(labels, study.model.seed)
            groups = (groups or SmallestLots(np.zeros(0))).more(lots)
    check_values(study, known)
    for name, tally in tallies.items():
        if tally.kind in USELESS:
            raise useless(study, name, tally.kind, tally.example)
    return Survey(encoder_of(tallies, study.features.missing, table.file), known, groups)
