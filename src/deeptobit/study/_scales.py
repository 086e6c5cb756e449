"""Known clinical scales: how their columns are called, and between which bounds they lie."""

from __future__ import annotations

import re
from typing import NamedTuple


class Scale(NamedTuple):
    """A scale, a pattern of its column names in lower case with _ between words, its bounds."""

    name: str
    pattern: str
    lower: float
    upper: float
    source: str


# Where a name has two versions (GDS-15 and GDS-30), the first that holds the data is proposed.
SCALES = (
    # cognition
    Scale("MMSE", "mmse|mini_?mental", 0, 30, "Folstein 1975"),
    Scale("3MS", "3_?ms|modified_?mini_?mental", 0, 100, "Teng & Chui 1987"),
    Scale("MoCA", "moca", 0, 30, "Nasreddine 2005"),
    Scale("ADAS-Cog 11", "adas(_?cog)?_?11|total11", 0, 70, "Rosen 1984"),
    Scale("ADAS-Cog 13", "adas(_?cog)?_?13|totalmod|total13", 0, 85, "Mohs 1997"),
    Scale("ADAS-Cog delayed recall", "adas_?q4", 0, 10, "Rosen 1984"),
    Scale("CDR sum of boxes", "cdr_?sb|cdr_?sum", 0, 18, "Morris 1993; O'Bryant 2008"),
    Scale("CDR global", "cdr(_?glob(al)?)?", 0, 3, "Morris 1993"),
    Scale("RAVLT immediate (trials 1 to 5)", "ravlt_?imm(ediate)?", 0, 75, "Rey 1964"),
    Scale("RAVLT learning (trial 5 - 1)", "ravlt_?learn(ing)?", -15, 15, "Rey 1964"),
    Scale("RAVLT forgetting (trial 5 - delayed)", "ravlt_?forget(ting)?", -15, 15, "Rey 1964"),
    Scale(
        "RAVLT, 15 words", "(ravlt|avtot)_?([1-7b]|del(ayed)?|rec(ognition)?)", 0, 15, "Rey 1964"
    ),
    Scale("Logical Memory, one story", "(limm|ldel)(_?total)?", 0, 25, "Wechsler 1987"),
    Scale("Boston Naming, 30 items", "bnt|boston_?naming", 0, 30, "Mack 1992"),
    Scale("Boston Naming, 60 items", "bnt|boston_?naming", 0, 60, "Kaplan 1983"),
    Scale("Mattis DRS", "mattis|drs_?2", 0, 144, "Mattis 1976"),
    Scale("Trail Making A, seconds", "tmt_?a|tra?il_?a", 0, 150, "Reitan 1958; stopped at 150 s"),
    Scale("Trail Making B, seconds", "tmt_?b|tra?il_?b", 0, 300, "Reitan 1958; stopped at 300 s"),
    # function
    Scale("FAQ", "faq", 0, 30, "Pfeffer 1982"),
    Scale("Barthel index", "barthel", 0, 100, "Mahoney & Barthel 1965"),
    Scale("FIM", "fim", 18, 126, "Keith 1987"),
    Scale("modified Rankin", "mrs|(modified_)?rankin", 0, 6, "van Swieten 1988"),
    Scale("ALSFRS-R", "alsfrs(_?r)?", 0, 48, "Cedarbaum 1999"),
    Scale("Berg balance", "berg|bbs", 0, 56, "Berg 1992"),
    Scale("SPPB", "sppb", 0, 12, "Guralnik 1994"),
    Scale("Fugl-Meyer, upper limb", "fma?_?ue|fugl_?meyer_?ue", 0, 66, "Fugl-Meyer 1975"),
    # quality of life; the norm-based SF-36 components (PCS, MCS) have no bounds
    Scale("SF-36", r"r?sf_?36(_(?!pcs|mcs)\w+)?", 0, 100, "Ware & Sherbourne 1992"),
    Scale("EQ VAS", "eq_?(5d_?)?vas", 0, 100, "EuroQol 1990"),
    Scale("KOOS, HOOS", r"[kh]oos(_\w+)?", 0, 100, "Roos 1998"),
    Scale("WOMAC", "womac", 0, 96, "Bellamy 1988"),
    Scale("Karnofsky", "karnofsky|kps", 0, 100, "Karnofsky 1949"),
    # mood, anxiety, behaviour
    Scale("GDS-15", "gds(_?15)?", 0, 15, "Sheikh & Yesavage 1986"),
    Scale("GDS-30", "gds(_?30)?", 0, 30, "Yesavage 1982"),
    Scale("NPI-Q severity", "npi_?q(_?sev(erity)?)?", 0, 36, "Kaufer 2000"),
    Scale("NPI", "npi", 0, 144, "Cummings 1994"),
    Scale("PHQ-9", "phq(_?9)?", 0, 27, "Kroenke 2001"),
    Scale("PHQ-8", "phq_?8", 0, 24, "Kroenke 2009"),
    Scale("PHQ-2", "phq_?2", 0, 6, "Kroenke 2003"),
    Scale("GAD-7", "gad(_?7)?", 0, 21, "Spitzer 2006"),
    Scale("HAM-D, 17 items", "ham_?d(_?17)?|hdrs(_?17)?|hrsd(_?17)?", 0, 52, "Hamilton 1960"),
    Scale("HAM-A", "ham_?a|hars", 0, 56, "Hamilton 1959"),
    Scale("MADRS", "madrs", 0, 60, "Montgomery & Åsberg 1979"),
    Scale("BDI-II", "bdi(_?(ii|2))?", 0, 63, "Beck 1996"),
    Scale("BAI", "bai", 0, 63, "Beck 1988"),
    Scale("CES-D", "ces_?d", 0, 60, "Radloff 1977"),
    Scale("HADS, one subscale", "hads_?[ad]\\w*", 0, 21, "Zigmond & Snaith 1983"),
    Scale("EPDS", "epds", 0, 30, "Cox 1987"),
    Scale("PSS-10", "pss(_?10)?", 0, 40, "Cohen 1988"),
    Scale("PCL-5", "pcl_?5", 0, 80, "Weathers 2013"),
    Scale("Y-BOCS", "y_?bocs", 0, 40, "Goodman 1989"),
    Scale("YMRS", "ymrs", 0, 60, "Young 1978"),
    Scale("PANSS positive", "panss_?p(os(itive)?)?", 7, 49, "Kay 1987"),
    Scale("PANSS negative", "panss_?n(eg(ative)?)?", 7, 49, "Kay 1987"),
    Scale("PANSS general", "panss_?g(en(eral)?)?", 16, 112, "Kay 1987"),
    Scale("PANSS", "panss", 30, 210, "Kay 1987"),
    Scale("AUDIT", "audit", 0, 40, "Saunders 1993"),
    # sleep
    Scale("ISI", "isi", 0, 28, "Bastien 2001"),
    Scale("PSQI", "psqi", 0, 21, "Buysse 1989"),
    Scale("Epworth", "ess|epworth", 0, 24, "Johns 1991"),
    # movement, stroke, sclerosis
    Scale("MDS-UPDRS I", "(mds_?)updrs_?(part_?)?(i|1)", 0, 52, "Goetz 2008"),
    Scale("MDS-UPDRS II", "(mds_?)updrs_?(part_?)?(ii|2)", 0, 52, "Goetz 2008"),
    Scale("MDS-UPDRS III", "(mds_?)updrs_?(part_?)?(iii|3)", 0, 132, "Goetz 2008"),
    Scale("MDS-UPDRS IV", "(mds_?)updrs_?(part_?)?(iv|4)", 0, 24, "Goetz 2008"),
    Scale("MDS-UPDRS", "mds_?updrs", 0, 260, "Goetz 2008"),
    Scale("UPDRS I", "updrs_?(part_?)?(i|1)", 0, 16, "Fahn & Elton 1987"),
    Scale("UPDRS II", "updrs_?(part_?)?(ii|2)", 0, 52, "Fahn & Elton 1987"),
    Scale("UPDRS III", "updrs_?(part_?)?(iii|3)", 0, 108, "Fahn & Elton 1987"),
    Scale("MDS-UPDRS III", "updrs_?(part_?)?(iii|3)", 0, 132, "Goetz 2008"),
    Scale("UPDRS IV", "updrs_?(part_?)?(iv|4)", 0, 23, "Fahn & Elton 1987"),
    Scale("UPDRS", "updrs", 0, 199, "Fahn & Elton 1987"),
    Scale("NIHSS", "nihss", 0, 42, "Brott 1989"),
    Scale("Glasgow coma", "gcs", 3, 15, "Teasdale & Jennett 1974"),
    Scale("EDSS", "edss", 0, 10, "Kurtzke 1983"),
)

