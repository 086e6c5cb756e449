"""Files of tables: text, Excel, SPSS, Stata, Parquet and Arrow, each read by one path.

A file is opened as a source, which has ``columns``, ``n_rows`` and ``frames``. A table in memory is
all its frames joined; a table beyond memory is read frame by frame. Sheets and files of statistics
programs come whole, as one frame.
"""

import csv
import os
import re
import subprocess
import sys
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_LE, getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from deeptobit.app.study import layout
from deeptobit.app.study.tables import BLANKS, Dialect, Remark, StudyError, Table, as_text
from deeptobit.arrays import IntArray, listed
from deeptobit.extras import require
from deeptobit.scale import Frame, ParquetTable, TextTable, csv_to_parquet

if TYPE_CHECKING:
    from deeptobit.app.study.config import ColumnSettings

TEXT = (".csv", ".tsv", ".txt")
SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
STATISTICS = (".sav", ".zsav", ".dta")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather")
KINDS = (*TEXT, *SHEETS, *STATISTICS, *PARQUET, *ARROW)
_ALL_ROWS = 2**31 - 1

Chunk = tuple[Table, IntArray]  # some rows of a table, and their numbers in it


def kind_of_file(path: Path) -> str:
    """The suffix of a file in lower case; a folder counts as Parquet."""
    return PARQUET[0] if path.is_dir() else path.suffix.lower()


