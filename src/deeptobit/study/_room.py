"""Whether a table has room in memory."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from deeptobit.scale import ParquetTable
from deeptobit.study._errors import StudyError
from deeptobit.study._memory import show_bytes
from deeptobit.study._table import EXCEL, PARQUET, TEXT, kind_of_file

# Peak memory of reading and fitting, over what is stored. The table, its numbers, its features,
# their standard form and the copies that folds work on: measured in docs/decisions.md.
_OVER_CELLS = 6
_OVER_FILE = {TEXT: 14, EXCEL: 60}  # of a file on disk: every cell becomes an object, then a number
_COMFORTABLE = 0.5  # share of the memory that is free


@dataclass(frozen=True)
class Room:
    """What a study takes in memory, and what there is.

    Parameters
    ----------
    path : Path
        Of the table.
    needed : int
        Bytes that reading it whole and fitting it take.
    free : int
        Bytes that may be used.
    size : str
        Of the table, in words.
    """

    path: Path
    needed: int
    free: int
    size: str

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
            f"{self.path.name} ({self.size}) would take about {show_bytes(self.needed)}, more than "
            f"half of the {show_bytes(self.free)} of memory there is"
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


def look_for_room(path: Path, free: int | None) -> Room | None:
    r"""What fitting a table takes in memory; None if that, or what is free, is not known.

    Of a Parquet table, rows and columns tell: 8 bytes a number and 64 a piece of text, times 6
    for the copies that reading and fitting make. Of other files, their size does.

    Parameters
    ----------
    path : Path
        Of a table; what is wrong with it is left to whoever reads it.
    free : int or None
        Bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     room = look_for_room(path, free=10**6)
    >>> room.needed, room.enough
    (84126, True)
    """
    if free is None or not path.exists():
        return None
    kind = kind_of_file(path)
    if kind in PARQUET:
        try:
            table = ParquetTable(path)
        except ValueError:
            return None
        size = f"{table.n_rows:,} rows × {len(table.columns):,} columns"
        return Room(path, _OVER_CELLS * table.decoded_bytes, free, size)
    for kinds, factor in _OVER_FILE.items():
        if kind in kinds:
            on_disk = path.stat().st_size
            return Room(path, factor * on_disk, free, show_bytes(on_disk))
    return None
