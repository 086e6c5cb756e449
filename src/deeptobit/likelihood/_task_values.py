"""Numbers of every task that belong together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class TaskValues:
    """Fields that are arrays of shape (T,) each; equal if all their numbers are."""

    def __post_init__(self) -> None:
        """Refuse what is no number, or not one of every task."""
        kind = type(self).__name__
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), dtype=np.float64)
            object.__setattr__(self, field.name, values)
        names = ", ".join(field.name for field in fields(self))
        if len({part.shape for part in self._parts()}) != 1 or self._parts()[0].ndim != 1:
            raise ValueError(f"{names} of a {kind} must be arrays with a number for every task")
        if not all(np.isfinite(part).all() for part in self._parts()):
            raise ValueError(f"{names} of a {kind} must be finite")

    def __len__(self) -> int:
        """Count the tasks."""
        return len(self._parts()[0])

    def of(self, places: NDArray[np.intp]) -> Self:
        """The numbers of some tasks, or of the tasks of single entries."""
        return type(self)(*(part[places] for part in self._parts()))

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same."""
        return type(other) is type(self) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        """By the numbers."""
        return hash(self._bytes())

    def _parts(self) -> tuple[FloatArray, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(part.tobytes() for part in self._parts())
