"""Propose a commented study file for a table."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deeptobit.app.study import columns
from deeptobit.app.study.config import Source, parse_study, toml_cell, toml_key, toml_value
from deeptobit.app.study.data import read_data, why_useless
from deeptobit.app.study.doctor.registry import Finding, edit_study, examine
from deeptobit.app.study.tables import StudyError, Table, parse_numbers, split_limits, templates

_CODE = re.compile("race|ethnicity|marital(_status)?|genotype|arm|treatment|scanner|diagnosis|dx")
_FLAG_VALUES = 2  # PID may be a flag: it is also a disease
_LIMIT = ("_lod", "_lloq", "_limit")
_FLAG = ("_below", "_bdl", "_censored")

Kinds = dict[str, columns.Kind]


class ProposedTarget(NamedTuple):
    """A column that looks like an outcome, its bounds, the reason, and whether it is certain."""

    column: str
    bounds: dict[str, float | str]
    why: str
    certain: bool = True


@dataclass(frozen=True)
class Proposal:
    """The role of every column.

    ``excluded`` maps columns to the reason, ``categorical`` are numbers that are codes.
    """

    id: str | None
    group: str | None
    targets: list[ProposedTarget]
    excluded: dict[str, str]
    categorical: list[str]
    time: str | None = None


def inspect_table(table: Table) -> Proposal:
    """Guess the role of every column; people correct it in the study file."""
    summaries = {name: columns.summarise_column(table, name) for name in table.columns}
    kinds = {name: summary.kind for name, summary in summaries.items()}
    key, group = _who(table, kinds)
    free = [name for name in table.columns if name not in (key, group)]
    targets = _outcomes(table, kinds, free)
    helpers = {bound for target in targets for bound in target.bounds.values()}
    proposed = {target.column for target in targets} | helpers
    reasons = {n: _why_not(table, summaries[n]) for n in free if n not in proposed}
    excluded = {name: why for name, why in reasons.items() if why}
    numbers = [name for name, why in reasons.items() if not why and kinds[name] == "numbers"]
    coded = [n for n in numbers if columns.names_place(n) or _CODE.fullmatch(columns.plain_name(n))]
    codes = [n for n in coded if 2 < table.text(n).nunique() <= columns.MOST_CATEGORIES]
    return Proposal(key, group, targets, excluded, codes, _when(table, group, numbers))


def _when(table: Table, group: str | None, numbers: list[str]) -> str | None:
    """The time of a visit: a number by its name, which differs between rows of one person.

    Of several, that with the most values: months rather than the number of the visit.
    """
    if group is None or not columns.names_person(group):
        return None
    rank = {
        name: (table.text(name).nunique(), "visit" not in columns.plain_name(name))
        for name in filter(columns.names_time, numbers)
        if (table.text(name).groupby(table.text(group)).nunique() > 1).mean() > 0.5
    }
    return max(rank, key=lambda name: rank[name], default=None)


def _who(table: Table, kinds: Kinds) -> tuple[str | None, str | None]:
    """The id (unique) and the group (people with several rows, or places)."""
    named = [name for name in table.columns if columns.names_person(name)]
    first = [name for name in table.columns[:1] if kinds[name] == "text"]
    numbered = [name for name in table.columns if columns.is_numbered(table.text(name))]
    numbered = [name for name in numbered if not _scale(table, name, ())]
    places = [name for name in table.columns if columns.names_place(name)]
    texts = ((name, table.text(name)) for name in (*named, *first, *numbered))
    key = next((name for name, text in texts if text.notna().all() and text.is_unique), None)
    groups = (n for n in (*named, *numbered, *places) if columns.repeats(table.text(n)))
    return key, next(groups, None)


def _outcomes(table: Table, kinds: Kinds, names: list[str]) -> list[ProposedTarget]:
    """Known scales and assays; without any, columns with many values at an end."""
    by_folded = {name.lower(): name for name in table.columns}
    sf36 = columns.sf36_together(table.columns)
    found = []
    for name in names:
        if kinds[name] == "numbers":
            found.append(_assay(name, by_folded) or _scale(table, name, sf36))
        elif kinds[name] != "empty":
            found.append(_signed(table, name))
    certain = [target for target in found if target]
    taken = {t.column for t in certain} | {b for t in certain for b in t.bounds.values()}
    rest = [name for name in names if name not in taken and kinds[name] == "numbers"]
    perhaps = filter(None, (_floor_or_ceiling(table, name) for name in rest))
    return certain + [target._replace(certain=not certain) for target in perhaps]


def _scale(table: Table, name: str, sf36: Collection[str]) -> ProposedTarget | None:
    values = table.numbers(name)
    low, tenth, ninetieth, high = np.nanquantile(values, [0.0, 0.1, 0.9, 1.0]).tolist()
    # A few codes such as -4 or 999 do not make it another scale.
    remark = f"; but {low:g} to {high:g} here: codes for missing?"
    for ends, said in (((low, high), ""), ((tenth, ninetieth), remark)):
        if scale := columns.known_scale(name, *ends, sf36=sf36):
            why = f"{scale.name} ({scale.source}){said}"
            return ProposedTarget(name, {"lower": scale.lower, "upper": scale.upper}, why)
    return None


def _signed(table: Table, name: str) -> ProposedTarget | None:
    """A column with cells such as ``<0.5``."""
    bare, below, above = split_limits(table.text(name))
    values, wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)
    if wrong.any() or not (below | above).any():
        return None
    exact = values[~(below | above | np.isnan(values))]
    floors, ceilings = np.unique(values[below]), np.unique(values[above])
    bounds: dict[str, float | str] = {}
    # A limit that all censored cells share, and no other cell exceeds, is that of the assay.
    if len(floors) == 1 and (exact >= floors[0]).all():
        bounds["lower"] = float(floors[0])
    if len(ceilings) == 1 and (exact <= ceilings[0]).all():
        bounds["upper"] = float(ceilings[0])
    return ProposedTarget(name, bounds, "cells with < or > are censored there")


def _assay(name: str, by_folded: dict[str, str]) -> ProposedTarget | None:
    """A column of numbers with another one of its detection limits, or of flags."""
    bounds: dict[str, float | str] = {
        key: by_folded[name.lower() + ending]
        for key, endings in (("lower", _LIMIT), ("below", _FLAG))
        for ending in endings
        if name.lower() + ending in by_folded
    }
    why = "detection limits, by row" if "lower" in bounds else "values below detection are flagged"
    return ProposedTarget(name, bounds, why) if bounds else None


def _floor_or_ceiling(table: Table, name: str) -> ProposedTarget | None:
    ends = columns.find_floor_and_ceiling(table.numbers(name))
    extreme = {"lower": "smallest", "upper": "largest"}
    why = [
        f"{share:.0%} of the values are {bound:g}, the {extreme[side]}"
        for side, (bound, share) in ends.items()
    ]
    bounds: dict[str, float | str] = {side: bound for side, (bound, _) in ends.items()}
    return ProposedTarget(name, bounds, "; ".join(why)) if bounds else None


def _why_not(table: Table, summary: columns.ColumnSummary) -> str | None:
    """Why a column should not be a feature, or None if it may."""
    name = summary.name
    if columns.number_repair(table, name):  # which the doctor decides
        return None
    if why := why_useless(summary):
        return re.sub("^holds |(;|, or) exclude it.*", "", why)  # which it is
    text = table.text(name)
    n_values = text.nunique()
    if n_values == 1:
        return "the same value in every row"
    if columns.names_person(name) and n_values > _FLAG_VALUES:
        return "an identifier, by its name"
    if columns.is_numbered(text) and n_values > columns.MOST_CATEGORIES:
        return "an identifier, by its leading zeros"
    return None


def propose_study(table: Table, file: str, *, missing: Sequence[str] = ()) -> tuple[str, Proposal]:
    """Text of a study file for a table, and the proposal it was written from.

    Parameters
    ----------
    file : str
        Name of the table in the study file, relative to its folder.
    missing : sequence of str
        Codes for missing values that the table was read with.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"id": ["a", "b"], "age": ["70", "75"], "MMSE": ["30", "21"]})
    >>> text, proposal = propose_study(Table(cells, "a.csv", np.array([2, 3])), "a.csv")
    >>> print(text[text.index("[targets"):text.index("[model]")])
    [targets.MMSE]  # MMSE (Folstein 1975)
    lower = 0
    upper = 30
    """
    environment, proposal = templates("study"), inspect_table(table)
    environment.filters |= {"toml": _toml, "key": toml_key, "cell": toml_cell}
    template = environment.get_template("proposal.toml.j2")
    size = {"n_rows": len(table), "n_columns": len(table.columns)}
    return template.render(proposal=proposal, file=file, codes=missing, **size) + "\n", proposal


def _toml(value: float | str) -> str:
    return toml_value(value) if isinstance(value, str) else f"{value:.17g}"


# What the doctor decides for a proposed study.

_DECIDED = ("code", "word", "leak", "outside", "read", "useless")
_MOST_ROUNDS = 3  # what is wrong with cells hides what is wrong with features


def decide(text: str, path: Path, data: Path) -> tuple[str, list[Finding], list[Finding]]:
    """A proposed study file with certain errors fixed, the fixed findings, and those that remain.

    The name of a finding is a comment behind its line; unresolved ones are listed at the top.

    Parameters
    ----------
    text : str
        The proposal.
    path, data : Path
        The study file, which is not written, and its table.
    """
    decided: list[Finding] = []
    for _ in range(_MOST_ROUNDS):
        try:
            study = parse_study(Source(path, text))
            findings, _ = examine(study, read_data(study, data))
        except StudyError:  # 'check' says it
            return text, decided, []
        certain = [one for one in findings if one.edits and one.kind in _DECIDED]
        if not certain:
            break
        text = edit_study(text, certain, explain=True)
        decided += [one for one in certain if one not in decided]
    left = [finding for finding in findings if finding.level != "note"]
    if left:
        head = "\n# 'deeptobit check' explains these findings and can fix some:\n"
        lines = [f"# {finding.name}: {finding.message}\n" for finding in left]
        text = text.replace("\n[data]", f"{head}{''.join(lines)}\n[data]", 1)
    return text, decided, left
