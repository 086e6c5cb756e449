"""Which columns of the table a study speaks of."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from deeptobit.app.study.config import Study
from deeptobit.app.study.errors import did_you_mean
from deeptobit.app.study.tables import Table
from deeptobit.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd


class Columns(Protocol):
    """A table, in memory or not: the names of its columns, and that of its file."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    @property
    def file(self) -> str:
        """Name of the file, for errors."""


def check_columns(study: Study, table: Columns) -> None:
    """Every column that ``[data]`` and ``[targets]`` name must be in the table."""
    named: dict[tuple[str, ...], str | None] = {
        ("data", "id"): study.data.id,
        ("data", "group"): study.data.group,
    }
    for target in study.targets:
        section = ("targets", target.name)
        named[(*section, "column")] = target.values
        named |= {(*section, key): name for key, name in target.helpers.items()}
    for where, name in named.items():
        if name is not None and name not in table.columns:
            raise study.source.error(
                where, f"there is no column {_place(name, table)}" + _unquoted(where[-1], name)
            )


def feature_columns(study: Study, table: Columns) -> list[str]:
    """Columns that are features, in the order of the table.

    A wildcard passes over the id, the group, the targets and their limits and flags; only the
    group may be named outright.
    """
    settings = study.features
    taken = _reserved(study)
    for name in settings.include:
        if name in taken and name in table.columns and name != study.data.group:
            raise study.source.error(
                ("features", "include"), f"column {name!r} is {taken[name]}; it cannot be a feature"
            )
    included = _matches(study, "include", table)
    excluded = _matches(study, "exclude", table)
    free = included - excluded - taken.keys()
    named_group = {study.data.group} & set(settings.include) - excluded
    chosen = [name for name in table.columns if name in free or name in named_group]
    if not chosen:
        raise study.source.error(
            ("features",),
            "no column of the table is left as a feature; include more, or exclude fewer",
        )
    return chosen


def categorical_columns(study: Study, table: Columns) -> set[str]:
    """Columns that the study declares categorical, whatever their cells look like."""
    return _matches(study, "categorical", table)


def _reserved(study: Study) -> dict[str, str]:
    """Columns with another part to play, and which."""
    reserved: dict[str, str] = {}
    for target in study.targets:
        reserved |= {name: f"{key} of a target" for key, name in target.helpers.items()}
        reserved[target.values] = "a target"
    if study.data.id is not None:
        reserved[study.data.id] = "the id"
    if study.data.group is not None:
        reserved[study.data.group] = "the group"
    return reserved


def _matches(study: Study, key: str, table: Columns) -> set[str]:
    known = set(table.columns)
    found: set[str] = set()
    for pattern in getattr(study.features, key):
        wild = {name for name in table.columns if fnmatchcase(name, pattern)} - {pattern}
        matched = {pattern} & known or wild
        if not matched:
            raise study.source.error(("features", key), _absent(pattern, table))
        found |= matched
    return found


def _absent(pattern: str, table: Columns) -> str:
    where = _place(pattern, table)
    wild = set("*?") & set(pattern)
    return f"no column matches {where}" if wild else f"there is no column {where}"


def _place(name: str, table: Columns) -> str:
    """Where a column is not, and which one may be meant."""
    return f"{name!r} in {table.file}{did_you_mean(name, table.columns)}"


def _unquoted(key: str, name: str) -> str:
    """A bound in quotes is the name of a column; perhaps a number was meant."""
    is_bound = key in ("lower", "upper") and re.fullmatch(r"[+-]?\d*\.?\d+", name)
    return f"; a number is written without quotes: {key} = {name}" if is_bound else ""


# What the cells of a column are: numbers, categories, dates, or nothing to learn from.

Kind = Literal["numbers", "categories", "dates", "mixed", "text", "empty"]

MOST_CATEGORIES = 20
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_EXACT = 2.0**53  # beyond it, neighbouring whole numbers are the same float


class CellCounts(NamedTuple):
    """What a kind is decided by.

    Parameters
    ----------
    known : int
        Cells that are not blank.
    words : int
        Those of them that are no numbers.
    largest : float
        The largest number, whatever its sign.
    dates : bool
        Whether all known cells are dates.
    distinct : int
        Different cells; asked for where there are words.
    """

    known: int
    words: int
    largest: float
    dates: bool
    distinct: int


def kind_of(table: Table, column: str) -> Kind:
    """What a column holds.

    ``categories`` are few words that come back; ``text`` are words that do not (names, notes,
    identifiers), or whole numbers too long to be measurements; ``mixed`` are numbers with words
    among them.
    """
    values, wrong = table.parse(column)
    words = table.text(column).dropna() if wrong.any() else None
    return kind_by(
        CellCounts(
            known=int((~np.isnan(values)).sum()) if words is None else len(words),
            words=int(wrong.sum()),
            largest=largest_of(values),
            dates=holds_dates(table, column),
            distinct=0 if words is None else words.nunique(),
        )
    )


def holds_dates(table: Table, column: str) -> bool:
    """Whether there are cells that are not blank, and all of them are dates."""
    cells = table.cells[column]
    if cells.dtype.kind != "O":
        return cells.dtype.kind in "Mm"
    if not table.parse(column)[1].any():
        return False
    return bool(cells.dropna().map(lambda cell: bool(_DATE.match(cell))).all())


def largest_of(values: FloatArray) -> float:
    """The largest of some numbers, whatever its sign; 0 if there is none."""
    return float(np.fmax.reduce(np.abs(values), initial=0.0))


def kind_by(counts: CellCounts) -> Kind:
    """What a column holds, by the counts of its cells.

    Examples
    --------
    >>> kind_by(CellCounts(known=80, words=80, largest=0.0, dates=False, distinct=2))
    'categories'
    """
    if counts.dates:
        return "dates"
    if counts.known == 0:
        return "empty"
    if counts.words == 0:
        return "text" if counts.largest > _EXACT else "numbers"
    if counts.words <= counts.known / 2:
        return "mixed"
    comes_back = counts.distinct <= max(2, counts.known // 2)
    return "categories" if counts.distinct <= MOST_CATEGORIES and comes_back else "text"


# Column names as words, and the words that may stand beside the name of a scale.

# What makes a scale nothing else: that it is a total, and when it was taken. A bare number would
# be an item (phq9_3) or another version (phq_8).
BESIDE = (
    r"(_?(total|tot|score|scor|sum|raw))?"
    r"(_(total|tot|score|scor|sum|raw|bl|baseline|sc|screening|followup|fu|post|pre"
    r"|(t|v|m|w|y|fu|month|week|year|visit|time|wave)_?\d+))*"
)


def words_of(name: str) -> str:
    """A name in lower case, with one _ between its words.

    Examples
    --------
    >>> words_of("MMSE total (12 Mo.)")
    'mmse_total_12_mo'
    """
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


# Columns that say who a row is about, not what was measured: by their name or their digits.

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