@contextmanager
def as_study_error(what: str = "") -> Iterator[None]:
    """Errors of reading and fitting, which name what is wrong, as errors of the study."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, StudyError) else StudyError(f"{what}{error}") from None


def read_table(
    path: Path | str,
    *,
    sheet: str | None = None,
    header: int | None = None,
    missing: Sequence[str] = (),
) -> Table:
    r"""Read a table whole.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.txt`` (UTF-8; separated by comma, semicolon, tab or bar; a comma is
        a decimal point unless it is the separator), ``.xlsx``, ``.xls``, ``.ods``, ``.sav``,
        ``.dta``, ``.parquet``, ``.arrow``, or a folder of ``.parquet`` files.
    sheet : str, optional
        Sheet of a workbook; the first by default.
    header : int, optional
        Row of the file that names the columns, from 1; detected by default.
    missing : sequence of str
        Cells that count as blank besides the usual ones, such as ``-4`` or ``999``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id;MMSE\n007;29,5\n008;NA\n")
    ...     table = read_table(path)
    >>> table.text("id").tolist(), table.numbers("MMSE")
    (['007', '008'], array([29.5,  nan]))
    """
    return TableFile(Path(path), sheet=sheet, header=header, missing=missing).read()


class TableFile:
    """A table in a file or folder, opened and not yet read.

    Parameters
    ----------
    path : Path
    sheet, header, missing
        As in :func:`read_table`.
    repairs : mapping
        By column, how its cells are read differently.
    """

    def __init__(
        self,
        path: Path,
        *,
        sheet: str | None = None,
        header: int | None = None,
        missing: Sequence[str] = (),
        repairs: "Mapping[str, ColumnSettings] | None" = None,
    ) -> None:
        if not os.path.exists(path):  # unlike Path.exists, it accepts a name of any length
            raise StudyError(f"{path}: there is no such file")
        self.path, self.file, kind = path, path.name, kind_of_file(path)
        self._options: dict[str, Any] = {"blanks": BLANKS | {*missing}, "repairs": repairs or {}}
        self.dialect, self.remarks = Dialect(), list[Remark]()
        self._places, self._n_heads = dict[str, int](), 0  # rows of units below the header
        if sheet is not None and kind not in SHEETS:
            raise StudyError(f"{self.file} has no sheets: sheet is for Excel files")
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise StudyError(f"{self.file}: cannot read files of kind {kind!r}; known are {known}")
        with as_study_error():
            if kind in TEXT:
                self.source: TextTable | ParquetTable | TableInMemory = self._open_text(header)
            elif kind in SHEETS:
                self.source = self._open_sheet(sheet, header)
            elif kind in STATISTICS:
                frame, self._options["labels"] = _read_statistics(path)
                self.source = TableInMemory(frame, np.arange(2, len(frame) + 2), self.file)
            else:
                self.source = _open_parquet(path)
            self.columns, n_rows = self.source.columns, self.source.n_rows
        if n_rows == 0:
            raise StudyError(f"{self.file} has a header but no row of data; add rows")
        twice = {name.split(layout.APART)[0] for name in self.columns if layout.APART in name}
        if twice:
            named = {n: at for n, at in self._places.items() if n.split(layout.APART)[0] in twice}
            cells = self._read(list(named)).cells
            copies, remarks = layout.without_copies(cells, named, self.file)
            self.columns = [name for name in self.columns if name not in copies]
            self.remarks += remarks

    def _open_text(self, header: int | None) -> TextTable:
        """A text file: its encoding, its separator and its header are found."""
        encoding = sniff_encoding(self.path)
        if encoding == "windows-1252":
            message = f"{self.file} is not UTF-8 and was read as {encoding.title()}"
            self.remarks.append(Remark("encoding", message))
        separator, rows = sniff_separator(self.path, encoding)
        self._options["decimal_comma"] = separator != ","
        commas = any(_DECIMAL_COMMA.fullmatch(cell) for row in rows for cell in row)
        self.dialect = Dialect(separator, "," if separator != "," and commas else ".", encoding)
        head = layout.find_head(rows, self.file, header)
        self.remarks += head.remarks
        names = layout.unique(head.names)
        self._places = {name or f"column_{at + 1}": at for at, name in enumerate(names)}
        self._n_heads = head.first - head.header - 1
        above = [cell for row in rows[: head.header] for cell in row]
        return TextTable(
            self.path,
            separator=separator,
            blanks=self._options["blanks"],
            encoding=encoding.removesuffix("-sig"),
            header=1 + head.header + sum(cell.count("\n") for cell in above),
            names=names,
        )

    def _open_sheet(self, sheet: str | None, header: int | None) -> "TableInMemory":
        """A sheet; without a name the first, or where that holds no table, the largest."""
        with open_workbook(self.path) as book:
            names = list(book.sheet_names)
            if sheet is not None and sheet not in names:
                raise StudyError(f"{self.file} has no sheet {sheet!r}; it has {listed(names)}")
            found = book.get_sheet_by_name(sheet or names[0])
            if sheet is None and len(names) > 1 and not _is_table(found.iter_rows()):
                largest = max(map(book.get_sheet_by_name, names), key=lambda one: one.total_height)
                if largest.name != names[0] and _is_table(largest.iter_rows()):
                    message = f"sheet {largest.name!r} of {self.file} was read, the largest"
                    self.remarks.append(Remark("sheet", message, ("sheet", largest.name)))
                    found = largest
            return self._read_sheet(found, header)

    def _read_sheet(self, sheet: Any, header: int | None) -> "TableInMemory":
        """A sheet some rows at a time, as cells are large until they are columns of numbers."""
        top = sheet.to_python(skip_empty_area=False, nrows=_HEAD)
        head = layout.find_head([[*map(as_text, row)] for row in top], self.file, header)
        self.remarks += head.remarks
        left = [""] * sheet.start[1]
        below = islice(enumerate(sheet.iter_rows(), start=1), head.first, None)
        rows = ([line, *left, *row] for line, row in below if any(map(_is_filled, row)))
        parts = [[np.zeros(0)] * (1 + len(head.names))]
        while block := list(islice(rows, _SOME_ROWS)):
            parts.append([_stored(cells) for cells in zip(*block, strict=True)])
        lines, *cells = (_typed(np.concatenate(part)) for part in zip(*parts, strict=True))
        unique = layout.unique([name or f"column_{at + 1}" for at, name in enumerate(head.names)])
        used = [bool(n) or any(map(_is_filled, cells[at])) for at, n in enumerate(head.names)]
        self._places = {unique[at]: at for at in np.flatnonzero(used).tolist()}
        frame = pd.DataFrame({name: cells[at] for name, at in self._places.items()})
        return TableInMemory(frame, np.asarray(lines, dtype=np.int64), self.file)

    def chunks(self, columns: Sequence[str] | None, batch_rows: int) -> Iterator[Chunk]:
        """Some columns of all rows, at most ``batch_rows`` at a time, and the rows' numbers."""
        with as_study_error():
            for frame in self.source.frames(columns, batch_rows):
                rows = np.arange(frame.row, frame.row + len(frame.lines))
                yield self._table(frame.cells, frame.where, frame.lines), rows

    def read(self) -> Table:
        """The whole table, without rows that are not people."""
        return layout.without_summaries(self._read(self.columns))

    def _read(self, columns: list[str] | None) -> Table:
        with as_study_error():
            frames = list(self.source.frames(columns, _ALL_ROWS))
        lines, cells = np.concatenate([frame.lines for frame in frames]), frames[0].cells
        if isinstance(self.source, ParquetTable):
            lines = np.arange(2, len(lines) + 2)  # as if all files were one
        if len(frames) > 1:
            arrow = require("pyarrow", "app")
            parts = [arrow.Table.from_batches([frame.cells]) for frame in frames]
            cells = arrow.concat_tables(parts, promote_options="permissive")
        table = self._table(cells, self.file, lines)
        return table.where(np.arange(len(lines)) >= self._n_heads) if self._n_heads else table

    def _table(self, cells: Any, file: str, lines: IntArray) -> Table:
        if not isinstance(cells, pd.DataFrame):
            arrow = require("pyarrow", "app")
            if isinstance(self.source, ParquetTable):
                try:
                    cells.validate(full=True)
                except arrow.ArrowInvalid:
                    raise StudyError(f"{file} is damaged; write it again") from None
            types = {arrow.bool_(): pd.BooleanDtype()}  # true and false beside blanks
            cells = cells.replace_schema_metadata().to_pandas(types_mapper=types.get)
        return Table(cells, file, lines, remarks=tuple(self.remarks), **self._options)


