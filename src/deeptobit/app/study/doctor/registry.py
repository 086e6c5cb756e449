"""The registry of findings: what each is called, what it does to a model, and what mends it.

A finding has a stable name such as ``leak:total_points``: its kind, and what it is about. A rule is
a function that yields the findings of one kind, listed by the decorator :func:`rule`. The page
"What can be wrong with a table" is written from the same list.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getdoc
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.study import columns
from deeptobit.app.study.config import Study, toml_key, toml_value
from deeptobit.app.study.data import StudyData, build_data
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import FloatArray, listed

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
SHOWN = 20  # names in one message; a table may have thousands of columns


class Edit(NamedTuple):
    """One change of a study file.

    Attributes
    ----------
    table : tuple of str
        Where: ``("features",)`` or ``("targets", "MMSE")``.
    key : str
    value : object
        What is written; a tuple is added to the list that is there, None takes the key out.

    Examples
    --------
    >>> print(Edit(("features",), "exclude", ("total",)).line)
    [features] exclude = ["total"]
    """

    table: tuple[str, ...]
    key: str
    value: Any

    @property
    def line(self) -> str:
        """The change as a line of the study file."""
        title = f"[{'.'.join(map(toml_key, self.table))}]"
        if self.value is None:
            return f"{title} without {self.key}"
        return f"{title} {self.key} = {toml_value(self.value)}"


class Finding(NamedTuple):
    """Something about a study, its table or its model.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        An error is certainly wrong, and ``fit`` refuses it. A warning may harm the model, a note is
        good to know.
    about : str
        A column, or a part of the study.
    message : str
        What was found, without rows and values of single people: it is stored with the model.
    kind : str
        The rule that found it.
    evidence : str
        Rows and values.
    edits : tuple of Edit
        What mends it; empty if only people can.
    """

    level: Level
    about: str
    message: str
    kind: str = "model"
    evidence: str = ""
    edits: tuple[Edit, ...] = ()

    @property
    def name(self) -> str:
        """The stable name: ``leak:total_points``."""
        return f"{self.kind}:{self.about}"

    @property
    def fix(self) -> str:
        """The lines of the study file that mend it."""
        return "; ".join(edit.line for edit in self.edits)

    @property
    def harm(self) -> str:
        """What it does to a model, in one sentence."""
        return RULES[self.kind].harm if self.kind in RULES else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for programs."""
        plain = {key: getattr(self, key) for key in ("name", "level", "about", "message")}
        return plain | {"evidence": self.evidence, "consequence": self.harm, "fix": self.fix}


class Distinct(NamedTuple):
    """The different numbers of a column in ascending order, and how often each occurs."""

    values: FloatArray
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: FloatArray) -> "Distinct":
        """Count numbers; NaN is left out."""
        known = np.asarray(values, dtype=np.float64)
        return cls(*np.unique(known[~np.isnan(known)], return_counts=True))

    def __len__(self) -> int:
        """Return the number of different values."""
        return len(self.values)

    @property
    def n(self) -> int:
        """How many numbers there are."""
        return int(self.counts.sum())

    def at(self, share: float) -> float:
        """The smallest value that at least this share of the numbers does not exceed."""
        place = np.searchsorted(np.cumsum(self.counts), share * self.n)
        return float(self.values[min(int(place), len(self.values) - 1)])

    def where(self, kept: NDArray[np.bool_]) -> "Distinct":
        """Some of the values."""
        return Distinct(self.values[kept], self.counts[kept])


# Numbers that people write for missing values.
CODES = np.concatenate(
    [
        [9, 77, 88, 98, 99, 777, 888, 998, 999, 7777, 8888, 9998, 9999, 99999, 999999],
        [-1, -4, -5, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, -99999],
    ]
)


def scale_bounds(name: str, found: Distinct, sf36: frozenset[str]) -> tuple[float, float]:
    """Bounds of the known scale of a column, or ∓inf; codes and a few values do not hide it."""
    rest = found.where(~np.isin(found.values, CODES))
    if not len(rest):
        return -np.inf, np.inf
    scale = columns.known_scale(name, rest.at(0.1), rest.at(0.9), sf36=sf36)
    return (-np.inf, np.inf) if scale is None else (scale.lower, scale.upper)


