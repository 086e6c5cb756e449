"""Which rows of a table beyond memory are held out: drawn by lot, the same in every pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray
from deeptobit.study._build import read_groups
from deeptobit.study._chunks import Chunk, ChunkedTable
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._folds import FEWEST_GROUPS
from deeptobit.study._lots import SmallestLots, draw_lots

MOST_HELD_OUT = 10_000  # rows that are judged: R² is then known to a hundredth
_SHARE = 0.1  # of rows or groups, at most
_STEP = 2**20  # rows whose lots are drawn at a time


@dataclass(frozen=True)
class HeldRows:
    """The rows, or whole groups of rows, that the model does not see.

    Parameters
    ----------
    study : Study
    limit : float
        The largest lot that is held out.
    """

    study: Study
    limit: float

    @classmethod
    def of(cls, study: Study, n_rows: int, groups: SmallestLots | None) -> HeldRows:
        """A tenth of the rows, or some 10,000 if that is less; a tenth of the groups."""
        if groups is None:
            return cls(study, min(_SHARE, MOST_HELD_OUT / n_rows))
        if groups.n_groups < FEWEST_GROUPS:
            raise study.source.error(
                ("data", "group"),
                f"there are {groups.n_groups} groups of {study.data.group!r}, which are never "
                f"split, and at least {FEWEST_GROUPS} are needed",
            )
        return cls(study, groups.below(_SHARE))

    def among(self, chunk: Chunk) -> BoolArray:
        """Which rows of a chunk are held out."""
        groups = read_groups(self.study, chunk.table)
        return self._drawn(chunk.rows if groups is None else groups)

    def count(self, table: ChunkedTable) -> int:
        """How many rows of a table are held out."""
        group = self.study.data.group
        drawn: Iterator[BoolArray]
        if group is None:
            starts = range(0, table.n_rows, _STEP)
            drawn = (
                self._drawn(np.arange(start, min(start + _STEP, table.n_rows))) for start in starts
            )
        else:
            drawn = map(self.among, table.chunks([group]))
        n_held_out = sum(int(held_out.sum()) for held_out in drawn)
        if not 0 < n_held_out < table.n_rows:
            raise StudyError(
                f"{table.file}: of {table.n_rows:,} rows {n_held_out:,} would be held out, which "
                "leaves nothing to learn from or to be tested on; add rows or groups"
            )
        return n_held_out

    def _drawn(self, of: NDArray[np.int64] | NDArray[np.object_]) -> BoolArray:
        return np.asarray(draw_lots(of, self.study.model.seed) <= self.limit)
