"""Whether a table fits in memory."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import psutil
from joblib import effective_n_jobs

from deeptobit.app.study import tables
from deeptobit.app.study.config import Study
from deeptobit.app.study.tables import StudyError
from deeptobit.extras import require
from deeptobit.scale import ParquetTable

_PREFIXES = " kmgt"
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory(root: Path = Path("/")) -> int:
    """Available memory in bytes; less if a container, whose limits are below ``root``, has less.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     limit = Path(folder, "sys/fs/cgroup/memory.max")
    ...     limit.parent.mkdir(parents=True)
    ...     _ = limit.write_text("2048000")
    ...     print(available_memory(Path(folder)))
    2048000
    """
    limits = [_limit(root / name) for name in _LIMITS]
    available = int(psutil.virtual_memory().available)
    return min([available, *(limit for limit in limits if limit is not None)])


def read_bytes(text: str) -> int:
    """An amount of memory such as ``500MB``, ``1.5 GB`` or ``2GiB``, in bytes.

    Examples
    --------
    >>> read_bytes("1.5 GB"), read_bytes("2KiB")
    (1500000000, 2048)
    """
    amount = _AMOUNT.fullmatch(text.strip())
    if amount is None or float(amount[1]) == 0.0:
        raise StudyError(f"an amount of memory is written 500MB or 4GB; got {text!r}")
    step = 1024 if amount[3] else 1000
    return int(float(amount[1]) * step ** _PREFIXES.index(amount[2].lower() or " "))


def show_bytes(amount: float) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> show_bytes(950), show_bytes(24_600_000), show_bytes(3.2e9)
    ('1 kB', '25 MB', '3.2 GB')
    """
    if amount >= 1e9:
        return f"{amount / 1e9:,.1f} GB"
    return f"{amount / 1e6:,.0f} MB" if amount >= 1e6 else f"{amount / 1e3:,.0f} kB"


