"""How an experiment is run, which is no part of what it measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Progress = Callable[[int, int, str], None]


def _silent(done: int, total: int, label: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Context:
    """Where and how to run.

    Parameters
    ----------
    n_jobs : int
        Fits side by side; results do not depend on it.
    seed : int
        Of everything random.
    protocol : {"honest", "paper"}
        Settings of methods are chosen on training rows, or as in the paper by the best test value.
    path : Path, optional
        Folder of ADNI downloads; without it HELP or a simulated cohort takes its place.
    store : Path, optional
        Folder that keeps what is finished, so that a stopped run continues.
    progress : callable
        Called with how much is done, how much there is, and a word on what was done last.
    """

    n_jobs: int = 1
    seed: int = 0
    protocol: Literal["honest", "paper"] = "honest"
    path: Path | None = None
    store: Path | None = None
    progress: Progress = _silent

    def seeds(self, repeats: int) -> list[int]:
        """One seed for every repeat, different for every ``seed``.

        Examples
        --------
        >>> Context(seed=2).seeds(3)
        [2000, 2001, 2002]
        """
        return [1000 * self.seed + repeat for repeat in range(repeats)]

    def folder(self, name: str) -> Path | None:
        """Where an unfinished section keeps its parts; ``None`` if nothing is kept."""
        return None if self.store is None else self.store / "parts" / name
