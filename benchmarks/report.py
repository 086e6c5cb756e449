"""One measured number beside the one that is wanted."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Number:
    """A value, what it should be at least or at most, and what it is."""

    what: str
    value: float
    wanted: float
    side: Literal["at least", "at most"]

    @property
    def reached(self) -> bool:
        """Whether the wanted value is met."""
        return self.value >= self.wanted if self.side == "at least" else self.value <= self.wanted

    def __str__(self) -> str:
        """One line."""
        mark = "reached" if self.reached else "MISSED"
        return f"{self.what} = {self.value:.4g} (wanted {self.side} {self.wanted:g}: {mark})"
