"""Settings of the online solver, and the record it keeps of a run."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Noise


@runtime_checkable
class Schedule(Protocol):
    """A step size for every update."""

    def __call__(self, i: int) -> float:
        """The step of update i, counted from 0."""
        ...


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of the online solver; the defaults need no tuning.

    The paper's own recipe (Algorithms 1 and 2) is ``step_size=0.001, averaging=False,
    fit_intercept=False, sigma=…, standardize=False, start="random"``.

    Parameters
    ----------
    rank : int
        R.
    batch_size : int
        Rows per update. From 2 on, an update is a few matrix products.
    step_size : "auto", float or Schedule
        "auto" finds its own steps; a number is a constant step for U and V as in the paper, on
        the mean gradient of a batch.
    averaging : bool
        Return a weighted average of the iterates instead of the last one.
    alpha : float
        Ridge on U and V beside the mean likelihood of a row, in standard units.
    fit_intercept : bool
    sigma : array of shape (T,), optional
        Fixed noise scales in the user's units; learned if not given.
    standardize : bool
        Scale features to unit variance first; targets always are, unless steps are given.
    start : {"data", "random"}
        From the first rows, or from random U and V.
    exact_sketch : bool
        Solve problem P:V exactly for every row (needs ``alpha > 0`` and a given step for U).
    noise : Noise
    random_state : int, optional
        Seed of a random start.
    n_threads : int
        Threads over tasks, beyond 512 of them; the result does not depend on it. Threads share
        what is decoupled by task: units, null model, validation, and with ``batch_size > 1`` the
        steps themselves. The step of a single row is not shared: V needs all tasks at every row,
        and starting threads takes as long as a row of 2000 tasks.

    Examples
    --------
    >>> OnlineSettings(rank=3).finds_steps
    True
    """

    rank: int
    batch_size: int = 1
    step_size: Literal["auto"] | float | Schedule = "auto"
    averaging: bool = True
    alpha: float = 0.0
    fit_intercept: bool = True
    sigma: FloatArray | None = None
    standardize: bool = True
    start: Literal["data", "random"] = "data"
    exact_sketch: bool = False
    noise: Noise = field(default_factory=Gaussian)
    random_state: int | None = None
    n_threads: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.batch_size < 1 or self.rank < 1 or self.n_threads < 1:
            raise ValueError("rank, batch_size and n_threads must be at least 1")
        if isinstance(self.step_size, str):
            if self.step_size != "auto":
                raise ValueError(
                    f"step_size must be 'auto', a number or a schedule; got {self.step_size!r}"
                )
        elif not callable(self.step_size) and not 0.0 < self.step_size < np.inf:
            raise ValueError(f"step_size must be positive and finite; got {self.step_size}")
        if self.start not in ("data", "random"):
            raise ValueError(f"start must be 'data' or 'random'; got {self.start!r}")
        if not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be finite and not negative; got {self.alpha}")
        if self.exact_sketch and (self.alpha == 0.0 or self.finds_steps or self.batch_size > 1):
            raise ValueError(
                "exact_sketch needs alpha > 0 (problem P:V of one row has no unique solution "
                "without), a given step_size for U, and batch_size=1"
            )

    @property
    def finds_steps(self) -> bool:
        """Whether the solver chooses its own steps."""
        return isinstance(self.step_size, str)


# A record of the run, of bounded length.

_MAX_RECORDS = 200


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
