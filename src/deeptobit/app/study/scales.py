"""Bounds that a column seems to have: those of a known clinical scale, or a floor or ceiling."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.study.columns import words_of
from deeptobit.arrays import FloatArray

# Words that may follow the name of a scale: that it is a total, and when it was measured. A bare
# number would be an item (phq9_3) or another version (phq_8).
_SUFFIX = (
    r"(_?(total|tot|score|scor|sum|raw))?"
    r"(_(total|tot|score|scor|sum|raw|bl|baseline|sc|screening|followup|fu|post|pre"
    r"|(t|v|m|w|y|fu|month|week|year|visit|time|wave)_?\d+))*"
)

# The eight subscales of the SF-36, whose usual names are too short to be recognised alone.

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
        if re.fullmatch(rf"{before}({pattern}){_SUFFIX}", words):
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


class Scale(NamedTuple):
    """A scale, a pattern of its column names in lower case with _ between words, its bounds."""

    name: str
    pattern: str
    lower: float
    upper: float
    source: str


# Where a name has two versions (GDS-15 and GDS-30), the first that fits the data is proposed.
_TABLE = pd.read_csv(Path(__file__).with_name("scales.csv"), usecols=list(Scale._fields))
SCALES = tuple(map(Scale._make, _TABLE.itertuples(index=False)))
SF36 = Scale("SF-36 {}", "", 0, 100, "Ware & Sherbourne 1992")

_ANY = re.compile(rf"({'|'.join(scale.pattern for scale in SCALES)}){_SUFFIX}")


def known_scale(
    column: str, low: float, high: float, *, sf36: Collection[str] = ()
) -> Scale | None:
    """The scale that a column's name and range fit, if there is one.

    A column that is not the scale itself (an item, a change, a flag) has other words or a number in
    its name and does not match. Neither does one with values outside the bounds.

    Parameters
    ----------
    column : str
    low, high : float
        The range of its values.
    sf36 : collection of str
        Columns that are subscales of the SF-36 because others of them are in the table.

    Examples
    --------
    >>> known_scale("MMSE_bl", 18, 30).upper, known_scale("GDS", 0, 22).name
    (30, 'GDS-30')
    >>> known_scale("MMSE_change", -4, 3), known_scale("MMSE", 0, 100), known_scale("PHQ9_3", 0, 3)
    (None, None, None)
    >>> known_scale("sf36_PF", 0, 100).name, known_scale("PF", 0, 100)
    ('SF-36 physical functioning', None)
    """
    words = words_of(column)
    subscale = subscale_of(words, prefixed=column not in sf36)
    norm_based = _NORM_BASED[0] <= low and high <= _NORM_BASED[1]  # which has no firm bounds
    if subscale and SF36.lower <= low and high <= SF36.upper and not norm_based:
        return SF36._replace(name=SF36.name.format(subscale))
    if not _ANY.fullmatch(words):
        return None
    for scale in SCALES:
        fits = re.fullmatch(rf"({scale.pattern}){_SUFFIX}", words)
        if fits and scale.lower <= low and high <= scale.upper:
            return scale
    return None


# Floor and ceiling effects: many equal values at an end of a column.

_LEAST_VALUES = 20
_LEAST_DISTINCT = 6  # fewer are codes, not a scale
_LEAST_SHARE = 0.03
_LEAST_TIMES = 5
_ABOVE_NEIGHBOUR = 2.0  # a smooth distribution does not double in its last step


def find_floor_and_ceiling(values: FloatArray) -> dict[str, tuple[float, float]]:
    """Ends that at least 3 % of the values have, and twice as many as the neighbouring value.

    Returns
    -------
    dict
        For "lower", "upper" or both: the smallest or largest value, and the share of rows with it.

    Examples
    --------
    >>> find_floor_and_ceiling(np.r_[np.zeros(10), np.arange(1.0, 41.0)])
    {'lower': (0.0, 0.2)}
    """
    known = values[~np.isnan(values)]
    distinct, counts = np.unique(known, return_counts=True)
    if len(known) < _LEAST_VALUES or len(distinct) < _LEAST_DISTINCT:
        return {}
    least = max(_LEAST_TIMES, _LEAST_SHARE * len(known))
    return {
        side: (float(distinct[end]), float(counts[end] / len(known)))
        for side, end, neighbour in (("lower", 0, 1), ("upper", -1, -2))
        if counts[end] >= max(least, _ABOVE_NEIGHBOUR * counts[neighbour])
    }
