"""What both learners share: iterate, average, and steps that are halved if they diverge."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.online.rows import Block, Iterate
from deeptobit.online.settings import OnlineSettings

_RECOVERY = 1.02


class BlockReport(NamedTuple):
    """What a learner reports of one block, in standard units.

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


@dataclass(kw_only=True)
class Learner(ABC):
    """State of a run in standard units.

    Parameters
    ----------
    settings : OnlineSettings
    now, mean : Iterate
        The iterate and its average.
    n : float
        Weight of the rows so far.
    averaged : int
        How often the average has moved.
    pace : float
        Factor on all steps, halved when the iterate diverges.
    n_halvings : int
    """

    settings: OnlineSettings
    now: Iterate
    mean: Iterate
    n: float = 0.0
    averaged: int = 0
    pace: float = 1.0
    n_halvings: int = 0

    @abstractmethod
    def learn(self, block: Block, *, fresh: bool, in_buffer: bool) -> BlockReport:
        """Learn from a block."""

    @abstractmethod
    def result(self) -> Iterate:
        """The model so far."""

    @abstractmethod
    def _step(self, block: Block, sums: FloatArray) -> None:
        """Move the iterate; add the loss and the squared lengths of the steps of U to ``sums``."""

    @abstractmethod
    def _is_sound(self, before: Iterate) -> bool:
        """Whether the iterate has not diverged from the one before the block."""

    def _guarded_step(
        self, block: Block, moving: tuple[str, ...], most_halvings: int
    ) -> FloatArray:
        """Step; if the iterate diverges, go back and halve the step. Sums of loss and change.

        ``moving`` names the attributes that a step changes, beside iterate and average.
        """
        moving = ("now", "mean", "averaged", *moving)
        before = {name: _copied(getattr(self, name)) for name in moving}
        pace = self.pace
        for _ in range(most_halvings):
            sums = np.zeros(2)
            with np.errstate(over="ignore", invalid="ignore"):
                self._step(block, sums)
                sound = bool(np.isfinite(sums).all()) and self._is_sound(before["now"])
            if sound:
                self.pace = min(1.0, _RECOVERY * self.pace)
                return sums
            for name, value in before.items():
                setattr(self, name, _copied(value))
            self.pace *= 0.5
            self.n_halvings += 1
        self.pace = 0.5 * pace  # nothing can be learned from this block
        return np.zeros(2)

    def _report(
        self,
        block: Block,
        sums: FloatArray,
        objective: float,
        loss: float,
        known: float,
        exact: FloatArray,
    ) -> BlockReport:
        """Count the rows of a block that has been learned, and report on it."""
        self.n += float(block.weight.sum())
        updates = -(-len(block.X) // self.settings.batch_size)
        size = max(float(np.linalg.norm(self.now.Ut)), 1e-300)
        change = float(np.sqrt(sums[1] / updates)) / size
        return BlockReport(objective, change, loss, known, exact)


def _copied(value: Any) -> Any:
    """A copy of an iterate or array; a number is its own."""
    return value.copy() if isinstance(value, Iterate | np.ndarray) else value
