"""The registry of findings: what each is called, what it does to a model, and how to fix it.

A finding has a stable name such as ``leak:total_points``: its kind, and what it is about. A rule is
a function that yields the findings of one kind, listed by the decorator :func:`rule`. The page
"What can be wrong with a table" is written from the same list.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from inspect import getdoc
from typing import Any, Literal, NamedTuple

import numpy as np

from deeptobit.app.study import columns
from deeptobit.app.study.config import Study, toml_key, toml_value
from deeptobit.app.study.data import StudyData, build_data, task_bounds
from deeptobit.app.study.doctor.numbers import Distinct, codes_of, scale_bounds
from deeptobit.app.study.tables import StudyError, Table, did_you_mean
from deeptobit.arrays import FloatArray, listed
from deeptobit.extras import require
from deeptobit.runtime import one_blas_thread

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
SHOWN = 20  # names in one message; a table may have thousands of columns
_CELLS = 4  # in one message, each with its rows


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


def warn(about: str, message: str, edits: tuple[Edit, ...] = (), evidence: str = "") -> "Finding":
    """A finding that may harm the model."""
    return Finding("warning", about, message, evidence=evidence, edits=edits)


def exclude(names: Iterable[str]) -> tuple[Edit, ...]:
    """The change that leaves features out."""
    return (Edit(("features",), "exclude", tuple(names)),)


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
        The rule that found it, which sets it.
    evidence : str
        Rows and values.
    edits : tuple of Edit
        Changes that fix it; empty if only people can.
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
        """The lines of the study file that fix it."""
        return "; ".join(edit.line for edit in self.edits)

    @property
    def harm(self) -> str:
        """What it does to a model, in one sentence."""
        return RULES[self.kind].harm if self.kind in RULES else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for programs."""
        plain = {key: getattr(self, key) for key in ("name", "level", "about", "message")}
        return plain | {"evidence": self.evidence, "consequence": self.harm, "fix": self.fix}


@dataclass(eq=False)
class Case:
    """A study and its table, as rules look at them; what several of them need is computed once.

    Attributes
    ----------
    study : Study
    table : Table
    data : StudyData or StudyError
        Why there are none, where cells are wrong.
    """

    study: Study
    table: Table
    data: StudyData | StudyError

    @property
    def built(self) -> StudyData:
        """The data; without them a rule that asks for them finds nothing."""
        if isinstance(self.data, StudyError):
            raise self.data
        return self.data

    def values(self, name: str) -> FloatArray:
        """Numbers of a column, (N,); NaN where a cell is blank or a word."""
        return self.table.parse(name)[0]

    @cached_property
    def features(self) -> list[str]:
        """Columns that are features."""
        return columns.feature_columns(self.study, self.table)

    @cached_property
    def targets(self) -> set[str]:
        """Columns that hold the values of targets."""
        return {target.values for target in self.study.targets}

    @cached_property
    def categorical(self) -> set[str]:
        """Columns that the study, or the file by its labels, calls categorical."""
        declared = columns.matching_columns(self.study, "categorical", self.table)
        return declared | self.table.labels.keys()

    @cached_property
    def numbers(self) -> dict[str, Distinct]:
        """Targets and features whose cells are numbers, most of them: their different numbers."""
        used = dict.fromkeys([*(target.values for target in self.study.targets), *self.features])
        found = {n: Distinct.of(self.values(n)) for n in used if n not in self.categorical}
        return {n: one for n, one in found.items() if one.n > self.table.parse(n)[1].sum()}

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Numbers that a column cannot leave: bounds of its target, or of a known scale; or ∓inf.

        A few values do not hide a scale.
        """
        sf36 = columns.sf36_together(self.table.columns)
        found = {name: scale_bounds(name, each, sf36) for name, each in self.numbers.items()}
        bounds = np.column_stack(task_bounds(self.study)).tolist()
        for target, (lower, upper) in zip(self.study.targets, bounds, strict=True):
            if np.isfinite([lower, upper]).any():
                found[target.values] = lower, upper
        return found

    @cached_property
    def codes(self) -> dict[str, list[float]]:
        """Numbers of each column that seem to mean missing."""
        return {name: codes_of(each, *self.bounds[name]) for name, each in self.numbers.items()}

    @cached_property
    def uncoded(self) -> dict[str, Distinct]:
        """The different numbers of each column without codes."""
        return {name: each.without(self.codes[name]) for name, each in self.numbers.items()}

    def cells(self, name: str, values: Iterable[float]) -> str:
        """Some values of a column, each with its rows: ``31 (a.csv, line 17)``."""
        some = [float(value) for value in values]
        shown = [f"{v:g} ({self.table.at(self.values(name) == v)})" for v in some[:_CELLS]]
        return ", ".join(shown) + f" and {len(some) - _CELLS} more values" * (len(some) > _CELLS)


Find = Callable[[Case], Iterator[Finding]]


class Rule(NamedTuple):
    """One kind of finding.

    Attributes
    ----------
    find : callable
        Its first sentence says what is looked for.
    harm : str
        What it does to a model.
    fix : str
        How to fix it.
    """

    find: Find
    harm: str
    fix: str

    @property
    def what(self) -> str:
        """What is looked for."""
        return " ".join((getdoc(self.find) or "").split("\n\n")[0].split())


RULES: dict[str, Rule] = {}


def rule(*, harm: str, fix: str) -> Callable[[Find], Find]:
    """List a function as a rule; ``find_leak`` yields findings of the kind ``leak``."""

    def listed_too(find: Find) -> Find:
        RULES[find.__name__.removeprefix("find_")] = Rule(find, harm, fix)
        return find

    return listed_too


Progress = Callable[[int, int], None]
Examined = tuple[list[Finding], StudyData | None]


def examine(study: Study, table: Table, progress: Progress = lambda done, total: None) -> Examined:
    """All findings, worst first, and the data of the study.

    Where cells are certainly wrong there are no data, and only findings about cells. What else is
    wrong with a study raises a :class:`StudyError`.
    """
    columns.check_columns(study, table)
    try:
        data: StudyData | StudyError = build_data(study, table)
    except StudyError as error:
        data = error
    found = _apply_rules(Case(study, table, data), RULES, progress)
    if isinstance(data, StudyData):
        return found, data
    if not any(finding.level == "error" for finding in found):
        raise data
    return found, None


def diagnose(study: Study, data: StudyData, kinds: Iterable[str] = RULES) -> list[Finding]:
    r"""Findings of a study whose data are built, worst first.

    Parameters
    ----------
    study : Study
    data : StudyData
    kinds : iterable of str
        The rules to apply, by default all.

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
    return _apply_rules(Case(study, data.table, data), kinds)


