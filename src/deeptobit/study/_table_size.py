"""How large a table is, as its file tells without being read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

from deeptobit.extras import require
from deeptobit.scale import ParquetTable
from deeptobit.study._csv import sniff_separator
from deeptobit.study._table import EXCEL, PARQUET, TEXT, kind_of_file

_SAMPLE = 2**20  # bytes of a text file from which its rows are estimated
# What a cell takes at the peak of reading a table and building features of it, in bytes: measured
# by `python -m benchmarks.decisions memory`.
_NUMBER, _WORD, _TEXT_CELL, _EXCEL_CELL = 100, 180, 130, 180


class TableSize(NamedTuple):
    """Rows and columns of a table, and the bytes that reading it whole takes."""

    n_rows: int
    n_columns: int
    read_bytes: int


def size_of(path: Path) -> TableSize | None:
    r"""The size of a table; None of one that cannot be read, which is left to whoever tries.

    Parquet and Excel files say how many rows they have. Those of a text file are estimated by the
    length of the first ones.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     size_of(path)
    TableSize(n_rows=1000, n_columns=2, read_bytes=260000)
    """
    if not path.exists():
        return None
    kind = kind_of_file(path)
    if kind in PARQUET:
        return _of_parquet(path)
    if kind in TEXT:
        return _of_text(path)
    return _of_excel(path) if kind in EXCEL else None


def _of_parquet(path: Path) -> TableSize | None:
    try:
        table = ParquetTable(path)
    except ValueError:
        return None
    n_columns = len(table.columns)
    cells = _NUMBER * (n_columns - table.n_words) + _WORD * table.n_words
    return TableSize(table.n_rows, n_columns, table.n_rows * cells)


def _of_text(path: Path) -> TableSize:
    with path.open("rb") as file:
        head, sample = file.readline(), file.read(_SAMPLE)
    names, rows = (part.decode("utf-8-sig", errors="ignore") for part in (head, sample))
    n_columns = names.count(sniff_separator(names + rows)) + 1
    n_bytes = path.stat().st_size - len(head)
    n_rows = round(n_bytes * max(sample.count(b"\n"), 1) / max(len(sample), 1))
    return TableSize(n_rows, n_columns, _TEXT_CELL * n_rows * n_columns)


def _of_excel(path: Path) -> TableSize | None:
    openpyxl = require("openpyxl", "app")
    try:
        book = openpyxl.load_workbook(path, read_only=True)
    except (ValueError, KeyError, BadZipFile, OSError):
        return None
    try:
        sheets = [(sheet.max_row or 0, sheet.max_column or 0) for sheet in book.worksheets]
    finally:
        book.close()
    n_rows, n_columns = max(sheets, key=lambda size: size[0] * size[1], default=(0, 0))
    return TableSize(n_rows, n_columns, _EXCEL_CELL * n_rows * n_columns)
