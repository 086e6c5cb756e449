"""Whether a table has room in memory."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from joblib import effective_n_jobs

from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._memory import show_bytes
from deeptobit.study._table import EXCEL, PARQUET, kind_of_file
from deeptobit.study._table_size import TableSize, size_of

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
