"""How many generated problems ended in which way."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.properties.problems import Recipe

_SOURCE = "/src/deeptobit/"


@dataclass
class Tally:
    """How the problems ended.

    Parameters
    ----------
    fitted : Counter
        By model.
    refused : Counter
        By sentence, without its numbers and names.
    faults : dict
        By what went wrong: how often, and the first recipe.
    slowest : float
        Seconds of the slowest problem.
    """

    fitted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: dict[str, tuple[int, Recipe]] = field(default_factory=dict)
    slowest: float = 0.0

    @property
    def n_problems(self) -> int:
        """All of them."""
        n_faults = sum(count for count, _ in self.faults.values())
        return self.fitted.total() + self.refused.total() + n_faults

    def add_fault(self, what: str, recipe: Recipe, count: int = 1) -> None:
        """Count a fault, and keep the first recipe that shows it."""
        before, first = self.faults.get(what, (0, recipe))
        self.faults[what] = before + count, first

    def add(self, other: Tally) -> None:
        """Add what another process found."""
        self.fitted += other.fitted
        self.refused += other.refused
        for what, (count, recipe) in other.faults.items():
            self.add_fault(what, recipe, count)
        self.slowest = max(self.slowest, other.slowest)


def describe(error: Exception) -> str:
    """Type and message of an error, and where in the package it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames]
    inside = [place.partition(_SOURCE)[2] for place in places if _SOURCE in place]
    return f"{type(error).__name__}: {without_details(str(error))} {' '.join(inside[-1:])}".strip()


def without_details(sentence: str) -> str:
    """A sentence without the names and numbers of one problem."""
    bare = re.sub(r"'[^']*'", "'…'", sentence.strip().split("\n")[0])
    return re.sub(r"-?\d[\d.]*(e[+-]?\d+)?", "#", bare)[:160]


def show(tally: Tally, seconds: float) -> None:
    """Print how the problems ended."""
    print(f"{tally.n_problems:,} problems in {seconds:.0f} s, the slowest {tally.slowest:.1f} s")
    print(f"{tally.fitted.total():,} fitted: {dict(tally.fitted)}")
    print(f"{tally.refused.total():,} refused:")
    for sentence, count in tally.refused.most_common():
        print(f"  {count:6,}  {sentence}")
    hangs = sum(n for what, (n, _) in tally.faults.items() if what.startswith("HangError"))
    wrong = sum(n for what, (n, _) in tally.faults.items() if what.startswith("AssertionError"))
    crashes = tally.n_problems - tally.fitted.total() - tally.refused.total() - hangs - wrong
    print(f"{crashes} crashes or leaked warnings, {wrong} wrong or not finite, {hangs} hangs")
    for what, (count, recipe) in sorted(tally.faults.items()):
        print(f"  {count:6,}  {what}\n          {recipe}")
