"""A commented study file, written by looking at the data."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deeptobit.app.study.columns import (
    MOST_CATEGORIES,
    Kind,
    is_numbered,
    kind_of,
    names_person,
    names_place,
    repeats,
    words_of,
)
from deeptobit.app.study.config import toml_cell, toml_key, toml_text
from deeptobit.app.study.outcomes import find_piles
from deeptobit.app.study.scales import known_scale, sf36_together
from deeptobit.app.study.tables import UNUSUAL, Table, parse_numbers, split_limits, unusual_form

# What a table seems to be about: who the rows are, what to predict, what to leave out.

_CODE = re.compile("race|ethnicity|marital(_status)?|genotype|arm|treatment|scanner|diagnosis|dx")
_FLAG_VALUES = 2  # PID is also a disease, which people have or not
_LIMIT = ("_lod", "_lloq", "_limit")
_FLAG = ("_below", "_bdl", "_censored")


class Proposal(NamedTuple):
    """A column that looks like an outcome, its bounds, and why; certain enough to be written."""

    column: str
    bounds: dict[str, float | str]
    why: str
    certain: bool = True


@dataclass(frozen=True)
class Look:
    """What was found: ``excluded`` maps columns to the reason, ``categorical`` are codes."""

    id: str | None
    group: str | None
    targets: list[Proposal]
    excluded: dict[str, str]
    categorical: list[str]


def look_at(table: Table) -> Look:
    """Guess the part that every column plays; a person then corrects the study file."""
    kinds = {name: kind_of(table, name) for name in table.columns}
    key, group = _who(table, kinds)
    free = [name for name in table.columns if name not in (key, group)]
    targets = _outcomes(table, kinds, free)
    helpers = {bound for target in targets for bound in target.bounds.values()}
    proposed = {target.column for target in targets} | helpers
    excluded = {
        name: why
        for name in free
        if name not in proposed and (why := _why_not(table, name, kinds[name]))
    }
    codes = [
        name
        for name in free
        if kinds[name] == "numbers"
        and name not in proposed | excluded.keys()
        and (names_place(name) or _CODE.fullmatch(words_of(name)))
        and 2 < table.text(name).nunique() <= MOST_CATEGORIES
    ]
    return Look(key, group, targets, excluded, codes)


def _who(table: Table, kinds: dict[str, Kind]) -> tuple[str | None, str | None]:
    """The id (unique) and the group (people seen more than once, or places)."""
    named = [name for name in table.columns if names_person(name)]
    first = [
        name
        for name in table.columns[:1]
        if kinds[name] == "text" and not unusual_form(table, name)
    ]
    numbered = [
        name
        for name in table.columns
        if is_numbered(table.text(name)) and not _scale(table, name, ())
    ]
    places = [name for name in table.columns if names_place(name)]
    key = next((name for name in (*named, *first, *numbered) if _differs(table, name)), None)
    group = next((name for name in (*named, *numbered, *places) if repeats(table.text(name))), None)
    return key, group


def _differs(table: Table, name: str) -> bool:
    text = table.text(name)
    return bool(text.notna().all() and text.is_unique)


def _outcomes(table: Table, kinds: dict[str, Kind], names: list[str]) -> list[Proposal]:
    """Known scales and assays; without any, columns that pile up at an edge."""
    by_folded = {name.lower(): name for name in table.columns}
    sf36 = sf36_together(table.columns)
    found = []
    for name in names:
        if kinds[name] == "numbers":
            found.append(_assay(name, by_folded) or _scale(table, name, sf36))
        elif kinds[name] != "empty":
            found.append(_signed(table, name))
    certain = [proposal for proposal in found if proposal]
    taken = {p.column for p in certain} | {b for p in certain for b in p.bounds.values()}
    piled = [
        pile
        for name in names
        if name not in taken and kinds[name] == "numbers" and (pile := _pile(table, name))
    ]
    return certain + [pile._replace(certain=not certain) for pile in piled]


def _scale(table: Table, name: str, sf36: Collection[str]) -> Proposal | None:
    values = table.numbers(name)
    low, tenth, ninetieth, high = np.nanquantile(values, [0.0, 0.1, 0.9, 1.0]).tolist()
    scale, remark = known_scale(name, low, high, sf36=sf36), ""
    if scale is None:  # a few codes such as -4 or 999 do not make it another scale
        scale = known_scale(name, tenth, ninetieth, sf36=sf36)
        remark = f"; but {low:g} to {high:g} here: codes for missing?"
    if scale is None:
        return None
    why = f"{scale.name} ({scale.source}){remark}"
    return Proposal(name, {"lower": scale.lower, "upper": scale.upper}, why)


def _signed(table: Table, name: str) -> Proposal | None:
    """A column with cells such as ``<0.5``."""
    bare, below, above = split_limits(table.text(name))
    values, wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)
    if wrong.any() or not (below | above).any():
        return None
    exact = values[~(below | above | np.isnan(values))]
    floors, ceilings = np.unique(values[below]), np.unique(values[above])
    bounds: dict[str, float | str] = {}
    # A limit that all censored cells share, and no other cell passes, is that of the assay.
    if len(floors) == 1 and (exact >= floors[0]).all():
        bounds["lower"] = float(floors[0])
    if len(ceilings) == 1 and (exact <= ceilings[0]).all():
        bounds["upper"] = float(ceilings[0])
    return Proposal(name, bounds, "cells with < or > are censored there")


def _assay(name: str, by_folded: dict[str, str]) -> Proposal | None:
    """A column of numbers, beside it one with detection limits, or with flags."""
    limit = _companion(name, _LIMIT, by_folded)
    flag = _companion(name, _FLAG, by_folded)
    bounds: dict[str, float | str] = {}
    if limit:
        bounds["lower"] = limit
    if flag:
        bounds["below"] = flag
    why = "detection limits, by row" if limit else "values below detection are flagged"
    return Proposal(name, bounds, why) if bounds else None


def _companion(name: str, endings: tuple[str, ...], by_folded: dict[str, str]) -> str | None:
    found = (by_folded.get(name.lower() + ending) for ending in endings)
    return next((column for column in found if column), None)


def _pile(table: Table, name: str) -> Proposal | None:
    piles = find_piles(table.numbers(name))
    bounds: dict[str, float | str] = {}
    why = []
    if piles.lower is not None:
        bounds["lower"] = piles.lower
        why.append(f"{piles.share_lower:.0%} of the values are {piles.lower:g}, the smallest")
    if piles.upper is not None:
        bounds["upper"] = piles.upper
        why.append(f"{piles.share_upper:.0%} of the values are {piles.upper:g}, the largest")
    return Proposal(name, bounds, "; ".join(why)) if bounds else None


def _why_not(table: Table, name: str, kind: Kind) -> str | None:
    """Why a column should not be a feature, or None if it may."""
    if kind == "dates":
        return "dates"
    if kind == "empty":
        return "no value at all"
    if kind in ("text", "mixed") and (form := unusual_form(table, name)):
        return UNUSUAL[form]
    if kind == "text":
        return "free text or an identifier"
    if kind == "mixed":
        return "numbers and words; list the words in missing, above"
    if table.text(name).nunique() == 1:
        return "the same value in every row"
    if names_person(name) and table.text(name).nunique() > _FLAG_VALUES:
        return "an identifier, by its name"
    if is_numbered(table.text(name)) and table.text(name).nunique() > MOST_CATEGORIES:
        return "an identifier, by its leading zeros"
    return None


_MODEL = """\
[model]
kind = "auto"             # or "network", a grid of networks; or "tobit", target by target
# members = ["stack"]     # do not try a deeper network
# cv = 5                  # folds that choose the model; groups are never split
# scoring = "r2"          # or "log"
# noise = "auto"          # or "gaussian", "logistic", "student_t"
# seed = 0

