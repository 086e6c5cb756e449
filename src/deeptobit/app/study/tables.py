"""Tables of people in rows: their cells as text and as numbers, and how they are written."""

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from deeptobit import files
from deeptobit.arrays import BoolArray, FloatArray, IntArray
from deeptobit.extras import require

if TYPE_CHECKING:
    from deeptobit.app.study.config import ColumnSettings

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
_CODE = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?|[+-]?\.\d+")  # a number, but not the id 007
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


def plain_numbers(cells: "pd.Series[Any]") -> FloatArray | None:
    """Text as numbers of shape (N,) where every cell is a plain one or null; otherwise None.

    Examples
    --------
    >>> plain_numbers(pd.Series(["1.5", None])), plain_numbers(pd.Series(["1.5", "x"]))
    (array([1.5, nan]), None)
    """
    arrow, compute = require("pyarrow", "app"), require("pyarrow.compute", "app")
    try:
        text = arrow.array(cells, from_pandas=True)
        values = compute.cast(text, arrow.float64()).to_numpy(zero_copy_only=False)
    except (arrow.ArrowException, TypeError, ValueError):
        return None
    plain = text.type in (arrow.string(), arrow.large_string())
    plain = plain and int(np.isnan(values).sum()) == text.null_count
    return np.asarray(values) if plain and not np.isinf(values).any() else None


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


class Remark(NamedTuple):
    """What was decided when a table was read: its part, a sentence, and a key of ``[data]``."""

    about: str
    message: str
    setting: tuple[str, str | int] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Cells as they are stored, to be read as text or as numbers column by column.

    Text stays text until it is read as numbers, so that the id ``007`` keeps its zeros and a number
    of twenty digits keeps them all.

    Attributes
    ----------
    cells : DataFrame of shape (N, columns)
        As they are stored: text, numbers, dates.
    file : str
        Name of the file, for errors.
    lines : array of shape (N,)
        Line number of each row in its file; the header is line 1.
    decimal_comma : bool
        Whether ``1,5`` may mean 1.5.
    blanks : frozenset of str
        Cells without a value.
    labels : mapping
        By column of codes, what each number stands for, as SPSS and Stata store it. Such a column
        is read as labels where text is wanted, and as codes where numbers are.
    repairs : mapping
        By column, what the study says of its cells.
    remarks : tuple of Remark
        What was left out or guessed when the file was read.

    Examples
    --------
    >>> cells = pd.DataFrame({"id": ["007", "008"], "sex": [1.0, 2.0]})
    >>> table = Table(cells, "a.sav", np.arange(2), labels={"sex": {1.0: "f", 2.0: "m"}})
    >>> table.text("id").tolist(), table.text("sex").tolist(), table.numbers("sex")
    (['007', '008'], ['f', 'm'], array([1., 2.]))
    """

    cells: pd.DataFrame
    file: str
    lines: IntArray
    decimal_comma: bool = False
    blanks: frozenset[str] = BLANKS
    labels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)
    repairs: "Mapping[str, ColumnSettings]" = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    # Reading ten thousand columns of text takes seconds, and several steps need each.
    _text: dict[str, "pd.Series[Any]"] = field(default_factory=dict, repr=False)
    _parsed: dict[str, tuple[FloatArray, BoolArray]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [str(name) for name in self.cells.columns]

    def where(self, rows: BoolArray, remarks: Iterable[Remark] = ()) -> "Table":
        """Some of the rows, and remarks why."""
        return replace(
            self,
            cells=self.cells[rows].reset_index(drop=True),
            lines=self.lines[rows],
            remarks=(*self.remarks, *remarks),
            _text={},
            _parsed={},
        )

    def text(self, column: str) -> "pd.Series[Any]":
        """Cells as text, None where blank."""
        if column not in self._text:
            cells, names = self.cells[column], self.labels.get(column, {})
            repair, codes = self.repairs.get(column), self._codes(column)
            if codes and cells.dtype.kind in "iuf":
                cells = cells.mask(cells.isin(codes))
            if names or cells.dtype.kind in "biufMm":
                text = cells.map(lambda cell: names.get(cell, as_text(cell)), na_action="ignore")
            else:
                text = cells.map(lambda cell: str(cell).strip(), na_action="ignore")
                for old, new in self._spelling(column).items():
                    text = text.str.replace(old, new, regex=False).str.strip()
                text = text.mask(text.isin(self._missing(column)))
                if codes and text.notna().any():  # -4.0 is -4, but the id 007 is not 7
                    text = text.mask(text.map(self._number, na_action="ignore").isin(codes))
                text = text.str.casefold() if repair and repair.ignore_case else text
            text = text.astype(object)
            self._text[column] = text.where(text.notna(), None)
        return self._text[column]

    def _number(self, cell: str) -> float | None:
        found = _CODE.fullmatch(cell.replace(",", ".") if self.decimal_comma else cell)
        return None if found is None else float(found[0])

    def parse(self, column: str) -> tuple[FloatArray, BoolArray]:
        """Cells as numbers, and where a cell is neither a number nor blank."""
        if column not in self._parsed:
            cells, codes = self.cells[column], self._codes(column)
            if cells.dtype.kind in "biuf":
                values: FloatArray | None = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                values = None if self._spelling(column) else plain_numbers(cells)
            if values is None:
                values, wrong = parse_numbers(self.text(column), decimal_comma=self.decimal_comma)
            else:
                wrong = np.isinf(values)
            values = np.where(wrong | np.isin(values, codes), np.nan, values)
            if column in self.repairs:
                values = self.repairs[column].apply(values)
            self._parsed[column] = values, wrong
        return self._parsed[column]

    def _codes(self, column: str) -> list[float]:
        """The blanks of a column that are numbers."""
        return [float(code) for code in self._missing(column) if _CODE.fullmatch(code)]

    def _missing(self, column: str) -> set[str]:
        """Cells of a column that mean missing; those that are numbers are compared as numbers."""
        own = self.repairs[column].missing if column in self.repairs else ()
        return {*self.blanks, *map(str, own)}

    def _spelling(self, column: str) -> dict[str, str]:
        """What the study takes out of the cells of a column, or writes in another way."""
        repair = self.repairs.get(column)
        if repair is None:
            return {}
        return dict.fromkeys(repair.remove, "") | ({",": "."} if repair.decimal_comma else {})

    def n_blank(self, column: str) -> int:
        """Number of cells without a value."""
        values, wrong = self.parse(column)
        return int((np.isnan(values) & ~wrong).sum())

    def numbers(self, column: str, what: str = "column") -> FloatArray:
        """Cells as numbers, NaN where blank; any other text is an error that names its line."""
        values, wrong = self.parse(column)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            where = f"{self.file}, line {self.lines[row]}"
            found = f"{self.text(column).iloc[row]!r} ({int(wrong.sum())} such cells)"
            raise StudyError(f"{where}: {what} {column!r} must hold numbers; found {found}")
        return values

    def at(self, rows: BoolArray) -> str:
        """The file and the line numbers of the first of some rows: ``data.csv, lines 3, 7``."""
        lines = self.lines[rows]
        named = ", ".join(str(line) for line in lines[:5]) + (", …" if len(lines) > 5 else "")
        return f"{self.file}, line{'s' if len(lines) > 1 else ''} {named}"


def as_text(cell: Any) -> str:
    """A cell as text; whole numbers are written without a point, also if stored as 7.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


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