class TableInMemory:
    """A table that is read whole."""

    def __init__(self, cells: pd.DataFrame, lines: IntArray, file: str) -> None:
        self._cells, self._line_numbers, self._file = cells, lines, file
        self.columns, self.n_rows = [str(name) for name in cells.columns], len(lines)

    def frames(self, columns: Sequence[str] | None, batch_rows: int) -> Iterator[Frame]:
        """Some columns of all rows, some rows at a time."""
        cells = self._cells if columns is None else self._cells[list(columns)]
        for start in range(0, self.n_rows, batch_rows):
            part = slice(start, start + batch_rows)
            yield Frame(cells.iloc[part], self._file, self._line_numbers[part], start)


def _open_parquet(path: Path) -> ParquetTable:
    require("pyarrow", "app")
    with suppress(ValueError):
        table = ParquetTable(path)
        if table.columns:
            return table
    if path.is_dir():
        raise StudyError(f"{path} is a folder, but not of Parquet files of one table; name a file")
    kind = "an Arrow" if kind_of_file(path) in ARROW else "a Parquet"
    raise StudyError(f"{path.name} cannot be read as {kind} file; write it again")


# Text.

SEPARATORS = (",", ";", "\t", "|")
_MOST_RECORDS = 20  # that decide on the separator
_HEAD = layout.MOST_LINES
_DECIMAL_COMMA = re.compile(r"\s*[<>+-]?\d*,\d+\s*")
_NO_TEXT = {*range(9), *range(14, 27), 0x81, 0x8D, 0x8F, 0x90, 0x9D}  # in no text of Windows-1252
_MOST_BYTES = 2**20


