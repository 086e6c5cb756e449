"""What a table seems to be about: who the rows are, what to predict, what to leave out."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deeptobit.study._cells import parse_numbers, split_limits
from deeptobit.study._identifiers import is_numbered, names_person, names_place, repeats
from deeptobit.study._kinds import MOST_CATEGORIES, Kind, kind_of
from deeptobit.study._names import words_of
from deeptobit.study._piles import find_piles
from deeptobit.study._scales import known_scale
from deeptobit.study._sf36 import sf36_together
from deeptobit.study._table import Table
from deeptobit.study._unusual import UNUSUAL, unusual_form

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
