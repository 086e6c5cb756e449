"""Columns of any kind in Parquet files, some rows at a time."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deeptobit.extras import require
from deeptobit.scale.parquet import (
    check_columns,
    fields_of,
    fragments_of,
    naming,
    open_dataset,
    open_file,
    partition_keys,
    partition_values,
)

if TYPE_CHECKING:
    import pandas as pd


class Frame(NamedTuple):
    """Some consecutive rows of a table.

    Parameters
    ----------
    cells : DataFrame
    where : str
        Name of the file.
    first_row : int
        Number of the first row in that file.
    row : int
        Its number in the whole table.
    """

    cells: "pd.DataFrame"
    where: str
    first_row: int
    row: int


class ParquetTable:
    """A Parquet file, a folder of them, or a partitioned data set, as a table of any columns.

    Where :class:`ParquetRows` hands out numbers, this hands out cells as they are stored: words,
    dates and all. Rows come in the order of the files' names, the same in every pass.

    Parameters
    ----------
    path : str or Path
        A file or a folder.

    Attributes
    ----------
    columns : list of str
        Those by which a data set is partitioned come last.
    n_rows : int
    n_words : int
        Columns that hold neither numbers nor dates: their cells take more memory.

    Examples
    --------
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.scale import ParquetTable
    >>> cells = pd.DataFrame({"age": [60.0, 70.0, 80.0], "sex": ["f", "m", "f"]})
    >>> with TemporaryDirectory() as folder:
    ...     cells.to_parquet(Path(folder, "cohort.parquet"))
    ...     table = ParquetTable(folder)
    ...     frames = [frame.cells["sex"].tolist() for frame in table.frames(["sex"], 2)]
    >>> table.columns, table.n_rows, table.n_words, frames
    (['age', 'sex'], 3, 1, [['f', 'm'], ['f']])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        dataset = open_dataset(path)
        self._fragments = fragments_of(dataset)
        self._keys = partition_keys(dataset)
        fields = fields_of(dataset)
        self.columns = [str(field.name) for field in fields]
        self.n_rows = sum(_count(fragment) for fragment in self._fragments)
        self.n_words = sum(_holds_words(field.type) for field in fields)

    def frames(self, columns: Sequence[str], batch_rows: int) -> Iterator[Frame]:
        """Some columns of all rows, at most ``batch_rows`` rows at a time."""
        before = 0
        for fragment in self._fragments:
            yield from self._frames(fragment, list(columns), batch_rows, before)
            before += _count(fragment)

    def _frames(
        self, fragment: Any, columns: list[str], batch_rows: int, before: int
    ) -> Iterator[Frame]:
        """Those of one file, which has ``before`` rows before it."""
        path = str(fragment.path)
        stored = [name for name in columns if name not in self._keys]
        check_columns(fragment.physical_schema, stored, path)
        constants = partition_values(fragment, [key for key in self._keys if key in columns])
        first = 0
        with naming(path), open_file(fragment) as file:
            for batch in file.iter_batches(batch_rows, columns=stored, use_threads=False):
                cells = batch.select(stored).to_pandas(ignore_metadata=True)
                for name, value in constants.items():
                    cells[name] = value
                yield Frame(cells, os.path.basename(path), first, before + first)
                first += batch.num_rows


def _count(fragment: Any) -> int:
    with naming(str(fragment.path)):
        return int(fragment.count_rows())


def _holds_words(kind: Any) -> bool:
    types = require("pyarrow.types", "scale")
    short = (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp)
    return not any(test(kind) for test in short)


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
        for name in batch.schema.names:
            if name not in self._text and not self._is_number(name, batch.column(name)):
                self._text.add(name)

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
