"""Columns that say who a row is about, not what was measured: by their name or their digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from deeptobit.study._names import words_of

if TYPE_CHECKING:
    import pandas as pd

_WHO = (
    "u?subj(ect)?|pat|pt|patient(en|in|innen)?|participant|person(en)?|proband(en|in|innen)?"
    "|teilnehmer(in|innen)?|individual|client|member|respondent|case|record|chart|study|studien"
)
_NUMBER = "ids?|nr|no|num|number|nummer|code|key|ident|identifier|kennung|kennziffer"
_PERSON = re.compile(
    rf"(({_WHO})_?)?({_NUMBER})|(id|ident|identifier|nr)_?({_WHO})"
    r"|fall_?(id|nr|nummer)"  # of falls, there is a number
    r"|subject|patient(in)?|participant|proband(in)?|teilnehmer(in)?|pseudonym"
    r"|[peru]id|mrn|[gu]uid|column_1|unnamed_0"
)
_PLACE = re.compile(r"(site|cent(er|re)|clinic|hospital|family|school|practice|cluster)(_?id)?")
_NUMBERED = re.compile(r"\d{3,}")  # 05 may be a count or a month

_LEAST_GROUPS = 10  # with fewer, whole groups cannot be held out by five folds


def names_person(column: str) -> bool:
    """Whether a column is called as those are that tell people apart.

    Examples
    --------
    >>> names_person("Patienten-ID"), names_person("ID_Patient"), names_person("Chart No.")
    (True, True, True)
    >>> names_person("age"), names_person("visit no"), names_person("patient age")
    (False, False, False)
    """
    return bool(_PERSON.fullmatch(words_of(column)))


def names_place(column: str) -> bool:
    """Whether a column is called as those are whose rows belong together for another reason.

    Examples
    --------
    >>> names_place("site_id"), names_place("Centre"), names_place("age")
    (True, True, False)
    """
    return bool(_PLACE.fullmatch(words_of(column)))


def is_numbered(cells: pd.Series[Any]) -> bool:
    """Whether cells are digits of one length, some of them with zeros before: 00123.

    Examples
    --------
    >>> import pandas as pd
    >>> is_numbered(pd.Series(["007", "012"])), is_numbered(pd.Series(["7", "12"]))
    (True, False)
    """
    known = cells.dropna()
    if cells.dtype.kind != "O" or known.empty or not _NUMBERED.fullmatch(known.iloc[0]):
        return False
    return (
        len({len(cell) for cell in known}) == 1
        and any(cell.startswith("0") for cell in known)
        and all(map(_NUMBERED.fullmatch, known))
    )


def repeats(cells: pd.Series[Any]) -> bool:
    """Whether rows with the same cell can be a group: none is blank, and there are enough.

    Examples
    --------
    >>> import pandas as pd
    >>> repeats(pd.Series([*range(10), 3])), repeats(pd.Series([*range(10)]))
    (True, False)
    """
    return bool(cells.notna().all() and _LEAST_GROUPS <= cells.nunique() < len(cells))
