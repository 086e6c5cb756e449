"""Tables of people in rows, as CSV, Excel or Parquet: read, written and converted."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit import files
from deeptobit.arrays import BoolArray, FloatArray, listed
from deeptobit.extras import require
from deeptobit.scale import csv_to_parquet

# Errors in one sentence.


class StudyError(ValueError):
    """A study file or table cannot be used; the message says where, and what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to a mistyped one; empty if none is close.

    Examples
    --------
    >>> did_you_mean("featurs", ["data", "features", "targets"])
    "; did you mean 'features'?"
    >>> did_you_mean("mmse", ["MMSE", "ADAS13"])
    "; did you mean 'MMSE'?"
    >>> did_you_mean("age", ["MMSE"])
    ''
    """
    meant = closest(word, known)
    return "" if meant is None else f"; did you mean {meant!r}?"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to another, ignoring case; None if none is close."""
    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


# Cells as people write them: numbers, decimal commas, blanks, yes and no.

# "None" is not among them: it is a category ("treatment: None") more often than a blank.
BLANKS = frozenset({"", ".", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "#NULL!"})
YES = frozenset({"1", "1.0", "true", "t", "yes", "y", "<", ">", "below", "above", "censored"})
NO = frozenset({"0", "0.0", "false", "f", "no", "n", "=", "observed", "detected"})


def parse_numbers(cells: "pd.Series[Any]", *, decimal_comma: bool) -> tuple[FloatArray, BoolArray]:
    """Numbers of shape (N,), NaN where blank, and where a cell is neither a number nor blank.

    Parameters
    ----------
    cells : Series of str, None where blank
    decimal_comma : bool
        Whether ``1,5`` may mean 1.5. In a column with both commas and points, cells with a point
        count as wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1,5", None, "x"]), decimal_comma=True)
    (array([1.5, nan, nan]), array([False, False,  True]))
    """
    text = cells.astype(object)
    known = text.notna().to_numpy()
    ambiguous = np.zeros(len(text), dtype=np.bool_)
    if decimal_comma and text.str.contains(",", regex=False).eq(True).any():
        ambiguous = text.str.contains(".", regex=False).eq(True).to_numpy()
        text = text.str.replace(",", ".", regex=False)
    values = np.array(pd.to_numeric(text, errors="coerce"), dtype=np.float64)
    wrong = known & (~np.isfinite(values) | ambiguous)
    return np.where(wrong, np.nan, values), wrong


def parse_flags(cells: "pd.Series[Any]") -> tuple[BoolArray, BoolArray]:
    """Which cells say yes, and which say neither yes nor no; a blank means no.

    Examples
    --------
    >>> import pandas as pd
    >>> parse_flags(pd.Series(["yes", "0", None, "maybe"]))
    (array([ True, False, False, False]), array([False, False, False,  True]))
    """
    folded = cells.map(lambda cell: str(cell).strip().lower(), na_action="ignore")
    yes = folded.isin(YES).to_numpy()
    return yes, ~yes & ~(folded.isin(NO) | folded.isna()).to_numpy()


def split_limits(cells: "pd.Series[Any]") -> tuple["pd.Series[Any]", BoolArray, BoolArray]:
    """Cells such as ``<0.5`` and ``> 1000`` without their sign, and which cells had each sign.

    Examples
    --------
    >>> import pandas as pd
    >>> bare, below, above = split_limits(pd.Series(["<0.5", "2", None]))
    >>> bare.tolist(), below, above
    (['0.5', '2', None], array([ True, False, False]), array([False, False, False]))
    """
    text = cells.astype(object)
    sign = text.str.extract(r"^\s*([<>]|≤|≥)=?\s*(?=\S)", expand=False)
    below = sign.isin(["<", "≤"]).to_numpy()
    above = sign.isin([">", "≥"]).to_numpy()
    bare = text.str.replace(r"^\s*[<>≤≥]=?\s*", "", regex=True)
    return bare.where(bare.notna(), None), below, above


# Text files.

SEPARATORS = (",", ";", "\t", "|")
_MOST_RECORDS = 20  # that decide on the separator

Rows = list[tuple[int, list[str]]]
"""The number of each row in its file, and its cells."""


def read_csv_rows(path: Path) -> tuple[Rows, str]:
    """Every row that is not blank, the header first, and the separator that was found."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{path.name}, line {line}: not UTF-8 text (byte 0x{content[error.start]:02x}); save "
            "the file as 'CSV UTF-8'"
        ) from None
    separator = sniff_separator(text)
    return list(_records(text, separator, path.name)), separator


def sniff_separator(text: str) -> str:
    r"""The separator that gives the first records the same and the largest number of cells.

    Examples
    --------
    >>> sniff_separator("id;MMSE\nS1;29,5\nS2;30,0\n")
    ';'
    """
    return max(SEPARATORS, key=lambda separator: _agreement(text, separator))


def _agreement(text: str, separator: str) -> tuple[bool, int]:
    try:
        widths = [len(cells) for _, cells in islice(_records(text, separator), _MOST_RECORDS)]
    except StudyError:
        return False, 0
    return (len(set(widths)) == 1, widths[0]) if widths and widths[0] > 1 else (False, 0)


def _records(text: str, separator: str, file: str = "") -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every record that is not blank."""
    # Strict: otherwise an open quote would swallow the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 0
    try:
        for cells in reader:
            line = reader.line_num
            if any(cell.strip() for cell in cells):
                yield line, cells
    except csv.Error as error:
        raise StudyError(
            f"{file}, line {line + 1}: cannot be read as CSV ({error}); close every quote, "
            "and write a quote within a cell twice"
        ) from None


