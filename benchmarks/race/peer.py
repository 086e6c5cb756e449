"""A method in the race."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.race.forecast import Forecast
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray


class Fitted(Protocol):
    """A method that has learned from a problem."""

    @property
    def held_out(self) -> FloatArray | None:
        """Predictions of the training rows by models that had not seen them, (N, T).

        Not clipped to the bounds, and needed only of a method without a distribution; None else.
        """

    def predict(self, X: FloatArray) -> Forecast:
        """Forecast of rows X, in the units of the problem."""


def _always() -> str | None:
    return None


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Peer:
    """A method by its name.

    Attributes
    ----------
    name : str
        As tables and pictures show it.
    fit : callable
        From a problem to a fitted method. Settings are chosen by ``problem.folds``, then all rows
        are fitted.
    needs : tuple of str
        Packages that it imports, beyond those of deeptobit.
    available : callable
        None if the method can run here, otherwise one sentence that says why not.
    prepare : callable
        What must be done once before time is taken, such as loading compiled code; called in the
        process from which all others are forked, so it must not start threads.
    """

    name: str
    fit: Callable[[Problem], Fitted]
    needs: tuple[str, ...] = ()
    available: Callable[[], str | None] = _always
    prepare: Callable[[], None] = _nothing
