"""What the cells of a column are: numbers, categories, dates, or nothing to learn from."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from deeptobit.study._table import Table

Kind = Literal["numbers", "categories", "dates", "mixed", "text", "empty"]

MOST_CATEGORIES = 20
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_EXACT = 2.0**53  # beyond it, neighbouring whole numbers are the same float


def kind_of(table: Table, column: str) -> Kind:
    """What a column holds.

    ``categories`` are few words that come back; ``text`` are words that do not (names, notes,
    identifiers), or whole numbers too long to be measurements; ``mixed`` are numbers with words
    among them.
    """
    cells = table.cells[column]
    if cells.dtype.kind in "Mm":
        return "dates"
    values, wrong = table.parse(column)
    if not wrong.any():
        if np.isnan(values).all():
            return "empty"
        return "text" if np.nanmax(np.abs(values)) > _EXACT else "numbers"
    words = table.text(column).dropna()
    if words.map(lambda word: bool(_DATE.match(word))).all():
        return "dates"
    if wrong.sum() <= len(words) / 2:
        return "mixed"
    distinct = words.nunique()
    comes_back = distinct <= max(2, len(words) // 2)
    return "categories" if distinct <= MOST_CATEGORIES and comes_back else "text"
