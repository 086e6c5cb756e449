"""Results of the race in a folder: one file for every fit, so that a race can be continued."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.race.fit import Points
from deeptobit.app.study import write_whole

if TYPE_CHECKING:
    import pandas as pd

DONE, FAILED, OVER = "done", "failed", "over the limit"


class Key(NamedTuple):
    """Which fit it is; the data are named with a digest of all their numbers."""

    data: str
    method: str
    split: int


@dataclass(frozen=True)
class Store:
    """A folder ``fits`` with a table for every data set, method and split.

    Examples
    --------
    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     key = Key("help-1a2b", "ridge", 0)
    ...     store.write(key, pd.DataFrame({"status": [OVER], "limit": 60.0}))
    ...     [store.has(key, limit) for limit in (30.0, 60.0, 90.0)]
    [True, True, False]
    """

    folder: Path

    def path(self, key: Key) -> Path:
        """Where the table of a fit is."""
        return self._method_folder(key.data, key.method) / f"{key.split:03d}.parquet"

    def write(self, key: Key, rows: pd.DataFrame) -> None:
        """Keep the table of a fit."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = BytesIO()
        rows.to_parquet(buffer, index=False)
        write_whole(path, buffer.getvalue())

    def write_points(self, key: Key, points: Points) -> None:
        """Keep the predictions that the table of a fit was made of."""
        path = self.path(key).with_suffix(".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = BytesIO()
        np.savez(buffer, **points._asdict())
        write_whole(path, buffer.getvalue())

    def read_points(self, key: Key) -> Points | None:
        """These predictions; None of a method that has a distribution of its own."""
        path = self.path(key).with_suffix(".npz")
        if not path.exists():
            return None
        with np.load(path) as arrays:
            return Points(*(arrays[name] for name in Points._fields))

    def has(self, key: Key, limit: float) -> bool:
        """Whether there is no need to fit again: it is done, or was given as much time."""
        return self._status(key, limit) in (DONE, OVER)

    def was_over(self, key: Key, limit: float) -> bool:
        """Whether it was given as much time, and took more."""
        return self._status(key, limit) == OVER

    def _status(self, key: Key, limit: float) -> str | None:
        """How a fit ended; None if it has not, or had less time than it may have now."""
        if not self.path(key).exists():
            return None
        first = self.read([key]).iloc[0]
        short = first["status"] == OVER and first["limit"] < limit
        return None if short else str(first["status"])

    def read(self, keys: Iterable[Key]) -> pd.DataFrame:
        """Tables of all these fits that are there, as one."""
        import pandas as pd

        frames = [
            pd.read_parquet(path).assign(method=key.method)
            for key in keys
            if (path := self.path(key)).exists()
        ]
        if not frames:
            raise ValueError(f"{self.folder} holds no results of these data and methods")
        return pd.concat(frames, ignore_index=True)

    def forget(self, data: Iterable[str], method: str) -> None:
        """Remove what is known of a method."""
        for name in data:
            rmtree(self._method_folder(name, method), ignore_errors=True)

    def _method_folder(self, data: str, method: str) -> Path:
        return self.folder / "fits" / _folder_name(data) / _folder_name(method)


def _folder_name(name: str) -> str:
    """A name of a folder on any system."""
    return re.sub(r"[^\w.-]+", "-", name)
