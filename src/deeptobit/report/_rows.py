"""The table of outcomes: what is shown, and what it is sorted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from deeptobit.report._format import bound, number, part, percent, share, significant
from deeptobit.report._words import undercovered, unhelped

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


def outcome_rows(table: pd.DataFrame, n_rows: int, promised: float) -> list[Row]:
    """A row for each outcome; counts that could point to a person are left out."""
    useless, narrow = set(unhelped(table)), set(undercovered(table, promised))
    rows = []
    for label, row in table.iterrows():
        name, entries = str(label), int(row["entries"])
        cells = [
            Cell(f"{bound(row['lower'])} – {bound(row['upper'])}", _key(row["lower"])),
            Cell(part(entries, n_rows), _coarse(entries, n_rows)),
            *(_share(float(row[side]), entries) for side in ("at_lower", "at_upper")),
        ]
        for measure, shown in _MEASURES.items():
            for value in (float(row[measure]), float(row[f"null_{measure}"])):
                cells.append(Cell(shown(value), _key(value)))
        remarks = ["no gain"] * (name in useless) + ["intervals too narrow"] * (name in narrow)
        filled = min(max(float(row["r2"]), 0.0), 1.0) if row["r2"] == row["r2"] else 0.0
        rows.append(Row(name, cells, round(filled, 3), remarks))
    return rows


def _share(fraction: float, entries: int) -> Cell:
    """A share at a bound; where it is not told, the sorting does not tell it either."""
    text = share(fraction, entries)
    if text == percent(fraction):
        return Cell(text, _key(fraction))
    return Cell(text, 0.001 if fraction < 0.5 else 0.999)


def _coarse(entries: int, n_rows: int) -> float:
    text = part(entries, n_rows)
    return entries if text == f"{entries:,}" else (1.0 if entries < n_rows / 2 else n_rows - 1.0)


def _key(value: float) -> float | None:
    """Precise enough to sort by; an open or unknown end has no place."""
    return round(float(value), 6) if abs(value) < float("inf") else None
