"""Where the table is in a file: below title lines, under one or two rows of names, above a mean.

People export tables with a title, merged cells, a row of units and a last row of means. The row
that names the columns is found among the first rows, and rows that are not people are left out;
remarks say both.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.study.tables import BLANKS, Remark, StudyError, Table
from deeptobit.arrays import BoolArray, listed
from deeptobit.extras import require

MOST_LINES = 50  # that are looked at
_WIDE = 0.6  # of the usual number of cells, which a row of names has
_MOST_HEADERS = 3
_NUMBER = re.compile(r"\s*[<>]?\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*%?\s*")


class Head(NamedTuple):
    """The rows before the data, counted from 0: the one with the names, and the first of data."""

    header: int
    names: list[str]
    first: int
    remarks: tuple[Remark, ...]


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell))


def find_head(rows: Sequence[Sequence[str]], file: str, header: int | None = None) -> Head:
    """The names of the columns, and where the data begin.

    The header is the first row with nearly as many cells as most rows have. Rows of words above
    columns of numbers belong to it: of several the one with the most different names is taken, and
    a blank name is filled from the row above, as merged cells leave it.

    Parameters
    ----------
    rows : sequence of rows
        The first rows of a file as text, "" where blank.
    file : str
        Its name, for errors.
    header : int, optional
        The row that names the columns, from 1, if it is known.

    Examples
    --------
    >>> rows = [["Export 2024", "", ""], ["id", "age", "MMSE"], ["", "years", "points"]]
    >>> rows += [["a", "70", "29"], ["b", "75", "30"], ["c", "71", "27"], ["d", "80", "21"]]
    >>> head = find_head(rows, "a.xlsx")
    >>> head.header, head.names, head.first
    (1, ['id', 'age', 'MMSE'], 3)
    >>> [remark.message for remark in head.remarks]
    ['row 2 of a.xlsx names the columns', 'row 3 of a.xlsx holds no person, and is left out']
    """
    columns = zip_longest(*([cell.strip() for cell in row] for row in rows), fillvalue="")
    cells = list(zip(*columns, strict=True))  # rows of the same length
    filled = [sum(map(bool, row)) for row in cells]
    some = [number for number in filled if number]
    if not some:
        raise StudyError(f"{file} is empty: the first row must name the columns")
    usual = float(np.median(some))
    if header is not None and (header > len(cells) or not filled[header - 1]):
        raise StudyError(f"[data] header = {header}: this row of {file} is blank or not there")
    least = max(1.0, min(usual - 1, _WIDE * usual))
    top = header - 1 if header else next(at for at, n in enumerate(filled) if n >= least)
    heads = [top]
    while len(heads) < _MOST_HEADERS and _is_head(cells, heads[-1] + 1, top):
        heads.append(heads[-1] + 1)
    best = top if header else max(heads, key=lambda at: (len({*cells[at]} - {""}), -at))
    # A blank name is that of the row above, which is no title if it has several cells.
    last = top - 1 if top and filled[top - 1] > 1 else top
    named = list(zip(*(cells[at] for at in range(best, last - 1, -1)), strict=True))
    names = [next(filter(None, column), "") for column in named[: len(rows[best])]]
    first = max(heads) + 1
    remarks = []
    # A title in the first line is found; a first line of names needs no remark.
    if not header and best != next(at for at, number in enumerate(filled) if number):
        message = f"row {best + 1} of {file} names the columns"
        remarks.append(Remark("header", message, ("header", best + 1)))
    others = [f"row {at + 1}" for at in heads if at != best]
    remarks += [Remark(row, f"{row} of {file} holds no person, and is left out") for row in others]
    _check_names(names, cells[first:], file, best)
    return Head(best, names, first, tuple(remarks))


def _is_head(cells: Sequence[Sequence[str]], at: int, top: int) -> bool:
    """Whether a row holds words where the rows below hold numbers."""
    below = [row for row in cells[top + _MOST_HEADERS :] if any(row)]
    if at >= len(cells) or len(below) < _MOST_HEADERS:
        return False
    known = ([cell for cell in column if cell] for column in zip(*below, strict=True))
    numeric = [
        cells[at][place]
        for place, column in enumerate(known)
        if column and sum(map(_is_number, column)) >= 0.8 * len(column)
    ]
    words = [cell for cell in numeric if cell not in BLANKS]
    enough = len(words) >= max(2, 0.4 * len(numeric))
    return enough and not any(map(_is_number, words)) and len({*words}) > 1


def _check_names(names: list[str], data: Sequence[Sequence[str]], file: str, header: int) -> None:
    """Refuse a header that is blank above most columns, or that is a row of data."""
    used = [at for at in range(len(names)) if any(row[at] for row in data)]
    blank = [at for at in used if not names[at]]
    say = "say in the study file which row has the names, as [data] header = 3 (and which sheet)"
    if len(used) > 1 and len(blank) > 0.5 * len(used):
        named = f"{len(used) - len(blank)} of {len(used)} columns"
        raise StudyError(f"{file}: row {header + 1} names {named}; {say}")
    numbers = [name for name in names if name and _is_number(name)]
    unlike = any("." in name or "," in name for name in numbers) or len({*numbers}) < len(numbers)
    if len(numbers) > 1 and len(numbers) > 0.6 * len(names) and unlike:
        what = f"row {header + 1} holds numbers ({listed(numbers, 3)}), and no names of columns"
        raise StudyError(f"{file}: {what}; add a row of names, or if there is one {say}")


# Rows at the end that are not people: means, totals, notes.

_SUMMARY = re.compile(
    r"(grand )?(total|sum|mean|average|avg|median|sd|std\.?|std\.? ?dev\.?|standard deviation"
    r"|min|max|minimum|maximum|count|n|mittelwert|mittel|summe|gesamt|anzahl|stabw\.?|durchschnitt)"
    r"( ?\(?(sd|se)\)?)?( ?[=:].*)?",
    re.IGNORECASE,
)
_LAST = 10
_LEAST_COLUMNS = 4


def without_summaries(table: Table) -> Table:
    """A table without last rows such as ``Mean``, notes below it, and headers within it.

    Examples
    --------
    >>> cells = {"id": ["a", "b", "Mean"], "age": ["70", "75", "72.5"], "MMSE": ["30", "28", "29"]}
    >>> table = without_summaries(Table(pd.DataFrame(cells), "a.csv", np.arange(2, 5)))
    >>> len(table), table.remarks[0].message
    (2, "line 4 of a.csv ('Mean') holds no person, and is left out")
    """
    left_out = np.zeros(len(table), dtype=np.bool_)
    for row in reversed(range(max(0, len(table) - _LAST), len(table))):
        known = table.cells.iloc[row].dropna()
        words = [str(cell).strip() for cell in known if str(cell).strip()]
        summary = bool(words) and bool(_SUMMARY.fullmatch(words[0]))
        note = len(words) == 1 and table.cells.shape[1] >= _LEAST_COLUMNS
        if not (summary or (note and not _is_number(words[0]))):
            break
        left_out[row] = True
    left_out |= _repeated_headers(table)
    if not left_out.any() or left_out.all():
        return table
    remarks = []
    for at in np.flatnonzero(left_out).tolist():
        line, cell = f"line {table.lines[at]}", table.cells.iloc[at].dropna().iloc[0]
        message = f"{line} of {table.file} ({str(cell)!r}) holds no person, and is left out"
        remarks.append(Remark(line, message))
    return table.where(~left_out, remarks)


def _repeated_headers(table: Table) -> BoolArray:
    """Rows in which nearly every cell is the name of its column."""
    words = [name for name in table.columns if table.cells[name].dtype.kind == "O"]
    same = np.zeros(len(table), dtype=np.bool_)
    if len(words) < max(2, 0.5 * table.cells.shape[1]):
        return same
    for row in np.flatnonzero((table.cells[words[0]] == words[0]).to_numpy()).tolist():
        cells = table.cells.iloc[row]
        same[row] = np.mean([str(cells[name]).strip() == name for name in words]) > 0.8
    return same


# Columns of the same name.


def without_copies(
    frame: pd.DataFrame, places: dict[str, int], file: str
) -> tuple[list[str], list[Remark]]:
    """Columns that are the same as another one of their name; others of one name are an error.

    Parameters
    ----------
    frame : DataFrame
        All columns of names that occur several times, under the names of :func:`unique`.
    places : dict
        By such a name, the place of the column in its file.
    file : str
    """
    letter_of = require("openpyxl.utils", "app").get_column_letter
    copies, remarks, by_name = list[str](), list[Remark](), defaultdict[str, list[str]](list)
    for name in places:
        by_name[name.split(APART)[0]].append(name)
    for name, (first, *others) in by_name.items():
        letters = " and ".join(letter_of(places[each] + 1) for each in (first, *others))
        if not all(frame[first].equals(frame[other]) for other in others):
            raise StudyError(
                f"{file}: columns {letters} are both called {name!r} and differ; rename one of them"
            )
        copies += others
        remarks.append(Remark(name, f"columns {letters} of {file} are the same; one is kept"))
    return copies, remarks


APART = "\0"  # behind a name that occurs again, before its place


def unique(names: Sequence[str]) -> list[str]:
    """Names that all differ, but for blank ones: duplicates get their position appended."""
    seen = {name: at for at, name in reversed([*enumerate(names)])} | {"": -1}
    return [f"{name}{APART}{at}" if 0 <= seen[name] < at else name for at, name in enumerate(names)]
