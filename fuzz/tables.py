"""The readers of tables: text, sheets of Excel and OpenDocument, SPSS, Stata, Parquet and Arrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZipFile

import pandas as pd
import pyreadstat
import xlwt

from deeptobit.app.study import StudyError, read_table
from fuzz.target import Change, Target

_COHORT = pd.DataFrame(
    {
        "id": ["007", "008", "009", "010"],
        "age": [70.5, None, 81.0, -4.0],
        "sex": [1, 2, 1, 1],
        "seen": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]),
        "note": ["a, b", "µ", None, "<0.5"],
    }
)
_LABELS: Any = {"sex": {1: "f", 2: "m"}, "age": {-4: "refused"}}


def _read(path: Path) -> None:
    """Read the table, and every column as text and as numbers."""
    table = read_table(path, missing=["-4"])
    for column in table.columns:
        table.text(column)
        table.parse(column)


def _change(content: bytes, random: Random, change: Change) -> bytes:
    """Change some bytes; at times, remove or repeat some."""
    choice, first, second = random.random(), *sorted(random.choices(range(len(content) + 1), k=2))
    if choice < 0.8:
        return change(content)
    part = content[first : min(second, first + 64)]
    return content[:first] + (part * 2 if choice < 0.9 else b"") + content[first + len(part) :]


def _change_part(content: bytes, random: Random, change: Change) -> bytes:
    """Change one file of an archive, or the archive itself."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # whatever a damaged archive leads to
        return _change(content, random, change)
    if not parts or random.random() < 0.2:
        return _change(content, random, change)
    name = random.choice(sorted(parts))
    parts[name] = _change(parts[name], random, change)
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for part, stored in parts.items():
            archive.writestr(part, stored)
    return buffer.getvalue()


def _seeds(suffix: str, write: Callable[[pd.DataFrame, str], object]) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        write(_COHORT, str(path))
        return {"cohort": path.read_bytes()}


def _cells(table: pd.DataFrame) -> Iterator[tuple[int, int, Any]]:
    """Row, column and value of every cell that is not empty, the header in row 0."""
    for column, name in enumerate(table.columns):
        for row, cell in enumerate([name, *table[name].astype(object)]):
            if not pd.isna(cell):
                yield row, column, cell


def write_xls(table: pd.DataFrame, path: str | Path) -> None:
    """Write the old format of Excel, which pandas no longer writes."""
    book = xlwt.Workbook()
    sheet = book.add_sheet("cohort")
    for row, column, cell in _cells(table):
        sheet.write(row, column, cell)
    book.save(str(path))


def write_ods(table: pd.DataFrame, path: str | Path) -> None:
    """Write an OpenDocument sheet, which pandas writes only with a package that has no wheel."""
    rows = [["<table:table-cell/>"] * table.shape[1] for _ in range(len(table) + 1)]
    for row, column, cell in _cells(table):
        kind = "string"
        if isinstance(cell, int | float):
            kind = f'float" office:value="{cell!r}'
        elif isinstance(cell, pd.Timestamp):
            kind = f'date" office:date-value="{cell.isoformat()}'
        text = f"<text:p>{escape(str(cell))}</text:p>"
        rows[row][column] = (
            f'<table:table-cell office:value-type="{kind}">{text}</table:table-cell>'
        )
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    lines = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
    with ZipFile(path, "w") as archive:
        kind = "application/vnd.oasis.opendocument.spreadsheet"
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<m:file-entry m:full-path="/" m:media-type="{kind}"/></m:manifest>',
        )
        archive.writestr(
            "content.xml",
            f"<office:document-content {names}><office:body><office:spreadsheet>"
            f'<table:table table:name="cohort">{lines}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )


_WRITERS: dict[str, Callable[[pd.DataFrame, str], object]] = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".xlsx": lambda table, path: table.to_excel(path, index=False),
    ".ods": write_ods,
    ".xls": write_xls,
    ".sav": lambda table, path: pyreadstat.write_sav(table, path, variable_value_labels=_LABELS),
    ".dta": lambda table, path: pyreadstat.write_dta(table, path, variable_value_labels=_LABELS),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".arrow": lambda table, path: table.to_feather(path),
}

TARGETS = tuple(
    Target(
        suffix[1:],
        f"a{suffix}",
        _read,
        StudyError,
        partial(_seeds, suffix, write),
        _change_part if suffix in (".xlsx", ".ods") else _change,
    )
    for suffix, write in _WRITERS.items()
)