@one_blas_thread()
def _apply_rules(
    case: Case, kinds: Iterable[str], progress: Progress = lambda done, total: None
) -> list[Finding]:
    """Findings with the worst first; each name and message once."""
    once: dict[Finding, None] = {}
    for done, kind in enumerate(kinds, start=1):
        with suppress(StudyError):  # that there are no data
            for found in RULES[kind].find(case):
                once[found._replace(kind=kind)] = None
        progress(done, len(RULES))
    return sorted(once, key=lambda finding: LEVELS.index(finding.level))


def refuse(found: Iterable[Finding], accepted: Iterable[str]) -> None:
    """Raise an error for what is certainly wrong and not accepted by name."""
    accepted = set(accepted)
    refused = [one for one in found if one.level == "error" and one.name not in accepted]
    if refused:
        first, *rest = refused
        others = f" So are {listed([one.name for one in rest], SHOWN)}." if rest else ""
        raise StudyError(
            f"{first.name} is certainly wrong: {first.about!r} {first.message} "
            f"({first.evidence or first.harm}).{others} 'deeptobit check STUDY --fix all' fixes "
            f"what it can; --accept {first.name} fits anyway, where that is possible"
        )


# Fixes are written into the study file; comments and order stay as they are.


def choose(findings: Sequence[Finding], names: Sequence[str]) -> list[Finding]:
    """Findings by name, or with ``all`` every one that proposes a change and is no note."""
    chosen = list[Finding]()
    for name in names:
        if name == "all":
            chosen += [one for one in findings if one.edits and one.level != "note"]
            continue
        of_name = [one for one in findings if one.name == name]
        if not of_name:
            known = sorted({one.name for one in findings})
            hint = did_you_mean(name, known) or f"; there is {listed(known, SHOWN) or 'none'}"
            raise StudyError(f"there is no finding {name!r}{hint}")
        if not any(one.edits for one in of_name):
            raise StudyError(f"{name}: it cannot be fixed in the study file; correct the table")
        chosen += [one for one in of_name if one.edits]
    return list(dict.fromkeys(chosen))


def edit_study(text: str, findings: Iterable[Finding], *, explain: bool = False) -> str:
    r"""The text of a study file with the changes that findings propose.

    Parameters
    ----------
    text : str
    findings : iterable of Finding
    explain : bool
        Whether to write the name of the finding behind each change, as a comment.

    Examples
    --------
    >>> leak = Finding("error", "sum", "is a copy", "leak", edits=exclude(["sum"]))
    >>> print(edit_study('[features]  # all\nexclude = [\n    "name",  # text\n]\n', [leak]))
    [features]  # all
    exclude = [
        "name",  # text
        "sum",
    ]
    <BLANKLINE>
    """
    tomlkit = require("tomlkit", "app")
    document = tomlkit.parse(text)
    for finding in findings:
        for edit in finding.edits:
            _apply(tomlkit, document, edit, finding.name if explain else "")
    return str(tomlkit.dumps(document))


def _apply(tomlkit: Any, document: Any, edit: Edit, comment: str) -> None:
    place = document
    for depth, name in enumerate(edit.table, start=1):
        place = place.setdefault(name, tomlkit.table(is_super_table=depth < len(edit.table)))
    if edit.value is None:
        place.pop(edit.key, None)
    elif isinstance(edit.value, tuple):
        values = place.setdefault(edit.key, tomlkit.array())
        new = [value for value in edit.value if value not in list(values)]
        if "\n" in values.as_string():
            for value in new:
                values.add_line(value, comment=comment or None, indent="    ")
        else:
            values.extend(new)
            if comment:
                before = values.trivia.comment.lstrip("# ")
                values.comment("; ".join(filter(None, [before, comment])))
    else:
        value = tomlkit.item(edit.value)
        if comment:
            value.comment(comment)
        place[edit.key] = value