TEXT = (".csv", ".tsv", ".txt")
EXCEL = (".xlsx", ".xlsm")
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Table:
    """Cells as they are stored, to be read as text or as numbers column by column.

    Text stays text until it is read as numbers, so that the id ``007`` keeps its zeros and a number
    of twenty digits keeps them all.

    Attributes
    ----------
    cells : DataFrame of shape (N, columns)
        Text, None where blank; columns of a Parquet file keep their type.
    file : str
        Name of the file, for errors.
    lines : array of shape (N,)
        Line number of each row in its file; the header is line 1.
    decimal_comma : bool
        Whether ``1,5`` may mean 1.5.
    """

    cells: pd.DataFrame
    file: str
    lines: NDArray[np.int64]
    decimal_comma: bool = False
    # Parsing ten thousand columns of text takes seconds, and several steps need each.
    _parsed: dict[str, tuple[FloatArray, BoolArray]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [str(name) for name in self.cells.columns]

    def text(self, column: str) -> "pd.Series[Any]":
        """Cells as text, None where blank."""
        cells = self.cells[column]
        if cells.dtype.kind == "O":
            return cells
        text = cells.map(as_text, na_action="ignore").astype(object)
        return text.where(text.notna(), None)

    def parse(self, column: str) -> tuple[FloatArray, BoolArray]:
        """Cells as numbers, and where a cell is neither a number nor blank."""
        if column not in self._parsed:
            cells = self.cells[column]
            if cells.dtype.kind in "biuf":
                values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
                self._parsed[column] = np.where(np.isinf(values), np.nan, values), np.isinf(values)
            else:
                self._parsed[column] = parse_numbers(
                    self.text(column), decimal_comma=self.decimal_comma
                )
        return self._parsed[column]

    def numbers(self, column: str, what: str = "column") -> FloatArray:
        """Cells as numbers, NaN where blank; any other text is an error that names its line."""
        values, wrong = self.parse(column)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise StudyError(
                f"{self.file}, line {self.lines[row]}: {what} {column!r} must hold numbers; found "
                f"{self.text(column).iloc[row]!r} ({int(wrong.sum())} such cells)"
            )
        return values

    def at(self, rows: BoolArray) -> str:
        """The file and the line numbers of the first of some rows: ``data.csv, lines 3, 7``."""
        lines = self.lines[rows]
        named = ", ".join(str(line) for line in lines[:5]) + (", …" if len(lines) > 5 else "")
        return f"{self.file}, line{'s' if len(lines) > 1 else ''} {named}"


def read_table(path: Path | str, *, sheet: str | None = None, missing: Sequence[str] = ()) -> Table:
    r"""Read a CSV, Excel or Parquet file.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.txt`` (UTF-8; separated by comma, semicolon, tab or bar; a comma is
        a decimal point unless it is the separator), ``.xlsx``, ``.parquet``, or a folder of
        ``.parquet`` files.
    sheet : str, optional
        Sheet of an Excel file; the first by default.
    missing : sequence of str
        Cells that count as blank besides the usual ones, such as ``-4`` or ``999``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id;MMSE\n007;29,5\n008;NA\n")
    ...     table = read_table(path)
    >>> table.text("id").tolist(), table.numbers("MMSE")
    (['007', '008'], array([29.5,  nan]))
    """
    path = Path(path)
    if not os.path.exists(path):  # unlike Path.exists, it accepts a name of any length
        raise StudyError(f"{path}: there is no such file")
    kind = kind_of_file(path)
    if sheet is not None and kind not in EXCEL:
        raise StudyError(f"{path.name} has no sheets: sheet is for Excel files")
    if kind in (*TEXT, *EXCEL):
        rows, separator = read_csv_rows(path) if kind in TEXT else (_excel_rows(path, sheet), "")
        table = _from_rows(rows, path.name, {*BLANKS, *missing}, separator != ",")
    elif kind in PARQUET:
        table = _read_parquet(path, missing)
    else:
        known = ", ".join((*TEXT, *EXCEL, *PARQUET))
        raise StudyError(f"{path.name}: cannot read files of kind {kind!r}; known are {known}")
    twice = [name for name, times in Counter(table.columns).items() if times > 1]
    if twice:
        message = "column names must differ; rename those that are called"
        raise StudyError(f"{path.name}: {message} {listed(twice)}")
    if len(table) == 0:
        raise StudyError(f"{path.name} has a header but no row of data; add rows")
    return table


def kind_of_file(path: Path) -> str:
    """The suffix of a file in lower case; a folder counts as Parquet."""
    return PARQUET[0] if path.is_dir() else path.suffix.lower()


def as_text(cell: Any) -> str:
    """A cell as text; whole numbers are written without a point, also if stored as 7.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _from_rows(rows: Rows, file: str, blanks: set[str], decimal_comma: bool) -> Table:
    if not rows:
        raise StudyError(f"{file} is empty: the first row must name the columns")
    names = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise StudyError(
                f"{file}, line {line}: {len(row)} cells, but the header names {len(names)} "
                "columns; put cells that hold a separator or a line break in quotes"
            )
    columns: dict[int, list[str | None]] = {
        position: [None if cell in blanks else cell for cell in map(str.strip, cells)]
        for position, cells in enumerate(zip(*(row for _, row in rows[1:]), strict=True))
    }
    # A separator at the end of every line makes an empty column without a name.
    kept = [p for p, name in enumerate(names) if name or any(columns.get(p, []))]
    frame = pd.DataFrame({p: columns.get(p, []) for p in kept}, dtype=object)
    frame.columns = pd.Index([names[p] or f"column_{p + 1}" for p in kept])
    lines = np.array([line for line, _ in rows[1:]], dtype=np.int64)
    return Table(frame, file, lines, decimal_comma)


def _excel_rows(path: Path, sheet: str | None) -> Rows:
    require("openpyxl", "app")
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            if sheet is not None and sheet not in sheets:
                raise StudyError(f"{path.name} has no sheet {sheet!r}; it has {listed(sheets)}")
            wanted = sheet or sheets[0]
            cells = pd.read_excel(book, wanted, header=None, dtype=object, keep_default_na=False)
    except StudyError:
        raise
    except (ValueError, KeyError, BadZipFile, ParseError):
        message = f"{path.name} cannot be read as an Excel file; save it again as .xlsx"
        raise StudyError(message) from None
    rows = [
        (line, ["" if cell is None else str(cell) for cell in row])
        for line, row in enumerate(cells.itertuples(index=False, name=None), start=1)
    ]
    return [row for row in rows if any(cell.strip() for cell in row[1])]


def _read_parquet(path: Path, missing: Sequence[str]) -> Table:
    require("pyarrow", "app")
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError):
        frame = pd.DataFrame()
        if not path.is_dir():
            message = f"{path.name} cannot be read as a Parquet file; write it again"
            raise StudyError(message) from None
    if path.is_dir() and not len(frame.columns):
        raise StudyError(f"{path} is a folder, but not of Parquet files of one table; name a file")
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    return stored_table(frame, path.name, np.arange(2, len(frame) + 2), missing)


def stored_table(
    frame: pd.DataFrame, file: str, lines: NDArray[np.int64], missing: Sequence[str]
) -> Table:
    """A table of typed columns, all rows of a file or some; blanks and codes become missing."""
    frame.columns = pd.Index([str(name) for name in frame.columns])
    for name in frame.columns[[dtype.kind not in "biufMm" for dtype in frame.dtypes]]:
        if pd.api.types.infer_dtype(frame[name], skipna=True) == "boolean":
            frame[name] = frame[name].astype("boolean")  # true and false beside blanks
            continue
        text = frame[name].map(lambda cell: str(cell).strip(), na_action="ignore").astype(object)
        frame[name] = text.where(~(text.isna() | text.isin([*BLANKS, *missing])), None)
    codes = [float(code) for code in missing if code.lstrip("+-").replace(".", "", 1).isdigit()]
    numeric = frame.columns[[dtype.kind in "iuf" for dtype in frame.dtypes]]
    if codes:
        frame[numeric] = frame[numeric].mask(frame[numeric].isin(codes))
    return Table(frame, file, lines)


# Tables written to files: completely or not at all, and text stays text.


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
    files.write_whole(path, [content.encode() if isinstance(content, str) else content])


WRITABLE = (".csv", ".parquet", ".xlsx")
_EXCEL_ROWS, _EXCEL_COLUMNS = 1_048_576, 16_384


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Examples
    --------
    >>> check_writable(Path("predictions.sav"))
    Traceback (most recent call last):
        ...
    deeptobit.app.study.tables.StudyError: predictions.sav: cannot write files of kind '.sav'; known
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
    try:
        for row in (list(table.columns), *table.to_numpy(dtype=object).tolist()):
            cells = [openpyxl.cell.WriteOnlyCell(sheet, value) for value in row]
            for cell in cells:
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # an id such as =A1 is text, not a formula
            sheet.append(cells)
    except openpyxl.utils.exceptions.IllegalCharacterError:
        raise StudyError(
            f"{path.name}: an id has characters that Excel does not take; write .csv or .parquet"
        ) from None
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


_MOST_BYTES = 2**20  # bytes that decide on the separator


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
        sample = file.read(_MOST_BYTES).decode("utf-8-sig", errors="ignore").rpartition("\n")
    separator = sniff_separator(sample[0] or sample[2])
    try:
        comma = separator != ","
        return csv_to_parquet(
            path, out, separator=separator, decimal_comma=comma, blanks=BLANKS, progress=progress
        )
    except ValueError as error:
        raise StudyError(str(error)) from None
