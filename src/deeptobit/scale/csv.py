"""Text files of cells: read in bounded memory by pyarrow, and copied to Parquet."""

import csv
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.extras import require
from deeptobit.scale.parquet import Frame

_BLOCK_BYTES = 2**24  # of text at a time; each becomes a row group
_WHOLE = 2**62  # rows: as many as are read at a time
# A number with its decimal mark; the id 007 is none.
_NUMBER = r"^\s*-?((0|[1-9]\d*)([{0}]\d*)?|[{0}]\d+)([eE][+-]?\d+)?\s*$"


class TextTable:
    r"""A CSV file as a table of text, read some rows at a time.

    pyarrow reads the cells. Where a file has quotes or lines that begin with a blank cell, Python's
    ``csv`` goes through it once before: a quote that is never closed, which would swallow rows, is
    an error, records without any cell are left out, and every row knows its line. What pyarrow
    refuses is explained in the same way.

    Parameters
    ----------
    path : str or Path
        Its first record that is not blank names the columns.
    separator : str
    blanks : collection of str
        Cells without a value, which become null.
    encoding : str
    header : int
        Line from which the file is read, and which names the columns.
    names : sequence of str, optional
        Other names for the columns, all different.

    Attributes
    ----------
    columns : list of str
        A column without a name is called ``column_3`` after its place.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("id;MMSE\n007;29\n\n012;NA\n")
    ...     table = TextTable(path, separator=";", blanks=["NA"])
    ...     (frame,) = table.frames(["MMSE", "id"], 100)
    >>> table.columns, table.n_rows, frame.lines.tolist()
    (['id', 'MMSE'], 2, [2, 4])
    >>> frame.cells.to_pylist()
    [{'MMSE': '29', 'id': '007'}, {'MMSE': None, 'id': '012'}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        separator: str = ",",
        blanks: Collection[str] = ("",),
        encoding: str = "utf-8",
        header: int = 1,
        names: Sequence[str] | None = None,
    ) -> None:
        self._path, self._separator, self._blanks = Path(path), separator, list(blanks)
        self._encoding, self._skipped = encoding, header - 1
        head = next(self._records(), None)
        if head is None:
            raise ValueError(f"{self._path.name} is empty: the first row must name the columns")
        names = [name.strip() for name in head[1]] if names is None else list(names)
        self._width, self._is_one_line = len(head[1]), head[0] == header
        self._places = {name or f"column_{at + 1}": at for at, name in enumerate(names)}
        self.columns = list(self._places)
        # A separator at the end of every line makes an empty column without a name.
        nameless = {self.columns[at] for at, name in enumerate(names) if not name}
        for frame in self.frames(sorted(nameless), _WHOLE) if nameless else ():
            nameless = {n for n in nameless if frame.cells[n].null_count == frame.cells.num_rows}
        self.columns = [name for name in self.columns if name not in nameless]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._layout[1]

    def frames(self, columns: Sequence[str] | None, batch_rows: int) -> Iterator[Frame]:
        """Some columns of all rows as text, at most ``batch_rows`` rows at a time."""
        names = self.columns if columns is None else columns
        known_lines, seen, row = self._layout[0], 0, 0
        arrow, header = require("pyarrow", "app"), 1 + self._skipped
        try:
            for batch in self._batches(names):
                read = slice(seen, seen + batch.num_rows)
                plain = np.arange(read.start, read.stop) + header
                lines = plain if known_lines is None else known_lines[read]
                kept = lines > header
                if not kept.all():
                    batch = batch.filter(arrow.array(kept))
                lines = lines[kept]
                for start in range(0, len(lines), batch_rows):
                    part = slice(start, start + batch_rows)
                    cells = batch.slice(start, batch_rows)
                    yield Frame(cells, self._path.name, lines[part], row + start)
                seen, row = read.stop, row + len(lines)
        except arrow.ArrowInvalid as error:
            for _ in self._records():  # says what is wrong, and in which line
                pass
            raise ValueError(f"{self._path.name} cannot be read as CSV: {error}") from None

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        """All records, the header and blank ones too, as text under the names of the columns."""
        reader, arrow = require("pyarrow.csv", "app"), require("pyarrow", "app")
        numbers = [str(place) for place in range(self._width)]
        batches = reader.open_csv(
            self._path,
            reader.ReadOptions(
                block_size=_BLOCK_BYTES,
                column_names=numbers,
                skip_rows=self._skipped,
                encoding="utf8" if self._encoding == "utf-8" else self._encoding,
            ),
            reader.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                invalid_row_handler=self._skip_blank,
            ),
            reader.ConvertOptions(
                column_types=dict.fromkeys(numbers, arrow.large_string()),  # as in pandas
                include_columns=[numbers[self._places[name]] for name in names],
                null_values=self._blanks,
                strings_can_be_null=True,
            ),
        )
        for batch in batches:
            yield arrow.RecordBatch.from_arrays(batch.columns, names=list(names))

    def _skip_blank(self, record: Any) -> str:
        return "error" if record.text.strip(self._separator).strip() else "skip"

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64] | None, int]:
        """The line of every record, 0 if it is the header or blank, and the number of rows.

        None stands for one record per line, the header first.
        """
        n_lines, tail, head = 0, b"\n", self._is_one_line
        plain = self._encoding != "utf-16"  # whose bytes are no characters
        blank = np.frombuffer(self._separator.encode() + b" \n\r\t", dtype=np.uint8)
        with self._path.open("rb") as file:
            while plain and (block := file.read(_BLOCK_BYTES)):
                whole = np.frombuffer(tail[-1:] + block, dtype=np.uint8)
                ends = np.flatnonzero(whole == ord("\n"))
                first = block.find(b"\n") if head else 0  # names in quotes do no harm
                plain = block.find(b'"', first) < 0
                plain &= not np.isin(whole[ends[ends < len(block)] + 1], blank).any()
                plain &= b"\r" not in block or block.count(b"\r") == block.count(b"\r\n")
                n_lines, tail, head = n_lines + block.count(b"\n"), block, False
        if plain:
            return None, n_lines + (tail[-1:] != b"\n") - 1 - self._skipped
        lines = np.array(
            [
                line if any(map(str.strip, cells)) else 0
                for line, cells in self._records(blank=True)
                if len(cells) == self._width  # others are empty, which pyarrow skips
            ],
            dtype=np.int64,
        )
        lines[np.flatnonzero(lines)[0]] = 0  # the header
        return lines, int(np.count_nonzero(lines))

    def _records(self, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of every record, or of every one that is not blank; the header first."""
        file, line, width, passed = self._path.name, 0, 0, 0
        try:
            # Strict: otherwise an open quote would swallow the rest of the file.
            encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
            with self._path.open(encoding=encoding, newline="") as text:
                reader = csv.reader(text, delimiter=self._separator, strict=True)
                while passed < self._skipped:
                    text.readline()
                    passed += 1
                for cells in reader:
                    line = passed + reader.line_num
                    some = any(cell.strip() for cell in cells)
                    width = width or (len(cells) if some else 0)
                    if some and len(cells) != width:
                        raise ValueError(
                            f"{file}, line {line}: {len(cells)} cells, but the header names "
                            f"{width} columns; put cells that hold a separator or a line break "
                            "in quotes"
                        )
                    if some or blank:
                        yield line, cells
        except csv.Error as error:
            raise ValueError(
                f"{file}, line {line + 1}: cannot be read as CSV ({error}); close every quote, "
                "and write a quote within a cell twice"
            ) from None
        except UnicodeDecodeError as error:
            # All lines before those that were being decoded have been passed.
            number = passed + reader.line_num + error.object.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"{file}, line {number}: not UTF-8 text (byte 0x{error.object[error.start]:02x}); "
                "save the file as 'CSV UTF-8'"
            ) from None