def templates(folder: str, **settings: Any) -> Any:
    """Jinja's environment for the templates in a folder of ``deeptobit.app``."""
    jinja2 = require("jinja2", "app")
    loader = jinja2.PackageLoader("deeptobit.app", folder)
    return jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, **settings)


def escape_markdown(text: str) -> str:
    r"""Text on one line, that no Markdown or HTML is read into.

    Examples
    --------
    >>> print(escape_markdown("p_value < 5 %\n| a & b, &lt;"))
    p\_value &lt; 5 % \| a & b, &amp;lt;
    """
    plain = re.sub(r"&(?=#?\w+;)", "&amp;", " ".join(text.split())).replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)


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


class Dialect(NamedTuple):
    """How a text file is written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


_FORMULA = re.compile(r"[=+@\t\r]|-(?!\.?\d)")


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Text that a spreadsheet would run as a formula, with a quote before it.

    Examples
    --------
    >>> without_formulas(pd.DataFrame({"id": ["=cmd()", "+1", "-1", "@SUM", "a"]}))["id"].tolist()
    ["'=cmd()", "'+1", '-1', "'@SUM", 'a']
    """

    def quoted(cell: Any) -> Any:
        return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell

    words = [name for name in table.columns if table[name].dtype.kind == "O"]
    table = table.assign(**{name: table[name].map(quoted) for name in words})
    return table.rename(columns=quoted)


def write_table(
    table: pd.DataFrame, path: Path, dialect: Dialect | None = None, *, raw: bool = True
) -> None:
    r"""Write a table without its index, in the format of the suffix.

    If not ``raw``, text that a spreadsheet would run as a formula gets a quote before it in a text
    file.

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
        separator, decimal, encoding = dialect or Dialect()
        table = table if raw else without_formulas(table)
        text = table.to_csv(index=False, lineterminator="\n", sep=separator, decimal=decimal)
        content: str | bytes = text.encode(encoding, errors="replace")
    elif kind == ".parquet":
        require("pyarrow", "app")
        content = table.to_parquet(index=False)
    else:
        content = _as_excel(table, path)
    write_whole(path, content)


def _as_excel(table: pd.DataFrame, path: Path) -> bytes:
    if len(table) >= _EXCEL_ROWS or table.shape[1] > _EXCEL_COLUMNS:
        most = f"an Excel sheet holds {_EXCEL_ROWS} rows and {_EXCEL_COLUMNS} columns"
        needed = f"{len(table) + 1} and {table.shape[1]} are needed. Write .csv or .parquet"
        raise StudyError(f"{path.name}: {most}; {needed}")
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
        what = "an id has characters that Excel does not take; write .csv or .parquet"
        raise StudyError(f"{path.name}: {what}") from None
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
