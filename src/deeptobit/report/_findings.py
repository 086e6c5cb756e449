"""What ``check`` found, without what could point to a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from deeptobit.report._format import FEWEST
from deeptobit.study import Finding

_FEW = re.compile(r"(?:\bonly )?\b[1-4](?= (?:values|rows|groups|of \d+ groups)\b)")


class Remark(NamedTuple):
    """A finding as it may be published."""

    level: str
    about: str
    message: str


def published(findings: Sequence[Finding]) -> list[Remark]:
    """Warnings first; counts under five are left out.

    Examples
    --------
    >>> remarks = published([Finding("note", "rows", "3 rows have no target and teach nothing"),
    ...                      Finding("warning", "MMSE", "only 12 values lie between its bounds")])
    >>> [remark.message for remark in remarks]
    ['only 12 values lie between its bounds', 'fewer than 5 rows have no target and teach nothing']
    """
    ordered = sorted(findings, key=lambda finding: finding.level != "warning")
    few = f"fewer than {FEWEST}"
    return [Remark(level, about, _FEW.sub(few, message)) for level, about, message in ordered]
