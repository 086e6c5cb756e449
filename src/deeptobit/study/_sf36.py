"""The eight subscales of the SF-36, whose usual names are too short to be trusted alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deeptobit.study._names import BESIDE, words_of

# PCS and MCS are norm scores (mean 50, sd 10) without firm bounds, and not among them.
_SUBSCALES = {
    "physical functioning": "pf|physical_func(tion(ing)?)?",
    "role physical": "rp|role_?(limitations?_)?physical(_health)?",
    "bodily pain": "bp|bodily_?pain|pain",
    "general health": "gh|general_?health",
    "vitality": "vt|vitality|energy(_fatigue)?",
    "social functioning": "sf|social_func(tion(ing)?)?",
    "role emotional": "re|role_?(limitations?_)?emotional(_problems?)?",
    "mental health": "mh|mental_?health|emotional_well_?being",
}
_PREFIX = r"(r?sf_?36(_?v2)?|rand_?36)_?"
_LEAST_TOGETHER = 4  # of the eight; fewer may be blood pressure, a site, a reaction
_NORM_BASED = (10.0, 75.0)


def subscale_of(words: str, *, prefixed: bool) -> str | None:
    """The subscale that a name in words stands for, behind ``sf36_`` or by itself.

    Examples
    --------
    >>> subscale_of("sf36_vt_bl", prefixed=True), subscale_of("vt", prefixed=True)
    ('vitality', None)
    """
    before = _PREFIX if prefixed else f"({_PREFIX})?"
    for subscale, pattern in _SUBSCALES.items():
        if re.fullmatch(rf"{before}({pattern}){BESIDE}", words):
            return subscale
    return None


def sf36_together(columns: Iterable[str]) -> frozenset[str]:
    """Columns with the bare names of SF-36 subscales, if enough of the eight are there.

    Examples
    --------
    >>> sorted(sf36_together(["age", "PF", "RP", "BP", "GH"])), sf36_together(["BP", "GH"])
    (['BP', 'GH', 'PF', 'RP'], frozenset())
    """
    found = {
        column: subscale
        for column in columns
        if (subscale := subscale_of(words_of(column), prefixed=False))
    }
    return frozenset(found if len(set(found.values())) >= _LEAST_TOGETHER else ())


def is_norm_based(low: float, high: float) -> bool:
    """Whether a range looks like T-scores, which have no firm bounds, and not like 0 to 100."""
    return low >= _NORM_BASED[0] and high <= _NORM_BASED[1]
