"""Text files to Parquet, which can be read a part at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from deeptobit.scale import csv_to_parquet
from deeptobit.study._cells import BLANKS
from deeptobit.study._csv import sniff_separator
from deeptobit.study._errors import StudyError
from deeptobit.study._table import TEXT, kind_of_file

_SNIFFED = 2**20  # bytes that decide on the separator


def convert_table(
    path: Path, out: Path, *, progress: Callable[[int], None] = lambda rows: None
) -> int:
    r"""Write a CSV file as a Parquet file, a part at a time; returns the number of rows.

    Cells mean what they mean in the CSV file: the id ``007`` keeps its zeros, ``<0.5`` stays as it
    is, blanks are missing, and a comma is a decimal point unless it is the separator.

    Parameters
    ----------
    path, out : Path
    progress : callable, optional
        Called with the number of rows that are written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_table
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
            f"{path.name}: only text is converted ({', '.join(TEXT)}); save it as 'CSV UTF-8'"
        )
    with path.open("rb") as file:
        # The last line of the sample may end anywhere.
        sample = file.read(_SNIFFED).decode("utf-8-sig", errors="ignore").rpartition("\n")
    separator = sniff_separator(sample[0] or sample[2])
    try:
        return csv_to_parquet(
            path,
            out,
            separator=separator,
            decimal_comma=separator != ",",
            blanks=BLANKS,
            progress=progress,
        )
    except ValueError as error:
        raise StudyError(str(error)) from None