# Words that may stand beside the name of a scale without making it something else.
_BESIDE = r"(_(total|tot|score|scor|sum|raw|bl|baseline|sc|screening|followup|fu|post|pre|t|v|m|w"
_BESIDE += r"|month|week|year|visit)?\d*)*"
_ANY = re.compile(rf"({'|'.join(scale.pattern for scale in SCALES)}){_BESIDE}")
_WORD_ENDS = re.compile(r"[^0-9a-z]+")


def known_scale(column: str, low: float, high: float) -> Scale | None:
    """The scale that a column's name and range fit, if there is one.

    A column that is not the scale itself (an item, a change, a flag) carries other words and does
    not match; nor does one whose values leave the bounds.

    Examples
    --------
    >>> known_scale("MMSE_bl", 18, 30).upper, known_scale("GDS", 0, 22).name
    (30, 'GDS-30')
    >>> known_scale("MMSE_change", -4, 3), known_scale("MMSE", 0, 100)
    (None, None)
    """
    words = _WORD_ENDS.sub("_", column.lower()).strip("_")
    if not _ANY.fullmatch(words):
        return None
    for scale in SCALES:
        fits = re.fullmatch(rf"({scale.pattern}){_BESIDE}", words)
        if fits and scale.lower <= low and high <= scale.upper:
            return scale
    return None
