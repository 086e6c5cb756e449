"""Text files: which separator, which lines, with an error that names the line."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from deeptobit.study._errors import StudyError

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
    # Strict: a quote that is never closed would swallow the rest of the file.
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
