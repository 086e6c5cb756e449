"""What earlier rounds tell of curvature: one secant per task and round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from deeptobit.arrays import FloatArray

_PAIRS = 2  # older ones mislead more than they tell, because curvature changes on the way
_LEAST_CURVATURE = 1e-3  # of a secant, relative to what was expected along it


@dataclass
class Secants:
    """The last rounds' changes of position and slope, each (P, T), a column per task.

    Parameters
    ----------
    position, slope : arrays of shape (P, T), optional
        Of the last round.
    pairs : list of pairs of arrays of shape (P, T)
        The oldest first.
    """

    position: FloatArray | None = None
    slope: FloatArray | None = None
    pairs: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def add(self, position: FloatArray, slope: FloatArray) -> None:
        """Remember a round."""
        if self.position is not None and self.slope is not None:
            if np.array_equal(position, self.position):
                return  # the first round after a fit was taken up again
            self.pairs.append((position - self.position, slope - self.slope))
            del self.pairs[:-_PAIRS]
        self.position, self.slope = position, slope

    def correct(self, product: Callable[[FloatArray], FloatArray]) -> Correction:
        r"""The BFGS updates of every task's Hessian, of which ``product`` is the first guess.

        .. math:: B \leftarrow B - \frac{Bss^\top B}{s^\top Bs} + \frac{yy^\top}{s^\top y}

        A task skips a pair along which its curvature is not positive.
        """
        correction = Correction([], [])
        for s, y in self.pairs:
            expected = product(s) + correction.apply(s)
            before, after = (s * expected).sum(axis=0), (s * y).sum(axis=0)
            sound = (before > 0.0) & (after > _LEAST_CURVATURE * before)
            correction.removed.append(_unit(expected, before, sound))
            correction.added.append(_unit(y, after, sound))
        return correction


@dataclass(frozen=True)
class Correction:
    """Terms Σ aaᵀ − Σ rrᵀ of every task's Hessian, vectors being (P, T)."""

    added: list[FloatArray]
    removed: list[FloatArray]

    def apply(self, direction: FloatArray) -> FloatArray:
        """The terms times a direction, (P, T)."""
        total = np.zeros_like(direction)
        for sign, vectors in ((1.0, self.added), (-1.0, self.removed)):
            for vector in vectors:
                total += sign * vector * (vector * direction).sum(axis=0)
        return total


def _unit(vectors: FloatArray, curvature: FloatArray, sound: np.ndarray) -> FloatArray:
    """Vectors over the roots of their curvatures; 0 where a task skips the pair."""
    return np.where(sound, vectors / np.sqrt(np.where(sound, curvature, 1.0)), 0.0)
