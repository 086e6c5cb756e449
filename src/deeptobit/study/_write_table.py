"""Tables to CSV, Excel or Parquet: text stays text, and a file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeptobit.extras import require
from deeptobit.study._errors import StudyError
from deeptobit.study._write import write_whole

if TYPE_CHECKING:
    import pandas as pd

WRITABLE = (".csv", ".parquet", ".xlsx")
_EXCEL_ROWS, _EXCEL_COLUMNS = 1_048_576, 16_384


def check_writable(path: Path) -> None:
    """Refuse a file of unknown kind before any work is done for it.

    Examples
    --------
    >>> check_writable(Path("predictions.sav"))
    Traceback (most recent call last):
        ...
    deeptobit.study._errors.StudyError: predictions.sav: cannot write files of kind '.sav'; known:
    .csv, .parquet, .xlsx
    """
    if path.suffix.lower() not in WRITABLE:
        known = ", ".join(WRITABLE)
        raise StudyError(f"{path.name}: cannot write files of kind {path.suffix!r}; known: {known}")
    if not path.parent.is_dir():
        raise StudyError(f"{path.parent}: there is no such folder; make it first")


def write_table(table: pd.DataFrame, path: Path) -> None:
    r"""Write a table without its index, in the format that the ending of the file says.

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
        write_whole(path, table.to_csv(index=False, lineterminator="\n"))
    elif kind == ".parquet":
        require("pyarrow", "app")
        write_whole(path, table.to_parquet(index=False))
    else:
        write_whole(path, _as_excel(table, path))


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
    """Text is text: an id such as ``=A1`` is no formula."""
    made = cell(value)
    if isinstance(value, str):
        made.data_type = "s"
    return made
