"""Small counts, which could point to a person, are not published.

A count from 1 to 4 is hidden, and so is whatever would reveal one: the count of all other rows, a
share of few rows, a bin of a histogram. ``min_count`` is the smallest count that is shown; 1 shows
everything.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from deeptobit import inspection
from deeptobit.app.study import FEWEST, MEASURES, Finding
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets

N_BINS = 10  # of probabilities
_COARSER_BINS = (N_BINS, 5, 2, 1)  # of the histogram, each made by merging neighbours


def hidden_count(value: int, min_count: int = FEWEST) -> str:
    """What is shown in place of a count; empty if the count itself may be shown.

    Examples
    --------
    >>> hidden_count(1234), hidden_count(3), hidden_count(0), hidden_count(3, min_count=1)
    ('', 'fewer than 5', '', '')
    """
    return f"fewer than {min_count}" if 0 < value < min_count else ""


def hidden_part(value: int, whole: int, min_count: int = FEWEST) -> str:
    """The same for some of all rows, of which the others could be counted.

    Examples
    --------
    >>> hidden_part(147, 150), hidden_part(100, 150), hidden_part(2, 150), hidden_part(150, 150)
    ('over 145', '', 'fewer than 5', '')
    """
    if 0 < whole - value < min_count and value > min_count:
        return f"over {whole - min_count:,}"
    return hidden_count(value, min_count)


def hidden_share(fraction: float, whole: int, min_count: int = FEWEST) -> str:
    """The same for a share of a number of rows.

    Examples
    --------
    >>> hidden_share(0.5, 20), hidden_share(0.1, 20), hidden_share(0.9, 20)
    ('', '< 5 rows', 'all but < 5 rows')
    """
    inside = round(fraction * whole)
    if 0 < inside < min_count:
        return f"< {min_count} rows"
    return f"all but < {min_count} rows" if 0 < whole - inside < min_count else ""


def count(value: int, min_count: int = FEWEST) -> str:
    """A count of rows, unless it is small.

    Examples
    --------
    >>> count(1234), count(3), count(3, min_count=1)
    ('1,234', 'fewer than 5', '3')
    """
    return hidden_count(value, min_count) or f"{value:,}"


def published_outcomes(
    table: pd.DataFrame, n_rows: int, min_count: int = FEWEST
) -> list[dict[str, Any]]:
    """Values, shares at the bounds and measures of every outcome; what is hidden is text or None.

    Measures of few values would reveal the values. A share with more than two digits would reveal
    the number of rows.

    Examples
    --------
    >>> numbers = {"entries": [147], "at_lower": [0.5], "at_upper": [0.01], "r2": [0.4567]}
    >>> published_outcomes(pd.DataFrame(numbers, index=["MMSE"]), 150)
    [{'name': 'MMSE', 'values': 'over 145', 'at_lower': 0.5, 'at_upper': '< 5 rows', 'r2': 0.4567}]
    """
    rows = []
    for name, row in table.iterrows():
        entries = int(row["entries"])
        found: dict[str, Any] = {"name": str(name)}
        found["values"] = hidden_part(entries, n_rows, min_count) or entries
        for side in ("at_lower", "at_upper"):
            share = float(row[side])
            found[side] = hidden_share(share, entries, min_count) or round(share, 2)
        for measure, about in MEASURES.items():
            for column in (measure, f"null_{measure}"):
                if about.reported and column in row:
                    value = round(float(row[column]), 2 if about.style == "percent" else 9)
                    found[column] = value if entries >= min_count and np.isfinite(value) else None
        rows.append(found)
    return rows


# What ``check`` found.

_OF_GROUPS = re.compile(r"\b(\d+) of (\d+)(?= groups\b)")
_REWRITTEN = (
    (re.compile(r"(?:\bonly )?\b[1-4](?= (?:values|rows|groups)\b)"), f"fewer than {FEWEST}"),
    # A share near 1 of few rows reveals how many the others are.
    (re.compile(r"^\d+%(?= of the values are at its )"), "nearly all"),
    (re.compile(r"^(its largest group has) \d+%(?= of the rows)"), r"\1 most"),
    (re.compile(rf"^(categories with fewer than {FEWEST} rows): .*"), r"\1"),
)


def published(
    findings: Sequence[Finding], rare: Mapping[str, str] | None = None, min_count: int = FEWEST
) -> list[Finding]:
    """Findings without small counts and the names of rare categories, warnings first.

    Parameters
    ----------
    findings : sequence of Finding
    rare : mapping, optional
        Other names for features that are rare categories.
    min_count : int

    Examples
    --------
    >>> shown = published([Finding("note", "rows", "3 rows have no outcome and are left out"),
    ...                    Finding("warning", "MMSE", "only 12 values lie between its bounds")])
    >>> [finding.message for finding in shown]
    ['only 12 values lie between its bounds', 'fewer than 5 rows have no outcome and are left out']
    """
    ordered = sorted(findings, key=lambda finding: finding.level == "note")
    if min_count < FEWEST:
        return ordered
    names = rare or {}
    return [
        Finding(level, names.get(about, about), _without_counts(message, names), kind)
        for level, about, message, kind, *_ in ordered
    ]


def _without_counts(message: str, names: Mapping[str, str]) -> str:
    def groups(found: re.Match[str]) -> str:
        return f"{hidden_part(int(found[1]), int(found[2])) or found[1]} of {found[2]}"

    message = _OF_GROUPS.sub(groups, message)
    for pattern, instead in _REWRITTEN:
        message = pattern.sub(instead, message)
    for name, instead in names.items():
        message = message.replace(repr(name), repr(instead))
    return message


# Calibration.


def bound_errors(
    targets: CensoredTargets, predictive: Predictive, min_count: int = FEWEST
) -> dict[str, float | None]:
    """Mean distance between predicted and observed shares at each side that has bounds.

    None if too few values are at the bound, or off it: where the predicted probability is near 0,
    the distance is their share.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1), targets.lower)
    >>> bound_errors(targets, predictive), bound_errors(targets, predictive, min_count=1)
    ({'lower': None}, {'lower': 0.0})
    """
    errors: dict[str, float | None] = {}
    for side, found in inspection.bound_calibrations(targets, predictive, N_BINS).items():
        at_bound, total = round(float(found.observed @ found.count)), round(found.count.sum())
        hidden = any(hidden_count(n, min_count) for n in (at_bound, total - at_bound))
        errors[side] = None if hidden else found.expected_error
    return errors


def histogram_bins(
    targets: CensoredTargets, predictive: Predictive, min_count: int = FEWEST
) -> int:
    """The largest number of bins of the PIT histogram such that none holds a small count.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds(np.linspace(-2.0, 2.0, 12)[:, None])
    >>> predictive = Predictive(Gaussian(), np.zeros((12, 1)), np.ones(1))
    >>> histogram_bins(targets, predictive), histogram_bins(targets, predictive, min_count=1)
    (2, 10)
    """
    values = inspection.pit_values(targets, predictive)
    counts = {n_bins: np.histogram(values, n_bins, (0.0, 1.0))[0] for n_bins in _COARSER_BINS}
    small = {n_bins for n_bins, of in counts.items() if ((of > 0) & (of < min_count)).any()}
    return max(set(counts) - small, default=1)
