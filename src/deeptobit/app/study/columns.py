"""The columns of a table: their part in a study, what their cells hold, what their names say."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from deeptobit.app.study.config import Study
from deeptobit.app.study.formats import TableFile
from deeptobit.app.study.tables import Table, did_you_mean
from deeptobit.arrays import FloatArray

_PARTS = {"id": "the id", "group": "the group", "column": "a target"}


Columns = Table | TableFile


def named_columns(study: Study) -> dict[tuple[str, ...], str]:
    """Columns that ``[data]`` and ``[targets]`` name, by the place of the key in the study file."""
    named: dict[tuple[str, ...], str | None] = {("data", "id"): study.data.id}
    named["data", "group"] = study.data.group
    for target in study.targets:
        columns = {"column": target.values} | target.helpers
        named |= {("targets", target.name, key): name for key, name in columns.items()}
    return {where: name for where, name in named.items() if name is not None}


def check_columns(study: Study, table: Columns) -> None:
    """Check that the table has every column that ``[data]`` and ``[targets]`` name."""
    read = {("columns", column.name): column.name for column in study.columns}
    for where, name in (read | named_columns(study)).items():
        if name in table.columns:
            continue
        hint = did_you_mean(name, table.columns)
        if where[-1] in ("lower", "upper") and re.fullmatch(r"[+-]?\d*\.?\d+", name):
            hint += f"; a number is written without quotes: {where[-1]} = {name}"
        raise study.source.error(where, f"there is no column {name!r} in {table.file}{hint}")


def feature_columns(study: Study, table: Columns) -> list[str]:
    """Columns that are features, in the order of the table.

    A wildcard never selects the id, the group, or the targets with their limits and flags. Only
    the group may be named as a feature.
    """
    named, parts = study.features.include, reversed(named_columns(study).items())
    taken = {name: _PARTS.get(where[-1], f"{where[-1]} of a target") for where, name in parts}
    for name in named:
        if name in taken and name in table.columns and name != study.data.group:
            message = f"column {name!r} is {taken[name]}; it cannot be a feature"
            raise study.source.error(("features", "include"), message)
    include, exclude = (matching_columns(study, key, table) for key in ("include", "exclude"))
    chosen = include - exclude - (taken.keys() - ({study.data.group} & set(named)))
    if not chosen:
        message = "no column of the table is left as a feature; include more, or exclude fewer"
        raise study.source.error(("features",), message)
    return [name for name in table.columns if name in chosen]


def matching_columns(study: Study, key: str, table: Columns) -> set[str]:
    """Columns that the patterns of a key in ``[features]`` match."""
    found: set[str] = set()
    for pattern in getattr(study.features, key):
        matched = {pattern} & {*table.columns}  # a name may contain * or ?
        matched = matched or {name for name in table.columns if fnmatchcase(name, pattern)}
        if not matched:
            what = "no column matches" if set("*?") & set(pattern) else "there is no column"
            hint = did_you_mean(pattern, table.columns)
            raise study.source.error(("features", key), f"{what} {pattern!r} in {table.file}{hint}")
        found |= matched
    return found


# What a column holds, counted in one go or some rows at a time.

T = TypeVar("T")
Kind = Literal["numbers", "written", "categories", "dates", "mixed", "text", "empty"]

MOST_CATEGORIES = 20
MOST_DECLARED = 1000  # categories of a column that the study calls categorical, in a stream
FEWEST = 5  # smaller counts of rows are not published
_SOME = 1000  # rows that show whether there are more
_MOST_CODES = 10  # with more different values, a mean reveals no count
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_WRITTEN = re.compile(  # 41 %, 1,250.5, 1,5 and 1.250,5
    r"[+-]?(\d*[.,]?\d+\s*%|[1-9]\d{0,2}(,\d{3})+(\.\d+)?|\d*[.,]\d+|\d{1,3}(\.\d{3})+,\d+)"
)
_EXACT = 2.0**53  # above it, neighbouring whole numbers are the same float


@dataclass
class ColumnSummary:
    """Counts of the cells of a column; its memory does not grow with the rows.

    Attributes
    ----------
    name : str
    declared : bool
        Whether the study declares the column categorical, whatever its cells look like.
    n_rows, n_known, n_words : int
        All cells, those that are not blank, and those of them that are not numbers.
    total, largest : float
        Sum of the numbers, and the largest absolute value.
    dates : bool
        Whether all known cells so far are dates.
    written : bool
        Whether all that are not numbers are written as people write numbers: 41 %, 1,250.
    levels : Counter or None
        How often each cell occurs, as text; None once there are too many different ones.
    values : Counter or None
        How often each number occurs; None once there are more than ten.
    example : str
        The first cell that is not a number, and where it is.
    """

    name: str
    declared: bool = False
    n_rows: int = 0
    n_known: int = 0
    n_words: int = 0
    total: float = 0.0
    largest: float = 0.0
    dates: bool = True
    written: bool = True
    levels: Counter[str] | None = field(default_factory=Counter)
    values: Counter[float] | None = field(default_factory=Counter)
    example: str = ""

    def add(self, table: Table, *, is_whole: bool = False) -> None:
        """Count the cells of some more rows, or of the whole table at once."""
        cells = table.cells[self.name]
        self.declared |= self.name in table.labels
        values, wrong = table.parse(self.name)
        numbers, n_words = values[~np.isnan(values)], int(wrong.sum())
        self.n_rows += len(values)
        self.n_known += len(numbers) + n_words
        self.n_words += n_words
        self.total += float(numbers.sum())
        self.largest = max(self.largest, float(np.abs(numbers).max(initial=0.0)))
        if n_words and cells.dtype.kind == "O":
            self.dates &= all(map(_DATE.match, table.text(self.name).dropna()))
        elif len(numbers) or n_words:
            self.dates &= cells.dtype.kind in "Mm"
        if n_words:
            self.written &= all(map(_WRITTEN.fullmatch, table.text(self.name)[wrong].unique()))
        if n_words and not self.example:
            self.example = f" ({table.text(self.name)[wrong].iloc[0]!r}: {table.at(wrong)})"
        few = len(np.unique(numbers[:_SOME])) <= _MOST_CODES
        self.values = _added(self.values, pd.Series(numbers), _MOST_CODES) if few else None
        # Numbers may turn out to be categories if words come in later rows.
        words = cells.dtype.kind == "O" and (n_words or not is_whole)
        if self.levels is not None and (self.declared or words):
            most = len(values) if is_whole else MOST_DECLARED
            most = most if self.declared else MOST_CATEGORIES
            self.levels = _added(self.levels, table.text(self.name), most)

    @property
    def kind(self) -> Kind:
        """What the column holds.

        ``categories`` are a few words that repeat. ``text`` are words that do not (names, notes,
        identifiers), or whole numbers too long to be measurements. ``mixed`` are numbers with
        words among them, ``written`` are numbers in a form that is not read, such as 41 %.
        """
        if self.declared:
            return "categories"
        if self.n_known == 0:
            return "empty"
        if self.dates:
            return "dates"
        if self.n_words == 0:
            return "text" if self.largest > _EXACT else "numbers"
        is_mixed = self.n_words <= self.n_known / 2
        repeats = self.levels is not None and len(self.levels) <= max(2, self.n_known // 2)
        if repeats and not is_mixed:
            return "categories"
        return "written" if self.written else "mixed" if is_mixed else "text"


def summarise_column(table: Table, column: str, *, declared: bool = False) -> ColumnSummary:
    """The summary of a column of a table in memory."""
    summary = ColumnSummary(column, declared)
    summary.add(table, is_whole=True)
    return summary


def reveals_small_count(values: FloatArray) -> bool:
    """Whether the mean of a column would reveal a count of fewer than five rows.

    The mean and standard deviation of a column with at most ten different values (a flag, a code,
    a category as 0 and 1) are counts in disguise.

    Parameters
    ----------
    values : array of shape (N,)
        NaN where unknown.
    """
    return is_small(np.unique(values[~np.isnan(values)], return_counts=True)[1].tolist())


def is_small(counts: Collection[int]) -> bool:
    """Whether one of a few counts is small: the number of rows with each different value."""
    return 1 < len(counts) <= _MOST_CODES and min(counts) < FEWEST


def _added(counter: Counter[T] | None, cells: "pd.Series[Any]", most: int) -> Counter[T] | None:
    """A counter with more cells; None if there are too many different ones."""
    if counter is not None:
        more: dict[Any, int] = cells.value_counts().to_dict()
        counter.update(more)
    return None if counter is None or len(counter) > most else counter


# Numbers as people write them, and what reads them.

# All known cells of such a column, one of them, and the keys of [columns.NAME] that read them.
_REPAIRS: list[tuple[str, str, dict[str, Any]]] = [
    (r"[+-]?(0|[1-9]\d{0,2}(,\d{3})*)(\.\d+)?", ",", {"remove": (",",)}),
    (r"[+-]?\d{1,3}(\.\d{3})*(,\d+)?", r"\.\d{3}[.,]", {"remove": (".",)}),
    (r"[+-]?\d*[.,]?\d+", ",", {"decimal_comma": True}),
]
_UNIT = re.compile(r"[<>]?\s*[+-]?\d*[.,]?\d+\s*([^\d\s.,+-]\S*)?")
_DATED = re.compile(r"\d{1,2}[. -]+[A-Z][^\W\d]{2,}|[A-Z][a-z]{2}[ -]\d{1,2}|\d{4}-\d\d-\d\d")


def number_repair(table: Table, column: str) -> dict[str, Any]:
    """What ``[columns.NAME]`` must say to read such cells as numbers; empty if nothing helps.

    Dates among numbers, into which a spreadsheet turns 5.5, are missing.
    """
    wrong = sorted({*table.text(column)[table.parse(column)[1]]})
    cells = table.text(column).dropna().unique().tolist() if wrong else []
    if not cells:
        return {}
    for form, mark, repair in _REPAIRS:
        if all(re.fullmatch(form, cell) for cell in cells) and re.search(mark, " ".join(cells)):
            return repair
    units = {match[1] if (match := _UNIT.fullmatch(cell)) else "" for cell in cells} - {None}
    if len(units) == 1 and "" not in units:
        return {"remove": tuple(units)}
    dated = len(wrong) < len(cells) / 2 and all(map(_DATED.match, wrong))
    return {"missing": tuple(wrong)} if dated else {}


# Names of columns.


def plain_name(name: str) -> str:
    """A name in lower case, with one _ between its words.

    Examples
    --------
    >>> plain_name("MMSE total (12 Mo.)")
    'mmse_total_12_mo'
    """
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


# Columns that identify a person or a place, by their name or their digits.

_WHO = (
    "u?subj(ect)?|pat|pt|patient(en|in|innen)?|participant|person(en)?|proband(en|in|innen)?"
    "|teilnehmer(in|innen)?|individual|client|member|respondent|case|record|chart|study|studien"
)
_NUMBER = "ids?|nr|no|num|number|nummer|code|key|ident|identifier|kennung|kennziffer"
_PERSON = re.compile(
    rf"(({_WHO})_?)?({_NUMBER})|(id|ident|identifier|nr)_?({_WHO})"
    r"|fall_?(id|nr|nummer)"  # "fall number" may count falls
    r"|subject|patient(in)?|participant|proband(in)?|teilnehmer(in)?|pseudonym"
    r"|[peru]id|mrn|[gu]uid|column_1|unnamed_0"
)
_PLACE = re.compile(r"(site|cent(er|re)|clinic|hospital|family|school|practice|cluster)(_?id)?")
_TIME = re.compile(
    r"(visit|visite|time|zeit|wave|welle|month|monat|week|woche|year|jahr|day|tag|viscode|session)"
    r"s?(_?(no|nr|num|number|nummer|since|point|after|code|id|from|in_study|baseline|bl).*)?"
    r"|visit_(time|month|year|week|day)s?|follow_?up|fup"
)
_NUMBERED = re.compile(r"\d{3,}")  # 05 may be a count or a month

_LEAST_GROUPS = 10  # fewer are too few for five folds


def names_person(column: str) -> bool:
    """Whether the name of a column is that of an identifier of people.

    Examples
    --------
    >>> names_person("Patienten-ID"), names_person("ID_Patient"), names_person("Chart No.")
    (True, True, True)
    >>> names_person("age"), names_person("visit no"), names_person("patient age")
    (False, False, False)
    """
    return bool(_PERSON.fullmatch(plain_name(column)))


def names_place(column: str) -> bool:
    """Whether the name of a column is that of a place or family, whose rows belong together.

    Examples
    --------
    >>> names_place("site_id"), names_place("Centre"), names_place("age")
    (True, True, False)
    """
    return bool(_PLACE.fullmatch(plain_name(column)))


def names_time(column: str) -> bool:
    """Whether the name of a column is that of a visit, or of the time of one.

    Examples
    --------
    >>> names_time("months since baseline"), names_time("Visit No."), names_time("age")
    (True, True, False)
    """
    return bool(_TIME.fullmatch(plain_name(column)))


def is_numbered(cells: "pd.Series[Any]") -> bool:
    """Whether cells are digits of one length, some with leading zeros: 00123.

    Examples
    --------
    >>> import pandas as pd
    >>> is_numbered(pd.Series(["007", "012"])), is_numbered(pd.Series(["7", "12"]))
    (True, False)
    """
    known = cells.dropna()
    if cells.dtype.kind != "O" or known.empty or not _NUMBERED.fullmatch(known.iloc[0]):
        return False
    has_zeros = known.str.len().nunique() == 1 and known.str.startswith("0").any()
    return bool(has_zeros) and all(map(_NUMBERED.fullmatch, known))


def repeats(cells: "pd.Series[Any]") -> bool:
    """Whether rows with the same cell can be groups: none is blank, some repeat, enough differ.

    Examples
    --------
    >>> import pandas as pd
    >>> repeats(pd.Series([*range(10), 3])), repeats(pd.Series([*range(10)]))
    (True, False)
    """
    return bool(cells.notna().all() and _LEAST_GROUPS <= cells.nunique() < len(cells))


# Bounds that a column seems to have: those of a known clinical scale, or a floor or ceiling.

# Words that may follow the name of a scale: that it is a total, and when it was measured. A bare
# number would be an item (phq9_3) or another version (phq_8).
_SUFFIX = (
    r"(_?(total|tot|score|scor|sum|raw))?"
    r"(_(total|tot|score|scor|sum|raw|bl|baseline|sc|screening|followup|fu|post|pre"
    r"|(t|v|m|w|y|fu|month|week|year|visit|time|wave)_?\d+))*"
)


class Scale(NamedTuple):
    """A scale, a pattern of its column names in lower case with _ between words, its bounds."""

    name: str
    pattern: str
    lower: float
    upper: float
    source: str

    @property
    def title(self) -> str:
        """Its name, source and bounds."""
        return f"{self.name} ({self.source}), which goes from {self.lower:g} to {self.upper:g}"


# Where a name has two versions (GDS-15 and GDS-30), the first that fits the data is proposed.
_SCALES = pd.read_csv(Path(__file__).with_name("scales.csv"), usecols=list(Scale._fields))
SCALES = tuple(map(Scale._make, _SCALES.itertuples(index=False)))

_ANY = re.compile(rf"({'|'.join(scale.pattern for scale in SCALES)}){_SUFFIX}")


def versions_of(column: str) -> list[Scale]:
    """All versions of the scale that a name stands for, whatever the values.

    Examples
    --------
    >>> [scale.upper for scale in versions_of("GDS")], versions_of("age")
    ([15, 30], [])
    """
    words = plain_name(column)
    if not _ANY.fullmatch(words):
        return []
    return [scale for scale in SCALES if re.fullmatch(rf"({scale.pattern}){_SUFFIX}", words)]


# The usual names of the eight subscales of the SF-36 are too short to be recognised alone.
_SF36 = "SF-36 "
_LEAST_TOGETHER = 4  # of the eight; fewer may be blood pressure, a site, a reaction
_NORM_BASED = (10.0, 75.0)  # scores of mean 50 and sd 10 have no firm bounds


def sf36_together(columns: Iterable[str]) -> frozenset[str]:
    """Columns with the bare names of SF-36 subscales, if enough of the eight are there.

    Examples
    --------
    >>> sorted(sf36_together(["age", "PF", "RP", "BP", "GH"])), sf36_together(["BP", "GH"])
    (['BP', 'GH', 'PF', 'RP'], frozenset())
    """
    found = {column: versions_of(_SF36 + column) for column in columns}
    names = {name: scales[0].name for name, scales in found.items() if scales}
    return frozenset(names if len(set(names.values())) >= _LEAST_TOGETHER else ())


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
    is_norm_based = _NORM_BASED[0] <= low and high <= _NORM_BASED[1]
    versions = versions_of(column) or versions_of(_SF36 + column if column in sf36 else "")
    fitting = (each for each in versions if each.lower <= low and high <= each.upper)
    return next((s for s in fitting if not (is_norm_based and s.name.startswith(_SF36))), None)


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
