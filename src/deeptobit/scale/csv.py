"""CSV files copied to Parquet files in bounded memory."""

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from deeptobit.extras import require

_BLOCK_BYTES = 2**24  # of text at a time; each becomes a row group
_KEEPS_ZEROS = r"^\s*[+-]?0[0-9]"  # the id 007 is no number


def csv_to_parquet(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    separator: str = ",",
    decimal_comma: bool = False,
    blanks: Collection[str] = ("",),
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    r"""Copy a CSV file to a Parquet file in bounded memory.

    The file is read twice: once to see which columns hold numbers and nothing else, once to write
    them as numbers and the others as text. The Parquet file appears whole or not at all.

    Parameters
    ----------
    path, out : str or Path
    separator : str
    decimal_comma : bool
        Whether ``1,5`` stands for 1.5. A column that has both commas and points is not guessed at:
        it stays text.
    blanks : collection of str
        Cells without a value.
    progress : callable
        Called with the number of rows that are written.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id;MMSE\n007;29,5\n012;NA\n")
    ...     out = Path(folder, "a.parquet")
    ...     options = {"separator": ";", "decimal_comma": True, "blanks": ["NA"]}
    ...     print(csv_to_parquet(Path(folder, "a.csv"), out, **options))
    ...     pd.read_parquet(out)
    2
        id  MMSE
    0  007  29.5
    1  012   NaN
    """
    numbers = _NumberColumns(decimal_comma)
    for batch in _text_batches(os.fspath(path), separator, blanks):
        numbers.inspect(batch)
    part = Path(f"{os.fspath(out)}.part")
    try:
        n_rows = _write(_text_batches(os.fspath(path), separator, blanks), numbers, part, progress)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return n_rows


def _text_batches(path: str, separator: str, blanks: Collection[str]) -> Iterator[Any]:
    """A CSV file as batches of text, null where blank."""
    csv, arrow = require("pyarrow.csv", "scale"), require("pyarrow", "scale")
    reading = csv.ReadOptions(block_size=_BLOCK_BYTES)
    parsing = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    try:
        names = csv.open_csv(path, reading, parsing).schema.names
        text = csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.string()),
            null_values=list(blanks),
            strings_can_be_null=True,
        )
        yield from csv.open_csv(path, reading, parsing, text)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None


class _NumberColumns:
    """The columns that hold numbers and nothing else, found batch by batch."""

    def __init__(self, decimal_comma: bool) -> None:
        self._arrow = require("pyarrow", "scale")
        self._compute = require("pyarrow.compute", "scale")
        self._decimal_comma = decimal_comma
        self._text: set[str] = set()
        self._commas: set[str] = set()
        self._points: set[str] = set()

    def inspect(self, batch: Any) -> None:
        names = set(batch.schema.names) - self._text
        self._text |= {name for name in names if not self._is_number(name, batch.column(name))}

    def convert(self, batch: Any) -> Any:
        """The batch with numbers as numbers."""
        columns = [
            column if name in self._text else self._numbers(column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return self._arrow.record_batch(columns, names=batch.schema.names)

    def _is_number(self, name: str, column: Any) -> bool:
        self._commas |= {name} if self._has(column, ",") else set()
        self._points |= {name} if self._has(column, r"\.") else set()
        if name in self._commas and (name in self._points or not self._decimal_comma):
            return False
        try:
            self._numbers(column)
        except self._arrow.ArrowInvalid:
            return False
        return not self._has(column, _KEEPS_ZEROS)

    def _has(self, column: Any, pattern: str) -> bool:
        found = self._compute.match_substring_regex(column, pattern)
        return bool(self._compute.any(found).as_py())

    def _numbers(self, column: Any) -> Any:
        text = self._compute.utf8_trim_whitespace(column)
        if self._decimal_comma:
            text = self._compute.replace_substring(text, ",", ".")
        return self._compute.cast(text, self._arrow.float64())


def _write(
    batches: Iterator[Any], numbers: _NumberColumns, part: Path, progress: Callable[[int], None]
) -> int:
    parquet = require("pyarrow.parquet", "scale")
    n_rows, writer = 0, None
    try:
        for batch in map(numbers.convert, batches):
            writer = writer or parquet.ParquetWriter(part, batch.schema)
            writer.write_batch(batch)
            n_rows += batch.num_rows
            progress(n_rows)
    finally:
        if writer is not None:
            writer.close()
    return n_rows
