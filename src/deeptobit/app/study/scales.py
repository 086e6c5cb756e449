"""Bounds that a column seems to have: those of a known clinical scale, or a floor or ceiling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

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
SCALES = (
    # cognition
    Scale("MMSE", "mmse|mmscore|mini_?mental", 0, 30, "Folstein 1975"),
    Scale("3MS", "3_?ms|modified_?mini_?mental", 0, 100, "Teng & Chui 1987"),
    Scale("MoCA", "moca", 0, 30, "Nasreddine 2005"),
    Scale("ADAS-Cog 11", "adas(_?cog)?_?11|total11", 0, 70, "Rosen 1984"),
    Scale("ADAS-Cog 13", "adas(_?cog)?_?13|totalmod|total13", 0, 85, "Mohs 1997"),
    Scale("ADAS-Cog delayed recall", "adas_?q4", 0, 10, "Mohs 1997"),
    Scale("CDR sum of boxes", "cdr_?(sb|sob|sum(_of_boxes)?)", 0, 18, "Hughes 1982; Morris 1993"),
    Scale("CDR global", "cdr(_?glob(al)?)?|cdglobal", 0, 3, "Hughes 1982; Morris 1993"),
    Scale("RAVLT immediate (trials 1 to 5)", "ravlt_?imm(ediate)?", 0, 75, "Rey 1964"),
    Scale("RAVLT learning (trial 5 - 1)", "ravlt_?learn(ing)?", -15, 15, "Rey 1964"),
    Scale("RAVLT forgetting (trial 5 - delayed)", "ravlt_?forget(ting)?", -15, 15, "Rey 1964"),
    Scale(
        "RAVLT, 15 words",
        "(ravlt|avtot)_?([1-7b]|del(ayed)?|rec(ognition)?)|avdel(30min|tot)",
        0,
        15,
        "Rey 1964",
    ),
    Scale("Logical Memory, one story", "limm|ldel", 0, 25, "Wechsler 1987 (WMS-R)"),
    Scale("Boston Naming, 30 items", "bnt(_?30)?|boston_?naming", 0, 30, "Mack 1992"),
    Scale("Boston Naming, 60 items", "bnt(_?60)?|boston_?naming", 0, 60, "Kaplan 1983"),
    Scale("Mattis DRS, DRS-2", "m?drs_?2|mattis(_drs)?", 0, 144, "Mattis 1976; Jurica 2001"),
    Scale("Trail Making A, seconds", "tmt_?a|trails?_?a", 0, 150, "Reitan 1958; stopped at 150 s"),
    Scale("Trail Making B, seconds", "tmt_?b|trails?_?b", 0, 300, "Reitan 1958; stopped at 300 s"),
    # function
    Scale("FAQ", "faq", 0, 30, "Pfeffer 1982"),
    Scale("Barthel index, 20 points", "barthel(_?20)?", 0, 20, "Collin 1988"),
    Scale("Barthel index", "barthel(_?100)?", 0, 100, "Mahoney & Barthel 1965"),
    Scale("FIM", "fim", 18, 126, "Keith 1987"),
    Scale("modified Rankin", "mrs|(modified_)?rankin", 0, 6, "van Swieten 1988; 6 is death"),
    Scale("ALSFRS-R", "alsfrs(_?r)?", 0, 48, "Cedarbaum 1999"),
    Scale("Berg balance", "berg|bbs", 0, 56, "Berg 1989"),
    Scale("SPPB", "sppb", 0, 12, "Guralnik 1994"),
    Scale("Fugl-Meyer, upper limb", "fma?_?ue|fugl_?meyer_?ue", 0, 66, "Fugl-Meyer 1975"),
    Scale("Fugl-Meyer, lower limb", "fma?_?le|fugl_?meyer_?le", 0, 34, "Fugl-Meyer 1975"),
    # quality of life
    Scale("EQ VAS", "eq_?(5d_?)?([35]l_?)?vas", 0, 100, "EuroQol Group 1990"),
    Scale("KOOS", "koos_(pain|symptoms?|adl|sport|sportrec|qol|ps|jr)", 0, 100, "Roos 1998"),
    Scale("HOOS", "hoos_(pain|symptoms?|adl|sport|sportrec|qol|ps|jr)", 0, 100, "Nilsdotter 2003"),
    Scale("WOMAC pain, 5 items of 0 to 4", "womac_pain", 0, 20, "Bellamy 1988"),
    Scale("WOMAC stiffness, 2 items of 0 to 4", "womac_stiff(ness)?", 0, 8, "Bellamy 1988"),
    Scale("WOMAC function, 17 items of 0 to 4", "womac_func(tion)?", 0, 68, "Bellamy 1988"),
    Scale("WOMAC, 24 items of 0 to 4", "womac", 0, 96, "Bellamy 1988"),
    Scale("Karnofsky", "karnofsky|kps", 0, 100, "Karnofsky & Burchenal 1949"),
    # mood, anxiety, behaviour
    Scale("GDS-15", "gds(_?15)?|gdtotal", 0, 15, "Sheikh & Yesavage 1986"),
    Scale("GDS-30", "gds(_?30)?", 0, 30, "Yesavage 1982"),
    Scale("NPI-Q severity", "npi_?q(_?sev(erity)?)?|npi_?score", 0, 36, "Kaufer 2000"),
    Scale("NPI-Q distress", "npi_?q_?dis(tress)?", 0, 60, "Kaufer 2000"),
    Scale("NPI, 12 domains", "npi", 0, 144, "Cummings 1994, 1997"),
    Scale("PHQ-9", "phq(_?9)?", 0, 27, "Kroenke 2001"),
    Scale("PHQ-8", "phq_?8", 0, 24, "Kroenke 2009"),
    Scale("PHQ-2", "phq_?2", 0, 6, "Kroenke 2003"),
    Scale("GAD-7", "gad(_?7)?", 0, 21, "Spitzer 2006"),
    Scale("HAM-D, 17 items", "(ham_?d|hdrs|hrsd)(_?17)?", 0, 52, "Hamilton 1960"),
    Scale("HAM-A", "ham_?a|hars", 0, 56, "Hamilton 1959"),
    Scale("MADRS", "madrs", 0, 60, "Montgomery & Åsberg 1979"),
    Scale("BDI-II", "bdi(_?(ii|2))?", 0, 63, "Beck 1996"),
    Scale("BAI", "bai", 0, 63, "Beck 1988"),
    Scale("CES-D, 20 items", "ces_?d(_?20)?", 0, 60, "Radloff 1977"),
    Scale(
        "HADS, one subscale",
        "hads_?(a(nx(iety)?)?|d(ep(ression)?)?)",
        0,
        21,
        "Zigmond & Snaith 1983",
    ),
    Scale("HADS, both subscales", "hads", 0, 42, "Zigmond & Snaith 1983"),
    Scale("EPDS", "epds", 0, 30, "Cox 1987"),
    Scale("PSS-10", "pss(_?10)?", 0, 40, "Cohen & Williamson 1988"),
    Scale("PSS-14", "pss(_?14)?", 0, 56, "Cohen 1983"),
    Scale("PCL-5", "pcl_?5", 0, 80, "Weathers 2013"),
    Scale("Y-BOCS", "y_?bocs", 0, 40, "Goodman 1989"),
    Scale("YMRS", "ymrs", 0, 60, "Young 1978"),
    Scale("PANSS positive", "panss_?p(os(itive)?)?", 7, 49, "Kay 1987"),
    Scale("PANSS negative", "panss_?n(eg(ative)?)?", 7, 49, "Kay 1987"),
    Scale("PANSS general", "panss_?g(en(eral)?)?", 16, 112, "Kay 1987"),
    Scale("PANSS", "panss", 30, 210, "Kay 1987"),
    Scale("AUDIT-C", "audit_?c", 0, 12, "Bush 1998"),
    Scale("AUDIT", "audit", 0, 40, "Saunders 1993"),
    # sleep
    Scale("ISI", "isi", 0, 28, "Morin 1993; Bastien 2001"),
    Scale("PSQI", "psqi", 0, 21, "Buysse 1989"),
    Scale("Epworth", "ess|epworth", 0, 24, "Johns 1991"),
    # movement, stroke, sclerosis
    Scale("MDS-UPDRS I", "mds_?updrs_?(part_?)?(i|1)", 0, 52, "Goetz 2008"),
    Scale("MDS-UPDRS II", "mds_?updrs_?(part_?)?(ii|2)", 0, 52, "Goetz 2008"),
    Scale("MDS-UPDRS III", "mds_?updrs_?(part_?)?(iii|3)", 0, 132, "Goetz 2008"),
    Scale("MDS-UPDRS IV", "mds_?updrs_?(part_?)?(iv|4)", 0, 24, "Goetz 2008"),
    Scale("MDS-UPDRS", "mds_?updrs", 0, 260, "Goetz 2008"),
    Scale("UPDRS I", "updrs_?(part_?)?(i|1)", 0, 16, "Fahn & Elton 1987"),
    Scale("MDS-UPDRS I", "updrs_?(part_?)?(i|1)", 0, 52, "Goetz 2008"),
    Scale("UPDRS II", "updrs_?(part_?)?(ii|2)", 0, 52, "Fahn & Elton 1987"),
    Scale("UPDRS III", "updrs_?(part_?)?(iii|3)", 0, 108, "Fahn & Elton 1987"),
    Scale("MDS-UPDRS III", "updrs_?(part_?)?(iii|3)", 0, 132, "Goetz 2008"),
    Scale("UPDRS IV", "updrs_?(part_?)?(iv|4)", 0, 23, "Fahn & Elton 1987"),
    Scale("MDS-UPDRS IV", "updrs_?(part_?)?(iv|4)", 0, 24, "Goetz 2008"),
    Scale("UPDRS", "updrs", 0, 199, "Fahn & Elton 1987"),
    Scale("MDS-UPDRS", "updrs", 0, 260, "Goetz 2008"),
    Scale("NIHSS", "nihss", 0, 42, "Brott 1989"),
    Scale("Glasgow coma", "gcs", 3, 15, "Teasdale & Jennett 1974; 15 points since 1976"),
    Scale("EDSS", "edss", 0, 10, "Kurtzke 1983"),
)
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
