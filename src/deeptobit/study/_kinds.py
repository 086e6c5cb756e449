"""What the cells of a column are: numbers, categories, dates, or nothing to learn from."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._table import Table

Kind = Literal["numbers", "categories", "dates", "mixed", "text", "empty"]

MOST_CATEGORIES = 20
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_EXACT = 2.0**53  # beyond it, neighbouring whole numbers are the same float


class CellCounts(NamedTuple):
    """What a kind is decided by.

    Parameters
    ----------
    known : int
        Cells that are not blank.
    words : int
        Those of them that are no numbers.
    largest : float
        The largest number, whatever its sign.
    dates : bool
        Whether all known cells are dates.
    distinct : int
        Different cells; asked for where there are words.
    """

    known: int
    words: int
    largest: float
    dates: bool
    distinct: int


def kind_of(table: Table, column: str) -> Kind:
    """What a column holds.

    ``categories`` are few words that come back; ``text`` are words that do not (names, notes,
    identifiers), or whole numbers too long to be measurements; ``mixed`` are numbers with words
    among them.
    """
    values, wrong = table.parse(column)
    words = table.text(column).dropna() if wrong.any() else None
    return kind_by(
        CellCounts(
            known=int((~np.isnan(values)).sum()) if words is None else len(words),
            words=int(wrong.sum()),
            largest=largest_of(values),
            dates=holds_dates(table, column),
            distinct=0 if words is None else words.nunique(),
        )
    )


def holds_dates(table: Table, column: str) -> bool:
    """Whether there are cells that are not blank, and all of them are dates."""
    cells = table.cells[column]
    if cells.dtype.kind != "O":
        return cells.dtype.kind in "Mm"
    if not table.parse(column)[1].any():
        return False
    return bool(cells.dropna().map(lambda cell: bool(_DATE.match(cell))).all())


def largest_of(values: FloatArray) -> float:
    """The largest of some numbers, whatever its sign; 0 if there is none."""
    return float(np.fmax.reduce(np.abs(values), initial=0.0))


def kind_by(counts: CellCounts) -> Kind:
    """What a column holds, by the counts of its cells.

    Examples
    --------
    >>> kind_by(CellCounts(known=80, words=80, largest=0.0, dates=False, distinct=2))
    'categories'
    """
    if counts.dates:
        return "dates"
    if counts.known == 0:
        return "empty"
    if counts.words == 0:
        return "text" if counts.largest > _EXACT else "numbers"
    if counts.words <= counts.known / 2:
        return "mixed"
    comes_back = counts.distinct <= max(2, counts.known // 2)
    return "categories" if counts.distinct <= MOST_CATEGORIES and comes_back else "text"
