"""Write tables as CSV, Excel or Parquet, atomically; text stays text."""

from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from deeptobit import files as persistence
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.tables import BLANKS, TEXT, kind_of_file, sniff_separator
from deeptobit.extras import require
from deeptobit.scale import csv_to_parquet


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (UTF-8) or bytes atomically: to a temporary file, which is then renamed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), "[data]")
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    persistence.write_whole(path, [content.encode() if isinstance(content, str) else content])


WRITABLE = (".csv", ".parquet", ".xlsx")
_EXCEL_ROWS, _EXCEL_COLUMNS = 1_048_576, 16_384


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Examples
    --------
    >>> check_writable(Path("predictions.sav"))
    Traceback (most recent call last):
        ...
    deeptobit.app.study.errors.StudyError: predictions.sav: cannot write files of kind '.sav'; known
    are .csv, .parquet, .xlsx
    """
    if path.suffix.lower() not in WRITABLE:
        message = f"cannot write files of kind {path.suffix!r}; known are {', '.join(WRITABLE)}"
        raise StudyError(f"{path.name}: {message}")
    if not path.parent.is_dir():
        raise StudyError(f"{path.parent}: there is no such folder; make it first")


def write_table(table: pd.DataFrame, path: Path) -> None:
    r"""Write a table without its index, in the format of the suffix.

    Examples
    --------
    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     write_table(pd.DataFrame({"id": ["007"], "MMSE": [27.5]}), path)
    ...     path.read_text()
    'id,MMSE\n007,27.5\n'
    """
    check_writable(path)
    kind = path.suffix.lower()
    if kind == ".csv":
        content: str | bytes = table.to_csv(index=False, lineterminator="\n")
    elif kind == ".parquet":
        require("pyarrow", "app")
        content = table.to_parquet(index=False)
    else:
        content = _as_excel(table, path)
    write_whole(path, content)


def _as_excel(table: pd.DataFrame, path: Path) -> bytes:
    if len(table) >= _EXCEL_ROWS or table.shape[1] > _EXCEL_COLUMNS:
        raise StudyError(
            f"{path.name}: an Excel sheet holds {_EXCEL_ROWS} rows and {_EXCEL_COLUMNS} columns; "
            f"{len(table) + 1} and {table.shape[1]} are needed. Write .csv or .parquet"
        )
    openpyxl = require("openpyxl", "app")
    book = openpyxl.Workbook()
    sheet = book.active
    cell = partial(openpyxl.cell.WriteOnlyCell, sheet)
    try:
        for row in (list(table.columns), *table.to_numpy(dtype=object).tolist()):
            sheet.append([_as_cell(cell, value) for value in row])
    except openpyxl.utils.exceptions.IllegalCharacterError:
        raise StudyError(
            f"{path.name}: an id has characters that Excel does not take; write .csv or .parquet"
        ) from None
    buffer = BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _as_cell(cell: Callable[[Any], Any], value: Any) -> Any:
    """Text stays text: an id such as ``=A1`` is not a formula."""
    made = cell(value)
    if isinstance(value, str):
        made.data_type = "s"
    return made


_SNIFFED = 2**20  # bytes that decide on the separator


def convert_table(
    path: Path, out: Path, *, progress: Callable[[int], None] = lambda rows: None
) -> int:
    r"""Convert a CSV file to a Parquet file in chunks; returns the number of rows.

    Cells are read as in :func:`read_table`: the id ``007`` keeps its zeros, ``<0.5`` stays as it
    is, blanks are missing, and a comma is a decimal point unless it is the separator.

    Parameters
    ----------
    path, out : Path
    progress : callable, optional
        Called with the number of rows written so far.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id;MMSE\n007;29,5\n008;NA\n")
    ...     n_rows = convert_table(path, path.with_suffix(".parquet"))
    ...     table = read_table(path.with_suffix(".parquet"))
    >>> n_rows, table.text("id").tolist(), table.numbers("MMSE")
    (2, ['007', '008'], array([29.5,  nan]))
    """
    if not path.is_file():
        raise StudyError(f"{path}: there is no such file")
    if kind_of_file(path) not in TEXT:
        raise StudyError(
            f"{path.name}: only text files can be converted ({', '.join(TEXT)}); save it as "
            "'CSV UTF-8'"
        )
    with path.open("rb") as file:
        # The last line of the sample may be incomplete.
        sample = file.read(_SNIFFED).decode("utf-8-sig", errors="ignore").rpartition("\n")
    separator = sniff_separator(sample[0] or sample[2])
    try:
        comma = separator != ","
        return csv_to_parquet(
            path, out, separator=separator, decimal_comma=comma, blanks=BLANKS, progress=progress
        )
    except ValueError as error:
        raise StudyError(str(error)) from None
