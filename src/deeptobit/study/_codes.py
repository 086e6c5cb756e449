"""Codes for missing values that nobody declared: -4 or 999 in a score, a word among numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._cells import parse_numbers, split_limits
from deeptobit.study._kinds import Kind, kind_of
from deeptobit.study._scales import known_scale
from deeptobit.study._table import Table

_CODES = (-1, -4, -5, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, 99, 777, 888, 999, 9999)
_LONE = tuple(code for code in _CODES if code != -1)  # -1, 0 and 1 are answers
_LEAST_REST = 10  # values that say where a column lies
_FAR = 2.0  # ranges of the other values
_FAR_BELOW = 3.0  # steps between them, for the only negative values
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


def lone_codes(values: FloatArray) -> list[int]:
    """Codes that repeat in a column far from all its other values, which nobody may have meant.

    Above, they are away from the others by twice the range of these. Below, they are the only
    negative values, and by three times the usual step away.

    Examples
    --------
    >>> lone_codes(np.r_[np.arange(18.0, 45.0), 999, 999]), lone_codes(np.r_[40.0:90.0, -9, -9])
    ([999], [-9])
    >>> lone_codes(np.r_[np.arange(60.0, 99.0), 99, 99]), lone_codes(np.r_[-20.0:20.0, -9, -9])
    ([], [])
    """
    rest = np.unique(values[~np.isin(values, _LONE) & ~np.isnan(values)])
    if np.isin(values, rest).sum() < max(_LEAST_REST, (~np.isnan(values)).sum() / 2):
        return []
    low, high = float(rest[0]), float(rest[-1])
    step = float(np.median(np.diff(rest))) if len(rest) > 1 else 0.0

    def is_far(code: int) -> bool:
        if code < 0:
            return low >= 0.0 and low - code > _FAR_BELOW * step
        return code - high >= _FAR * (high - low)

    return [code for code in _LONE if (values == code).sum() > 1 and is_far(code)]


def holders(table: Table, code: int, but: Collection[str]) -> list[str]:
    """Other columns of numbers that have a code among their values, not apart from them."""
    numeric = [n for n in table.columns if n not in but and kind_of(table, n) == "numbers"]
    return [name for name in numeric if not _stands_apart(code, table.parse(name)[0])]


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
