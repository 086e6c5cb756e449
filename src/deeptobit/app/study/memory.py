"""Whether a table fits in memory."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from joblib import effective_n_jobs

from deeptobit.app.study import formats
from deeptobit.app.study.config import Study
from deeptobit.app.study.data import open_data
from deeptobit.app.study.tables import StudyError
from deeptobit.scale import ParquetTable, TextTable

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
    limits = [int(psutil.virtual_memory().available)]
    for name in _LIMITS:
        with suppress(OSError, ValueError):  # the word max, or no file, means no limit
            limits.append(int((root / name).read_text()))
    return min(limits)


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


# The size of a table, without keeping its rows.

# Bytes per cell at the peak of reading a table and building its features, and then, in every
# process that fits, per cell and per value of a target; by `python -m benchmarks.decisions memory`.
_NUMBER, _WORD, _TEXT_CELL, _OTHER_CELL = 100, 180, 130, 180
_CELL, _OUTCOME = 40, 300
_COMFORTABLE = 0.5  # share of the memory


@dataclass(frozen=True)
class MemoryCheck:
    """The memory that a study needs, and the memory limit.

    Attributes
    ----------
    file : str
        Name of the table.
    n_rows, n_columns : int
        Its size.
    reading, needed : int
        Bytes that reading all of it takes, and that reading and fitting take.
    limit : int
        Bytes that may be used.
    """

    file: str
    n_rows: int
    n_columns: int
    reading: int
    needed: int
    limit: int

    @property
    def enough(self) -> bool:
        """Whether the table fits comfortably: in half of the memory."""
        return self.needed <= _COMFORTABLE * self.limit

    @property
    def shortage(self) -> str:
        """How much memory is needed and how much there is, as the beginning of a sentence."""
        table = f"{self.file} ({self.n_rows:,} rows × {self.n_columns:,} columns)"
        share = f"more than half of the {show_bytes(self.limit)} of available memory"
        return f"{table} would take about {show_bytes(self.needed)}, {share}"


def check_memory(
    study: Study, path: Path | formats.TableFile, limit: int, n_jobs: int | None = None
) -> MemoryCheck:
    r"""Compare the memory that fitting a study takes with a limit.

    Reading takes 100 bytes per number of a Parquet file, 130 per cell of a text file and 180 per
    word or cell of any other. Fitting takes, in every process, 40 bytes per cell and 300 per value
    of a target.

    Parameters
    ----------
    study : Study
    path : Path or TableFile
    limit : int
        Memory limit in bytes.
    n_jobs : int, optional
        Processes that fit in parallel, as joblib counts them; no more than there are folds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     path = Path(folder, "a.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.MMSE.upper = 30')
    ...     study = read_study(path)
    ...     check = check_memory(study, study.data_path, limit=10**6)
    >>> check.needed, check.enough
    (640000, False)
    """
    table = open_data(study, path)
    source, n_columns = table.source, len(table.source.columns)
    reading = (_TEXT_CELL if isinstance(source, TextTable) else _OTHER_CELL) * n_columns
    if isinstance(source, ParquetTable):
        reading = _NUMBER * (n_columns - source.n_words) + _WORD * source.n_words
    processes = min(effective_n_jobs(n_jobs), study.model.cv)
    fitting = processes * (_CELL * n_columns + _OUTCOME * len(study.targets))
    read, needed = source.n_rows * reading, source.n_rows * (reading + fitting)
    return MemoryCheck(table.file, source.n_rows, n_columns, read, needed, limit)
