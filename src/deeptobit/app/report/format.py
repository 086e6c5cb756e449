"""Numbers and names as people read them, and counts that could point to a person left out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from deeptobit.app.study import FEWEST

UNKNOWN = "–"


def number(value: float, digits: int = 2) -> str:
    """A number with a fixed count of decimals and a real minus sign.

    Examples
    --------
    >>> number(-0.126), number(-0.001), number(float("nan"))
    ('−0.13', '0.00', '–')
    """
    if isnan(value):
        return UNKNOWN
    text = f"{value:,.{digits}f}"
    return (text[1:] if float(text.replace(",", "")) == 0.0 and value < 0.0 else text).replace(
        "-", "−"
    )


def significant(value: float) -> str:
    """Three significant digits, for measures in units of their outcome.

    Examples
    --------
    >>> significant(0.012345), significant(1.5), significant(12345.6)
    ('0.0123', '1.50', '12,346')
    """
    if isnan(value):
        return UNKNOWN
    magnitude = abs(value)
    digits = 0 if magnitude >= 100.0 else 1 if magnitude >= 10.0 else 2
    return number(value, digits) if magnitude >= 0.1 else f"{value:.3g}".replace("-", "−")


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(0.905, 1), percent(float("nan"))
    ('12 %', '90.5 %', '–')
    """
    return UNKNOWN if isnan(value) else f"{number(100.0 * value, digits)} %"


def bound(value: float) -> str:
    """An end of a scale: a number, open, or different from row to row.

    Examples
    --------
    >>> bound(30.0), bound(float("inf")), bound(float("nan"))
    ('30', 'open', 'by row')
    """
    if isnan(value):
        return "by row"
    return f"{value:g}".replace("-", "−") if isfinite(value) else "open"


def fewest_told(small_counts: bool) -> int:
    """The smallest count that is told: five, or one where small counts are asked for.

    Examples
    --------
    >>> fewest_told(False), fewest_told(True)
    (5, 1)
    """
    return 1 if small_counts else FEWEST


def count(value: int, fewest: int = FEWEST) -> str:
    """A count of rows; small ones are not told apart.

    Examples
    --------
    >>> count(1234), count(3), count(0), count(3, fewest=1)
    ('1,234', 'fewer than 5', '0', '3')
    """
    return f"fewer than {fewest}" if 0 < value < fewest else f"{value:,}"


def part(value: int, whole: int, fewest: int = FEWEST) -> str:
    """Some of all rows; neither they nor the others can be counted where they are few.

    Examples
    --------
    >>> part(147, 150), part(100, 150), part(2, 150), part(150, 150)
    ('over 145', '100', 'fewer than 5', '150')
    """
    if 0 < whole - value < fewest and value > fewest:
        return f"over {whole - fewest:,}"
    return count(value, fewest)


def share(fraction: float, whole: int, fewest: int = FEWEST) -> str:
    """A share of so many rows, unless those or the others are few.

    Examples
    --------
    >>> share(0.5, 20), share(0.1, 20), share(0.9, 20), share(0.0, 20)
    ('50 %', '< 5 rows', 'all but < 5 rows', '0 %')
    """
    inside = round(fraction * whole)
    if 0 < inside < fewest:
        return f"< {fewest} rows"
    if 0 < whole - inside < fewest:
        return f"all but < {fewest} rows"
    return percent(fraction)


def some(names: Sequence[str], shown: int = 6) -> str:
    """The first names, and how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c"]), some(["a", "b", "c"], shown=1), some(["a"])
    ('a, b and c', 'a and 2 more', 'a')
    """
    listed = list(names[:shown])
    if len(names) > shown:
        listed.append(f"{len(names) - shown} more")
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else listed[0]


def times(value: int, noun: str) -> str:
    """A count and its noun, in the plural unless there is one.

    Examples
    --------
    >>> times(1, "outcome"), times(30, "outcome")
    ('1 outcome', '30 outcomes')
    """
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"
