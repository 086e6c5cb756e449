"""The table of outcomes: what is shown, and what it is sorted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from deeptobit.report._format import UNKNOWN, bound, number, part, percent, share, significant
from deeptobit.report._words import undercovered, unhelped
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    import pandas as pd

_MEASURES: dict[str, Callable[[float], str]] = {
    "r2": number,
    "anmse": lambda value: number(value, 3),
    "crps": significant,
    "coverage": percent,
}


class Cell(NamedTuple):
    """What is read, and the number it is sorted by; None is always last."""

    text: str
    key: float | None


class Row(NamedTuple):
    """One outcome."""

    name: str
    cells: list[Cell]
    filled: float  # R² as a share of its column
    remarks: list[str]


def outcome_rows(
    table: pd.DataFrame, n_rows: int, promised: float, fewest: int = FEWEST
) -> list[Row]:
    """A row for each outcome; counts that could point to a person are left out."""
    useless, narrow = set(unhelped(table)), set(undercovered(table, promised))
    rows = []
    for label, row in table.iterrows():
        name, entries = str(label), int(row["entries"])
        cells = [
            Cell(f"{bound(row['lower'])} – {bound(row['upper'])}", _key(row["lower"])),
            Cell(part(entries, n_rows, fewest), _coarse(entries, n_rows, fewest)),
            *(_share(float(row[side]), entries, fewest) for side in ("at_lower", "at_upper")),
        ]
        few = entries < fewest  # of so few values a measure would tell them
        for measure in _MEASURES:
            for column in (measure, f"null_{measure}"):
                cells.append(Cell(UNKNOWN, None) if few else _measured(measure, row[column]))
        remarks = ["no gain"] * (name in useless) + ["intervals too narrow"] * (name in narrow)
        filled = min(max(float(row["r2"]), 0.0), 1.0) if row["r2"] == row["r2"] else 0.0
        rows.append(Row(name, cells, round(filled, 3), remarks))
    return rows


def _measured(measure: str, value: float) -> Cell:
    """A measure; with more digits than are read, a share would tell of how many rows it is."""
    return Cell(_MEASURES[measure](value), _key(value, 2 if measure == "coverage" else 6))


def _share(fraction: float, entries: int, fewest: int) -> Cell:
    """A share at a bound; where it is not told, the sorting does not tell it either."""
    text = share(fraction, entries, fewest)
    if text == percent(fraction):
        return Cell(text, _key(fraction, 2))
    return Cell(text, 0.001 if fraction < 0.5 else 0.999)


def _coarse(entries: int, n_rows: int, fewest: int) -> float:
    text = part(entries, n_rows, fewest)
    return entries if text == f"{entries:,}" else (1.0 if entries < n_rows / 2 else n_rows - 1.0)


def _key(value: float, digits: int = 6) -> float | None:
    """Precise enough to sort by; an open or unknown end has no place."""
    return round(float(value), digits) if abs(value) < float("inf") else None