[evaluation]
# method = "splits"       # repeated random splits, or "folds"; groups are never split
# train_shares = [0.4, 0.5, 0.6, 0.7, 0.8]
# repeats = 5             # of every split
# folds = 5
# coverage = 0.9          # of prediction intervals
# seed = 0

[report]
# small_counts = false    # true: cards and reports tell counts under five, too
"""
_NO_TARGET = """\
# No column looks like a bounded score. Name at least one, with the bounds of its scale:
# [targets.MMSE]
# lower = 0
# upper = 30
"""


def propose_study(table: Table, file: str, *, missing: Sequence[str] = ()) -> tuple[str, Look]:
    """Text of a study file for a table, and what it was written from.

    Parameters
    ----------
    file : str
        The table as the study file is to name it, relative to its own folder.
    missing : sequence of str
        Codes for missing that the table was read with.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"id": ["a", "b"], "age": ["70", "75"], "MMSE": ["30", "21"]})
    >>> text, look = propose_study(Table(cells, "a.csv", np.array([2, 3])), "a.csv")
    >>> print(text[text.index("[targets"):text.index("[model]")])
    [targets.MMSE]  # MMSE (Folstein 1975)
    lower = 0
    upper = 30
    """
    look = look_at(table)
    targets = "\n".join(_target(proposal) for proposal in look.targets)
    if not any(proposal.certain for proposal in look.targets):
        targets = _NO_TARGET + targets
    parts = (_head(table), _data(look, file, missing), _features(look), targets, _MODEL)
    return "\n".join(parts), look


def _head(table: Table) -> str:
    return (
        f"# Written by 'deeptobit init' from {len(table)} rows and {len(table.columns)} columns.\n"
        "# Correct what was guessed wrong, above all the targets; then run 'deeptobit check'.\n"
        "# What follows # is a comment: a reason, an example or a default.\n"
    )


def _data(look: Look, file: str, missing: Sequence[str]) -> str:
    lines = ["[data]", f"file = {toml_text(file)}  # beside this file, or in a folder below it"]
    if look.id is None:
        lines.append('# id = "column"  # a column that is different in every row')
    else:
        lines.append(f"id = {toml_text(look.id)}")
    if look.group is None:
        lines.append('# group = "column"  # rows of the same person, site or family stay together')
    else:
        lines.append(f"group = {toml_text(look.group)}  # rows of one group stay together")
    codes = (
        f"missing = [{', '.join(map(toml_cell, missing))}]" if missing else "# missing = [-4, 999]"
    )
    lines.append(f"{codes}  # codes for missing, beside blank cells, NA, NaN, null and .")
    return "\n".join(lines) + "\n"


def _features(look: Look) -> str:
    excluded = [f"    {toml_text(name)},  # {why}" for name, why in look.excluded.items()]
    exclude = ["exclude = [", *excluded, "]"] if excluded else ["exclude = []"]
    lines = [
        "[features]",
        'include = ["*"]  # names, * and ?; never the id, the group or a target',
        *exclude,
        f"categorical = {_names(look.categorical)}  # numbers that are codes; words are anyway",
        'missing = "impute"  # blanks become the mean, and a feature tells where; or "error"',
    ]
    return "\n".join(lines) + "\n"


def _target(proposal: Proposal) -> str:
    lines = [f"[targets.{toml_key(proposal.column)}]  # {proposal.why}"]
    lines += [f"{key} = {_value(bound)}" for key, bound in proposal.bounds.items()]
    if not proposal.certain:
        lines = ["# Perhaps a target, now a feature:", *(f"# {line}" for line in lines)]
    return "\n".join(lines) + "\n"


def _value(bound: float | str) -> str:
    return toml_text(bound) if isinstance(bound, str) else f"{bound:.17g}"


def _names(names: list[str]) -> str:
    return f"[{', '.join(toml_text(name) for name in names)}]"