def sniff_encoding(path: Path) -> str:
    """UTF-8, with or without a mark at its start, or Windows-1252 where a file is other text."""
    decoder = getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        sample = block = file.read(_MOST_BYTES)
        if sample.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and sample[:4] != BOM_UTF32_LE:
            return "utf-16"
        try:
            while block:
                decoder.decode(block)
                block = file.read(_MOST_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            if not set(sample) & _NO_TEXT:
                return "windows-1252"
    # If it is neither, the error says where.
    return "utf-8-sig" if sample.startswith(BOM_UTF8) else "utf-8"


def sniff_separator(path: Path, encoding: str = "utf-8-sig") -> tuple[str, list[list[str]]]:
    r"""The separator with which most of the first records have the same number of cells.

    Returns
    -------
    separator : str
    rows : list of lists of str
        The first lines, a record each; blank ones too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("Export\nid;MMSE\nS1;29,5\nS2;30,0\n")
    ...     sniff_separator(path)[0]
    ';'
    """
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES).decode(encoding, errors="ignore")
    lines = text.splitlines(keepends=True)
    lines = lines[:-1] if len(text) > _MOST_BYTES // 2 else lines  # the last may be incomplete

    def records(separator: str) -> list[list[str]]:
        try:
            return list(islice(csv.reader(lines, delimiter=separator, strict=True), _HEAD))
        except csv.Error:
            return []

    def agreement(separator: str) -> tuple[bool, int, int]:
        some = (row for row in records(separator) if any(cell.strip() for cell in row))
        widths = Counter(map(len, islice(some, _MOST_RECORDS)))
        width, times = max(widths.items(), key=lambda each: each[1], default=(0, 0))
        many = width > 1 and times > 0.5 * widths.total()
        return (len(widths) == 1, times, width) if many else (False, 0, 0)

    best = max(SEPARATORS, key=agreement)
    return best, records(best) or [line.split(best) for line in lines[:1]]


