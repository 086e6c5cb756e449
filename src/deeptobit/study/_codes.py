"""Codes for missing values that nobody declared: -4 or 999 in a score, a word among numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._cells import parse_numbers, split_limits
from deeptobit.study._kinds import Kind, kind_of
from deeptobit.study._scales import known_scale
from deeptobit.study._table import Table

_CODES = (-1, -4, -5, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, 99, 777, 888, 999, 9999)
_MOST_WORDS = 5  # more of them are remarks, not codes


def find_codes(table: Table) -> list[str]:
    r"""Cells that seem to mean missing, as they are written.

    Numbers are codes where a known scale cannot reach them, unless another column has them as
    values; words are where they stand among numbers, unless another column has them as categories.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = {"MMSE": ["30", "-4", "28", "21"], "age": ["70", "refused", "75", "81"]}
    >>> find_codes(Table(pd.DataFrame(cells), "a.csv", np.arange(2, 6)))
    ['-4', 'refused']
    """
    kinds = {name: kind_of(table, name) for name in table.columns}
    numeric = [name for name, kind in kinds.items() if kind in ("numbers", "mixed")]
    values = {name: table.parse(name)[0] for name in numeric}
    beyond = sorted({code for name in numeric for code in _beyond_scale(name, values[name])})
    codes = [code for code in beyond if all(_stands_apart(code, values[name]) for name in numeric)]
    written = {
        str(cell)
        for name in numeric
        if np.isin(values[name], codes).any()
        for cell in table.text(name)[np.isin(values[name], codes)]
    }
    return [*sorted(written), *sorted(_words(table, kinds))]


def _beyond_scale(name: str, values: FloatArray) -> Iterable[int]:
    """Codes without which a column would be a scale that is known."""
    found = [code for code in _CODES if (values == code).any()]
    rest = values[~np.isin(values, found) & ~np.isnan(values)]
    if not found or not rest.size:
        return []
    scale = known_scale(name, rest.min(), rest.max())
    return [code for code in found if scale and not scale.lower <= code <= scale.upper]


def _stands_apart(code: int, values: FloatArray) -> bool:
    """Whether a column lacks a code, or cannot mean it: the only negative, or far above all."""
    if not (values == code).any():
        return True
    rest = values[~np.isin(values, _CODES) & ~np.isnan(values)]
    if not rest.size:
        return False
    low, high = float(rest.min()), float(rest.max())
    return low >= 0.0 if code < 0 else code > high + (high - low)


def _words(table: Table, kinds: dict[str, Kind]) -> set[str]:
    found: set[str] = set()
    for name, kind in kinds.items():
        if kind == "mixed":
            bare = split_limits(table.text(name))[0]
            wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)[1]
            words = set(table.text(name)[wrong])
            found |= words if len(words) <= _MOST_WORDS and all(map(_is_word, words)) else set()
    for name, kind in kinds.items():
        if kind == "categories":
            found -= set(table.text(name))
    return found


def _is_word(cell: str) -> bool:
    """Not a number that is written in an unusual way, such as 1.234,5 or 5% or inf."""
    return cell.startswith("#") or not re.search(r"\d|^[+-]?inf", cell.lower())