def csv_to_parquet(
    table: TextTable,
    out: str | os.PathLike[str],
    *,
    decimal_comma: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    r"""Copy a CSV file to a Parquet file in bounded memory.

    The file is read twice: once to see which columns hold numbers and nothing else, once to write
    them as numbers and the others as text. The Parquet file appears whole or not at all.

    Parameters
    ----------
    table : TextTable
    out : str or Path
    decimal_comma : bool
        Whether ``1,5`` stands for 1.5. A column that has both commas and points is not guessed at:
        it stays text.
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
    ...     table = TextTable(Path(folder, "a.csv"), separator=";", blanks=["NA"])
    ...     out = Path(folder, "a.parquet")
    ...     print(csv_to_parquet(table, out, decimal_comma=True))
    ...     pd.read_parquet(out)
    2
        id  MMSE
    0  007  29.5
    1  012   NaN
    """
    arrow, compute = require("pyarrow", "app"), require("pyarrow.compute", "app")
    marks = {name: set(",." if decimal_comma else ".") for name in table.columns}
    for frame in table.frames(None, _WHOLE):
        for name, possible in marks.items():
            for mark in possible.copy():
                fits = compute.match_substring_regex(frame.cells[name], _NUMBER.format(mark))
                if compute.all(fits).as_py() is False:
                    possible.remove(mark)
    types = {name: arrow.float64() if marks[name] else arrow.string() for name in marks}
    schema, part, n_rows = arrow.schema(types), Path(f"{os.fspath(out)}.part"), 0
    try:
        with require("pyarrow.parquet", "app").ParquetWriter(part, schema) as writer:
            for frame in table.frames(None, _WHOLE):
                columns = []
                for name, column in zip(table.columns, frame.cells.columns, strict=True):
                    for mark in marks[name]:  # both, if there are only whole numbers
                        text = compute.utf8_trim_whitespace(column)
                        column = compute.replace_substring(text, mark, ".")
                    columns.append(compute.cast(column, types[name]))
                writer.write_batch(arrow.record_batch(columns, schema=schema))
                n_rows += len(frame.lines)
                progress(n_rows)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return n_rows
