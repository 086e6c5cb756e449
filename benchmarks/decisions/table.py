"""Rows of numbers as Markdown, each printed as soon as it is known."""

from collections.abc import Iterable, Iterator

Cell = str | int | float
Table = Iterator[tuple[Cell, ...]]


def show(rows: Iterable[tuple[Cell, ...]]) -> None:
    """Print a table whose first row is the header."""
    for place, row in enumerate(rows):
        print("| " + " | ".join(_text(cell) for cell in row) + " |", flush=True)
        if place == 0:
            print("|" + "---|" * len(row), flush=True)


def _text(cell: Cell) -> str:
    return f"{round(cell, 9) + 0.0:.4g}" if isinstance(cell, float) else str(cell)
