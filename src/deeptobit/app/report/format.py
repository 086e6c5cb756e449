"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from deeptobit.app.study import MEASURES

UNKNOWN = "–"


def number(value: float, digits: int = 2) -> str:
    """A number with a fixed number of decimals and a real minus sign.

    Examples
    --------
    >>> number(-0.126), number(-0.001), number(float("nan"))
    ('−0.13', '0.00', '–')
    """
    return UNKNOWN if isnan(value) else f"{value:z,.{digits}f}".replace("-", "−")


def significant(value: float) -> str:
    """Three significant digits, for measures in units of their outcome.

    Examples
    --------
    >>> significant(0.012345), significant(1.5), significant(12345.6)
    ('0.0123', '1.50', '12,346')
    """
    magnitude = abs(value)
    if magnitude < 0.1:
        return f"{value:.3g}".replace("-", "−")
    return number(value, 0 if magnitude >= 100.0 else 1 if magnitude >= 10.0 else 2)


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(0.905, 1), percent(float("nan"))
    ('12 %', '90.5 %', '–')
    """
    return UNKNOWN if isnan(value) else f"{number(100.0 * value, digits)} %"


def measured(name: str, value: float) -> str:
    """The value of one of the measures, in the style of that measure.

    Examples
    --------
    >>> measured("r2", 0.4567), measured("crps", 0.4567), measured("coverage", 0.4567)
    ('0.46', '0.46', '46 %')
    """
    measure = MEASURES[name]
    if measure.style == "decimal":
        return number(value, measure.digits)
    return significant(value) if measure.style == "significant" else percent(value)


def bound(value: float) -> str:
    """A bound of a scale: a number, ``open``, or ``by row`` if it differs from row to row.

    Examples
    --------
    >>> bound(30.0), bound(float("inf")), bound(float("nan"))
    ('30', 'open', 'by row')
    """
    if isnan(value):
        return "by row"
    return f"{value:g}".replace("-", "−") if isfinite(value) else "open"


def listed(names: Sequence[str], shown: int = 6) -> str:
    """The first names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], shown=1), listed(["a"])
    ('a, b and c', 'a and 2 more', 'a')
    """
    parts = list(names[:shown])
    if len(names) > shown:
        parts.append(f"{len(names) - shown} more")
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def plural(value: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is one.

    Examples
    --------
    >>> plural(1, "outcome"), plural(30, "outcome")
    ('1 outcome', '30 outcomes')
    """
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"
