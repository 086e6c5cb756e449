"""Whether a table has room in memory."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from joblib import effective_n_jobs

from deeptobit.app.study.config import Study
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.tables import EXCEL, PARQUET, TableSize, kind_of_file, size_of

# How much memory there is, and amounts of it as people write them.

_PREFIXES = " kmgt"
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process can take without pushing others out; None where nobody tells.

    What Linux calls available, or else all there is; less if a container is allowed less.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` lie.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     (root / "proc").mkdir()
    ...     _ = (root / "proc" / "meminfo").write_text("MemAvailable:   2000 kB")
    ...     print(available_memory(root))
    2048000
    """
    found = [_free(root), *(_limit(root / name) for name in _LIMITS)]
    return min((amount for amount in found if amount is not None), default=None)


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


def _free(root: Path) -> int | None:
    try:
        stated = (root / "proc" / "meminfo").read_text()
    except OSError:
        return _installed()
    available = re.search(r"^MemAvailable:\s*([0-9]+) kB", stated, re.MULTILINE)
    return None if available is None else int(available[1]) * 1024


def _installed() -> int | None:
    """All memory of a machine that has no ``/proc``."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _limit(file: Path) -> int | None:
    """The limit of a control group; the word ``max``, or no file, is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


# What a process that fits takes at its peak, in bytes: measured, as those of reading are.
_CELL, _OUTCOME = 40, 300
_COMFORTABLE = 0.5  # share of the memory


@dataclass(frozen=True)
class Room:
    """What a study takes in memory, and what there is.

    Parameters
    ----------
    path : Path
        Of the table.
    size : TableSize
    needed : int
        Bytes that reading it whole and fitting it take.
    free : int
        Bytes that may be used.
    """

    path: Path
    size: TableSize
    needed: int
    free: int

    @property
    def enough(self) -> bool:
        """Whether the table fits comfortably: into half of the memory."""
        return self.needed <= _COMFORTABLE * self.free

    @property
    def streamable(self) -> bool:
        """Whether the table can be read a part at a time."""
        return kind_of_file(self.path) in PARQUET

    @property
    def shortage(self) -> str:
        """How much is needed and how much there is, as the beginning of a sentence."""
        return (
            f"{self.path.name} ({self.size.n_rows:,} rows × {self.size.n_columns:,} columns) would "
            f"take about {show_bytes(self.needed)}, more than half of the {show_bytes(self.free)} "
            "of memory there is"
        )

    def error(self) -> StudyError:
        """What to do with a table that neither fits nor can be read a part at a time."""
        return StudyError(f"{self.shortage}, and only Parquet is streamed. {self._way_out()}")

    def _way_out(self) -> str:
        wanted = show_bytes(1.1 * self.needed / _COMFORTABLE).replace(" ", "").replace(",", "")
        anyway = f"--memory {wanted} reads it anyway"
        if kind_of_file(self.path) in EXCEL:
            return f"Save it as 'CSV UTF-8', and convert that with deeptobit convert; {anyway}"
        parquet = shlex.quote(str(self.path.with_suffix(PARQUET[0])))
        return (
            f"Convert it once with: deeptobit convert {shlex.quote(str(self.path))}, then fit with "
            f"--data {parquet}; {anyway}"
        )


def look_for_room(
    study: Study, path: Path, free: int | None, n_jobs: int | None = None
) -> Room | None:
    r"""What fitting a study to a table takes in memory; None if that, or what is free, is unknown.

    Reading takes 100 bytes a number of a Parquet file, 130 a cell of a text file and 180 a word or
    a cell of Excel. Fitting takes, in every process, 40 bytes a cell and 300 a value of a target.

    Parameters
    ----------
    study : Study
    path : Path
        Of the table.
    free : int or None
        Bytes.
    n_jobs : int, optional
        Processes that fit side by side, as joblib counts them; no more than there are folds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     study = Path(folder, "a.toml")
    ...     _ = study.write_text('data.file = "a.csv"\ntargets.MMSE.upper = 30')
    ...     room = look_for_room(read_study(study), path, free=10**6)
    >>> room.needed, room.enough
    (640000, False)
    """
    size = None if free is None else size_of(path)
    if free is None or size is None:
        return None
    processes = min(effective_n_jobs(n_jobs), study.model.cv)
    row = _CELL * size.n_columns + _OUTCOME * len(study.targets)
    return Room(path, size, size.read_bytes + processes * size.n_rows * row, free)
