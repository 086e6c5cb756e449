"""What a column holds, found a part of the table at a time in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from deeptobit.study._encoding import EncodedColumn, Encoder, check_distinct
from deeptobit.study._errors import StudyError
from deeptobit.study._few import FEWEST, tells_few
from deeptobit.study._kinds import (
    MOST_CATEGORIES,
    CellCounts,
    Kind,
    holds_dates,
    kind_by,
    largest_of,
)
from deeptobit.study._table import Table, as_text

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