def convert_table(
    path: Path, out: Path, *, progress: Callable[[int], None] = lambda rows: None
) -> int:
    r"""Convert a CSV file to a Parquet file in chunks; returns the number of rows.

    Cells are read as in :func:`read_table`: the id ``007`` keeps its zeros, ``<0.5`` stays as it
    is, blanks are missing, a comma is a decimal point unless it is the separator, and encoding and
    header are found.

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
    table = TableFile(path)
    if not isinstance(table.source, TextTable):
        what = f"only text files can be converted ({', '.join(TEXT)})"
        raise StudyError(f"{path.name}: {what}; save it as 'CSV UTF-8'")
    decimal_comma = table.dialect.separator != ","
    with as_study_error():
        return csv_to_parquet(table.source, out, decimal_comma=decimal_comma, progress=progress)


# Sheets of Excel and of OpenDocument.

_MOST_UNPACKED = 2**32  # bytes
_SOME_ROWS = 500  # few enough for the cache


@contextmanager
def open_workbook(path: Path) -> Iterator[Any]:
    """A workbook; what is damaged, locked or absurdly large gets one sentence."""
    calamine = require("python_calamine", "app")
    what = "an OpenDocument" if path.suffix.lower() == ".ods" else "an Excel"
    again = StudyError(f"{path.name} cannot be read as {what} file; save it again as .xlsx")
    try:
        old = path.suffix.lower() == ".xls"
        if not (_ends(path.read_bytes()) and _survives(path) if old else _unpacks(path)):
            raise again
        with calamine.load_workbook(path) as book:
            yield book
    except calamine.PasswordError:
        raise StudyError(f"{path.name} is locked with a password; save it without one") from None
    except (calamine.CalamineError, BadZipFile, OSError, IndexError):
        raise again from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how Rust says that it found itself wrong
            raise
        raise again from None


def _unpacks(path: Path) -> bool:
    """Whether the archive of a workbook is of a reasonable size, and the XML of .ods is whole.

    calamine waits for ever for the end of an element that is left open.
    """
    with ZipFile(path) as parts:
        unpacked = sum(part.file_size for part in parts.infolist())
        if unpacked > _MOST_UNPACKED:
            size = f"{unpacked / 1e9:.0f} GB"
            raise StudyError(f"{path.name} unpacks to {size}; save it as 'CSV UTF-8'")
        try:
            if path.suffix.lower() == ".ods":
                with parts.open("content.xml") as content:
                    expat.ParserCreate().ParseFile(content)
        except (expat.ExpatError, zlib.error, EOFError, LookupError, RuntimeError):
            return False
    return True


def _survives(path: Path) -> bool:
    """Whether calamine opens an .xls file, or refuses it, without ending its process."""
    code = "import sys, python_calamine; python_calamine.load_workbook(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", code, path.absolute()], capture_output=True)
    return run.returncode in (0, 1)


def _ends(content: bytes) -> bool:
    """Whether all chains of sectors of an .xls file end; calamine follows a circle for ever."""
    size = 1 << min(max(int.from_bytes(content[30:32], "little"), 2), 12)
    content += b"\xff" * (-len(content) % size)
    words = np.frombuffer(content, "<u4").astype(np.int64)
    sectors = words[size // 4 :].reshape(-1, size // 4)
    if len(words) < 128:
        return True  # too short for calamine

    def chain(first: int, successors: IntArray) -> list[int]:
        found = list[int]()
        while first < min(len(sectors), len(successors)) and len(found) <= len(sectors):
            found.append(first)
            first = int(successors[first])
        return found

    # Sectors that name further tables, each with the next one at its end.
    further = chain(int(words[17]), sectors[:, -1])
    if len(further) > len(sectors):
        return False
    tables = np.append(words[19:128], sectors[further, :-1])
    successors = sectors[tables[tables < len(sectors)]].ravel()
    small = sectors[chain(int(words[15]), successors)].ravel()
    return _is_acyclic(successors) and _is_acyclic(small)


def _is_acyclic(successors: IntArray) -> bool:
    """Whether every chain leaves the table, by jumps that double their length."""
    end = len(successors)
    jump = np.append(np.minimum(successors, end), end)
    for _ in range(end.bit_length()):
        jump = jump[jump]
    return bool((jump == end).all())


def _is_table(rows: Iterable[list[Any]]) -> bool:
    """Whether most rows of a sheet have more than one cell; those of a cover page have not."""
    filled = [number for row in rows if (number := sum(map(_is_filled, row)))]
    return bool(filled) and float(np.median(filled)) > 1.0


def _is_filled(cell: Any) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None


def _stored(cells: Sequence[Any]) -> NDArray[Any]:
    """Some cells of a column: numbers, NaN where blank, or all as they are, None where blank."""
    kinds = {*map(type, cells)}
    if str in kinds:
        cells = [None if cell == "" else cell for cell in cells]
        kinds = {*map(type, cells)} - {type(None)}
    return np.array(cells, dtype=np.float64 if kinds <= {float, int} else object)


def _typed(cells: NDArray[Any]) -> "pd.Series[Any]":
    """A column of numbers, of true and false, or of text; blank cells are missing."""
    known = pd.notna(cells)
    if cells.dtype.kind == "f" and known.any():
        return pd.Series(cells)
    if {*map(type, cells[known])} == {bool}:
        return pd.Series(cells, dtype="boolean")
    return pd.Series(list(map(as_text, cells)), dtype=object).where(known, None)


# SPSS and Stata.


def _read_statistics(path: Path) -> tuple[pd.DataFrame, dict[str, dict[float, str]]]:
    """The table of a statistics program, and labels of the codes of its categories.

    Values that the file declares missing are missing. A column whose values all have labels holds
    categories, unless the file calls it ordinal or a scale.
    """
    pyreadstat = require("pyreadstat", "app")
    is_stata = path.suffix.lower() == ".dta"
    read = pyreadstat.read_dta if is_stata else pyreadstat.read_sav
    try:
        # In a process of its own: the parser is C code, and a damaged file can end its process.
        worker = Parallel(n_jobs=2, backend="loky")
        ((frame, about),) = worker([delayed(read)(str(path.absolute()))])
    except Exception:
        program = "a Stata" if is_stata else "an SPSS"
        raise StudyError(f"{path.name} cannot be read as {program} file; save it again") from None
    for name in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
        frame[name] = frame[name].map(str, na_action="ignore")
    labels: dict[str, dict[float, str]] = {}
    for name, meanings in about.variable_value_labels.items():
        codes = {float(c): str(word) for c, word in meanings.items() if isinstance(c, int | float)}
        nominal = about.variable_measure.get(name, "unknown") in ("nominal", "unknown")
        numeric = name in frame and frame[name].dtype.kind in "iuf"
        if numeric and nominal and frame[name].dropna().isin(codes).all():
            labels[name] = codes
    return frame, labels
