"""Errors of a study or its table, in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class StudyError(ValueError):
    """A study file or table cannot be used; the message says where, and what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to a mistyped one; empty if none is close.

    Examples
    --------
    >>> did_you_mean("featurs", ["data", "features", "targets"])
    "; did you mean 'features'?"
    >>> did_you_mean("mmse", ["MMSE", "ADAS13"])
    "; did you mean 'MMSE'?"
    >>> did_you_mean("age", ["MMSE"])
    ''
    """
    meant = closest(word, known)
    return "" if meant is None else f"; did you mean {meant!r}?"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to another, ignoring case; None if none is close."""
    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def listed(names: Iterable[object], shown: int = 5) -> str:
    """Name the first few, and count the rest.

    Examples
    --------
    >>> listed(["a", "b", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    quoted = [repr(name) for name in names]
    rest = len(quoted) - shown
    return ", ".join(quoted[:shown]) + (f" and {rest} more" if rest > 0 else "")


def shown(value: object, width: int = 200) -> str:
    """A wrong value as text of bounded length.

    Examples
    --------
    >>> shown("imput"), shown([0.5] * 100, width=12)
    ("'imput'", '[0.5, 0.5, 0…')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print whole numbers of over 4300 digits
        return "a number that is too long to show"
    return text if len(text) <= width else f"{text[:width]}…"
