"""A record of the run that stays short however long the stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from deeptobit.arrays import FloatArray

_MAX_RECORDS = 200


class BlockReport(NamedTuple):
    """What a learner says of one block, in standard units.

    Parameters
    ----------
    objective : float
        Mean nll per known entry by the averaged model before the block; NaN if the model knew it.
    change : float
        Root mean square of ‖U_i − U_{i−1}‖/‖U‖ over the updates.
    loss : float
        Weighted nll of the rows, each by the iterate before it was learned.
    known : float
        Weight of the known entries.
    exact : array of shape (T,)
        Weight of the observed entries of each task.
    """

    objective: float
    change: float
    loss: float
    known: float
    exact: FloatArray


@dataclass(frozen=True)
class Record:
    """The state of the solver after some rows.

    Parameters
    ----------
    n_rows : int
        Rows seen.
    objective : float
        Mean nll per known entry of the last block, by the model as it was before that block.
    subspace_change : float
        Root mean square of ‖U_i − U_{i−1}‖/‖U‖ over the updates of the last block.
    online_loss : float
        Mean nll per row of every row so far, each by the iterate before it was learned: the C̄ of
        the paper's regret.
    """

    n_rows: int
    objective: float
    subspace_change: float
    online_loss: float


@dataclass
class History:
    """At most 200 records, evenly thinned."""

    records: list[Record] = field(default_factory=list)
    spacing: int = 1
    offered: int = 0

    def offer(self, record: Record) -> None:
        """Keep every ``spacing``-th record, and double the spacing when there are too many."""
        if self.offered % self.spacing == 0:
            self.records.append(record)
        self.offered += 1
        if len(self.records) > _MAX_RECORDS:
            self.records = self.records[::2]
            self.spacing *= 2
