"""Read tables: CSV, Excel or Parquet, people in rows, a name for every column."""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit.app.study.errors import StudyError, listed
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.extras import require

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
    if decimal_comma:
        comma = text.str.contains(",", regex=False).eq(True)
        if comma.any():
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
_SNIFFED = 20  # records that decide on the separator

Rows = list[tuple[int, list[str]]]
"""The number of each row in its file, and its cells."""


def read_csv_rows(path: Path) -> tuple[Rows, str]:
    """Every row that is not blank, the header first, and the separator that was found."""
    text = _decode(path)
    separator = sniff_separator(text)
    rows: Rows = []
    line = 0
    try:
        for line, cells in _records(text, separator):
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
    except csv.Error as error:
        raise StudyError(
            f"{path.name}, line {line + 1}: cannot be read as CSV ({error}); close every quote, "
            "and write a quote within a cell twice"
        ) from None
    return rows, separator


def sniff_separator(text: str) -> str:
    r"""The separator that gives the first records the same and the largest number of cells.

    Examples
    --------
    >>> sniff_separator("id;MMSE\nS1;29,5\nS2;30,0\n")
    ';'
    """
    return max(SEPARATORS, key=lambda separator: _agreement(text, separator))


def _agreement(text: str, separator: str) -> tuple[bool, int]:
    widths = []
    try:
        for _, cells in _records(text, separator):
            if any(cell.strip() for cell in cells):
                widths.append(len(cells))
            if len(widths) == _SNIFFED:
                break
    except csv.Error:
        return False, 0
    if not widths or widths[0] == 1:
        return False, 0
    return len(set(widths)) == 1, widths[0]


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    # Strict: otherwise an open quote would swallow the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for cells in reader:
        yield reader.line_num, cells


def _decode(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{path.name}, line {line}: not UTF-8 text (byte 0x{content[error.start]:02x}); save "
            "the file as 'CSV UTF-8'"
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
        book = pd.ExcelFile(path, engine="openpyxl")
    except (ValueError, KeyError, BadZipFile):
        message = f"{path.name} cannot be read as an Excel file; save it again as .xlsx"
        raise StudyError(message) from None
    with book:
        sheets = [str(name) for name in book.sheet_names]
        if sheet is not None and sheet not in sheets:
            raise StudyError(f"{path.name} has no sheet {sheet!r}; it has {listed(sheets)}")
        cells = pd.read_excel(
            book, sheet_name=sheet or sheets[0], header=None, dtype=object, keep_default_na=False
        )
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
        frame = None
    if path.is_dir() and (frame is None or not len(frame.columns)):
        raise StudyError(f"{path} is a folder, but not of Parquet files of one table; name a file")
    if frame is None:
        raise StudyError(f"{path.name} cannot be read as a Parquet file; write it again") from None
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