def _limit(file: Path) -> int | None:
    """The limit of a control group; the word ``max``, or no file, means none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


# The size of a table, without reading it.

_SAMPLE = 2**20  # bytes of a text file from which its rows are estimated
# Bytes per cell at the peak of reading a table and building its features, and then, in every
# process that fits, per cell and per value of a target; by `python -m benchmarks.decisions memory`.
_NUMBER, _WORD, _TEXT_CELL, _EXCEL_CELL = 100, 180, 130, 180
_CELL, _OUTCOME = 40, 300
_COMFORTABLE = 0.5  # share of the memory


class TableSize(NamedTuple):
    """Rows and columns of a table, and the bytes that reading all of it takes."""

    n_rows: int
    n_columns: int
    read_bytes: int


def size_of(path: Path) -> TableSize | None:
    r"""The size of a table, or None if the file cannot be read.

    Parquet and Excel files state their number of rows. That of a text file is estimated from the
    length of its first rows.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     size_of(path)
    TableSize(n_rows=1000, n_columns=2, read_bytes=260000)
    """
    sizes = {
        tables.PARQUET: _size_of_parquet,
        tables.TEXT: _size_of_text,
        tables.EXCEL: _size_of_excel,
    }
    kind = tables.kind_of_file(path)
    found = (size(path) for kinds, size in sizes.items() if kind in kinds and path.exists())
    return next(found, None)


def _size_of_parquet(path: Path) -> TableSize | None:
    try:
        table = ParquetTable(path)
    except ValueError:
        return None
    n_columns = len(table.columns)
    row = _NUMBER * (n_columns - table.n_words) + _WORD * table.n_words
    return TableSize(table.n_rows, n_columns, table.n_rows * row)


def _size_of_text(path: Path) -> TableSize:
    with path.open("rb") as file:
        head, sample = file.readline(), file.read(_SAMPLE)
    names, rows = (part.decode("utf-8-sig", errors="ignore") for part in (head, sample))
    n_columns = names.count(tables.sniff_separator(names + rows)) + 1
    n_bytes = path.stat().st_size - len(head)
    n_rows = round(n_bytes * max(sample.count(b"\n"), 1) / max(len(sample), 1))
    return TableSize(n_rows, n_columns, _TEXT_CELL * n_rows * n_columns)


def _size_of_excel(path: Path) -> TableSize | None:
    openpyxl = require("openpyxl", "app")
    try:
        book = openpyxl.load_workbook(path, read_only=True)
    except (ValueError, KeyError, BadZipFile, OSError):
        return None
    try:
        sheets = [(sheet.max_row or 0, sheet.max_column or 0) for sheet in book.worksheets]
    finally:
        book.close()
    n_rows, n_columns = max(sheets, key=lambda size: size[0] * size[1], default=(0, 0))
    return TableSize(n_rows, n_columns, _EXCEL_CELL * n_rows * n_columns)


@dataclass(frozen=True)
class MemoryCheck:
    """The memory that a study needs, and the memory limit.

    Attributes
    ----------
    path : Path
        The table.
    size : TableSize
    needed : int
        Bytes that reading all of it and fitting take.
    limit : int
        Bytes that may be used.
    """

    path: Path
    size: TableSize
    needed: int
    limit: int

    @property
    def enough(self) -> bool:
        """Whether the table fits comfortably: in half of the memory."""
        return self.needed <= _COMFORTABLE * self.limit

    @property
    def streamable(self) -> bool:
        """Whether the table can be read in chunks."""
        return tables.kind_of_file(self.path) in tables.PARQUET

    @property
    def shortage(self) -> str:
        """How much memory is needed and how much there is, as the beginning of a sentence."""
        return (
            f"{self.path.name} ({self.size.n_rows:,} rows × {self.size.n_columns:,} columns) would "
            f"take about {show_bytes(self.needed)}, more than half of the {show_bytes(self.limit)} "
            "of available memory"
        )

    def error(self) -> StudyError:
        """What to do with a table that neither fits in memory nor can be streamed."""
        wanted = show_bytes(1.1 * self.needed / _COMFORTABLE).replace(" ", "").replace(",", "")
        way_out = "Save it as 'CSV UTF-8', and convert that with deeptobit convert"
        if tables.kind_of_file(self.path) not in tables.EXCEL:
            parquet = shlex.quote(str(self.path.with_suffix(tables.PARQUET[0])))
            way_out = (
                f"Convert it once with: deeptobit convert {shlex.quote(str(self.path))}, then fit "
                f"with --data {parquet}"
            )
        return StudyError(
            f"{self.shortage}, and only Parquet files can be streamed. {way_out}; "
            f"--memory {wanted} reads it anyway"
        )


def check_memory(
    study: Study, path: Path, limit: int | None, n_jobs: int | None = None
) -> MemoryCheck | None:
    r"""Compare the memory that fitting a study takes with a limit; None if either is unknown.

    Reading takes 100 bytes per number of a Parquet file, 130 per cell of a text file and 180 per
    word or cell of Excel. Fitting takes, in every process, 40 bytes per cell and 300 per value of a
    target.

    Parameters
    ----------
    study : Study
    path : Path
        The table.
    limit : int or None
        Memory limit in bytes.
    n_jobs : int, optional
        Processes that fit in parallel, as joblib counts them; no more than there are folds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     study = Path(folder, "a.toml")
    ...     _ = study.write_text('data.file = "a.csv"\ntargets.MMSE.upper = 30')
    ...     check = check_memory(read_study(study), path, limit=10**6)
    >>> check.needed, check.enough
    (640000, False)
    """
    size = None if limit is None else size_of(path)
    if limit is None or size is None:
        return None
    processes = min(effective_n_jobs(n_jobs), study.model.cv)
    row = _CELL * size.n_columns + _OUTCOME * len(study.targets)
    return MemoryCheck(path, size, size.read_bytes + processes * size.n_rows * row, limit)
