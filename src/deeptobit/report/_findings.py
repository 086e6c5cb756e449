"""What ``check`` found, without what could point to a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deeptobit.report._format import part
from deeptobit.study import FEWEST, Finding

_OF_GROUPS = re.compile(r"\b(\d+) of (\d+)(?= groups\b)")
_REWRITTEN = (
    (re.compile(r"(?:\bonly )?\b[1-4](?= (?:values|rows|groups)\b)"), f"fewer than {FEWEST}"),
    # A share near 1 of few rows tells how many the others are.
    (re.compile(r"^\d+%(?= of the values are at its )"), "nearly all"),
    (re.compile(r"^(its largest group has) \d+%(?= of the rows)"), r"\1 most"),
    (re.compile(rf"^(categories with fewer than {FEWEST} rows): .*"), r"\1"),
)


class Remark(NamedTuple):
    """A finding as it may be published."""

    level: str
    about: str
    message: str


def published(
    findings: Sequence[Finding], rare: Mapping[str, str] | None = None, fewest: int = FEWEST
) -> list[Remark]:
    """Warnings first; counts under five are left out, and categories of so few rows.

    Parameters
    ----------
    findings : sequence of Finding
    rare : mapping, optional
        Features that are to be called by other names.
    fewest : int
        With 1, everything is told.

    Examples
    --------
    >>> remarks = published([Finding("note", "rows", "3 rows have no target and teach nothing"),
    ...                      Finding("warning", "MMSE", "only 12 values lie between its bounds")])
    >>> [remark.message for remark in remarks]
    ['only 12 values lie between its bounds', 'fewer than 5 rows have no target and teach nothing']
    """
    ordered = sorted(findings, key=lambda finding: finding.level != "warning")
    if fewest < FEWEST:
        return [Remark(*finding) for finding in ordered]
    names = rare or {}
    return [
        Remark(level, names.get(about, about), _without_few(message, names))
        for level, about, message in ordered
    ]


def _without_few(message: str, names: Mapping[str, str]) -> str:
    message = _OF_GROUPS.sub(lambda n: f"{part(int(n[1]), int(n[2]))} of {n[2]}", message)
    for pattern, instead in _REWRITTEN:
        message = pattern.sub(instead, message)
    for name, instead in names.items():
        message = message.replace(repr(name), repr(instead))
    return message