@dataclass(eq=False)
class Case:
    """A study and its table, as rules look at them; what several of them need is computed once.

    Attributes
    ----------
    study : Study
    table : Table
    data : StudyData or None
        None before cells are known to be usable.
    """

    study: Study
    table: Table
    data: StudyData | None = None
    _distinct: dict[str, Distinct] = field(default_factory=dict, repr=False)

    @property
    def built(self) -> StudyData:
        """The data, which are there."""
        assert self.data is not None
        return self.data

    def values(self, name: str) -> FloatArray:
        """Numbers of a column, (N,); NaN where a cell is blank or a word."""
        return self.table.parse(name)[0]

    def distinct(self, name: str) -> Distinct:
        """Different numbers of a column."""
        if name not in self._distinct:
            self._distinct[name] = Distinct.of(self.values(name))
        return self._distinct[name]

    @cached_property
    def features(self) -> list[str]:
        """Columns that are features."""
        return columns.feature_columns(self.study, self.table)

    @cached_property
    def numeric(self) -> list[str]:
        """Features and targets that hold numbers, most of them."""
        declared = columns.matching_columns(self.study, "categorical", self.table)
        used = dict.fromkeys([*(target.values for target in self.study.targets), *self.features])
        kept = [name for name in used if name not in declared | self.table.labels.keys()]
        halves = {name: (~np.isnan(self.values(name))).sum() for name in kept}
        return [name for name in kept if halves[name] > self.table.parse(name)[1].sum()]

    def bounds(self, name: str) -> tuple[float, float]:
        """Numbers that a column cannot leave: bounds of its target, or of a known scale; or ∓inf.

        A few values do not hide a scale.
        """
        for target in self.study.targets:
            ends = [getattr(target, side) for side in ("lower", "upper")]
            if target.values == name and any(isinstance(end, int | float) for end in ends):
                low, high = (float(e) if isinstance(e, int | float) else None for e in ends)
                return -np.inf if low is None else low, np.inf if high is None else high
        return scale_bounds(name, self.distinct(name), self._sf36)

    @cached_property
    def _sf36(self) -> frozenset[str]:
        return columns.sf36_together(self.table.columns)

    def cells(self, name: str, values: Iterable[float], most: int = 4) -> str:
        """Some values of a column, each with its rows: ``31 (a.csv, line 17)``."""
        some = [float(value) for value in values]
        shown = [f"{v:g} ({self.table.at(self.values(name) == v)})" for v in some[:most]]
        return ", ".join(shown) + (f" and {len(some) - most} more values" * (len(some) > most))


Find = Callable[[Case], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One kind of finding.

    Attributes
    ----------
    kind : str
    find : callable
        Its first sentence says what is looked for.
    harm : str
        What it does to a model.
    fix : str
        What mends it.
    cells : bool
        Whether it looks at cells alone, before features are built.
    """

    kind: str
    find: Find
    harm: str
    fix: str
    cells: bool

    @property
    def what(self) -> str:
        """What is looked for."""
        return " ".join((getdoc(self.find) or "").split("\n\n")[0].split())


RULES: dict[str, Rule] = {}


def rule(kind: str, *, harm: str, fix: str, cells: bool = False) -> Callable[[Find], Find]:
    """List a function as the rule of a kind of finding."""

    def listed_too(find: Find) -> Find:
        RULES[kind] = Rule(kind, find, harm, fix, cells)
        return find

    return listed_too


Progress = Callable[[int, int], None]


def examine(
    study: Study, table: Table, progress: Progress = lambda done, total: None
) -> tuple[list[Finding], StudyData | None]:
    """All findings, worst first, and the data of the study.

    Where cells are certainly wrong there are no data, and only findings about cells. What else is
    wrong with a study raises a :class:`StudyError`.
    """
    columns.check_columns(study, table)
    case, found, done = Case(study, table), list[Finding](), 0
    for kind in RULES.values():
        if kind.cells:
            found += kind.find(case)
            done += 1
            progress(done, len(RULES))
    try:
        case.data = build_data(study, table)
    except StudyError:
        if not any(finding.level == "error" for finding in found):
            raise
        return in_order(found), None
    for kind in RULES.values():
        if not kind.cells:
            found += kind.find(case)
            done += 1
            progress(done, len(RULES))
    return in_order(found), case.data


def diagnose(study: Study, data: StudyData) -> list[Finding]:
    r"""Findings of a study whose data are built, worst first.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{7 * age % 11},{max(age - 70, 0)}" for age in range(50, 100)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["dose,loss", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.loss = {}')
    ...     study = read_study(path)
    ...     for finding in diagnose(study, build_data(study, read_data(study))):
    ...         print(finding.level, finding.name, finding.message, finding.fix, sep="\n")
    warning
    bound:loss
    42% of the values are 0, its smallest, and lower is not set
    [targets.loss] lower = 0
    """
    case = Case(study, data.table, data)
    return in_order(finding for kind in RULES.values() for finding in kind.find(case))


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Findings with the worst first; each name once."""
    once = {(finding.name, finding.message): finding for finding in found}
    return sorted(once.values(), key=lambda finding: LEVELS.index(finding.level))


def refuse(found: Iterable[Finding], accepted: Iterable[str]) -> None:
    """Raise an error for what is certainly wrong and not accepted by name."""
    accepted = set(accepted)
    refused = [one for one in found if one.level == "error" and one.name not in accepted]
    if refused:
        first = refused[0]
        names = [one.name for one in refused[1:]]
        others = f" So are {listed(names, SHOWN)}." if names else ""
        raise StudyError(
            f"{first.name} is certainly wrong: {first.about!r} {first.message} "
            f"({first.evidence or first.harm}).{others} 'deeptobit check STUDY --fix all' mends "
            f"what it can; --accept {first.name} fits anyway, where that is possible"
        )
