"""Numbers that do not belong: codes for missing values, typing errors, two units, other scales."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from deeptobit.app.study import columns
from deeptobit.app.study.config import Source, parse_study, toml_key
from deeptobit.app.study.doctor import numbers
from deeptobit.app.study.doctor.registry import SHOWN, Case, Edit, Finding, rule, warn
from deeptobit.app.study.tables import StudyError, Table, as_text, parse_numbers, split_limits
from deeptobit.arrays import listed


def as_missing(cells: Iterable[float | str], names: Iterable[str] = ()) -> tuple[Edit, ...]:
    """Declare cells missing in some columns, by default in all."""
    text = (c if isinstance(c, str) else int(c) if c % 1.0 == 0.0 else float(c) for c in cells)
    plain = tuple(text)
    places: list[tuple[str, ...]] = [("columns", name) for name in names]
    return tuple(Edit(place, "missing", plain) for place in places or [("data",)])


@rule(
    harm="Taken as numbers, they pull means, slopes and predictions towards them.",
    fix="`[data] missing`, or `[columns.NAME] missing` where another column has it as a value",
)
def find_code(case: Case) -> Iterator[Finding]:
    """A number such as -4, 99 or 999 that repeats far from all other values, or beyond a scale."""
    for code in sorted({code for codes in case.codes.values() for code in codes}):
        names = [name for name, codes in case.codes.items() if code in codes]
        others = (each for name, each in case.numbers.items() if name not in names)
        meant = any(numbers.is_plausible(each, code) for each in others)
        yield Finding(
            "error" if case.targets & set(names) else "warning",
            as_text(code),
            f"seems to mean missing in {listed(names, SHOWN)}, where it is far from all values",
            evidence="; ".join(f"{name}: {case.cells(name, [code])}" for name in names[:4]),
            edits=as_missing([code], names if meant else ()),
        )


# Words among numbers.

_MOST_WORDS = 5  # more different words are remarks, not codes
_UNUSUAL = re.compile(r"[^#].*\d|\d|[+-]?inf", re.IGNORECASE)  # numbers such as 1.234,5, 5% or inf


def words_among_numbers(table: Table, name: str) -> list[str]:
    """Up to five words among the numbers of a column; none if cells are written as 5% or 1.234,5.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"age": ["70", "refused", "75", "81"]})
    >>> words_among_numbers(Table(cells, "a.csv", np.arange(4)), "age")
    ['refused']
    """
    if not table.parse(name)[1].any():
        return []
    bare = split_limits(table.text(name))[0]
    wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)[1]
    words = sorted(set(table.text(name)[wrong]))
    return words if len(words) <= _MOST_WORDS and not any(map(_UNUSUAL.match, words)) else []


@rule(
    harm="The column cannot be read as numbers.",
    fix="`[data] missing`, or `[columns.NAME] missing` where another column has it as a category",
)
def find_word(case: Case) -> Iterator[Finding]:
    """A word among the numbers of a column, such as `refused` or `#DIV/0!`."""
    table = case.table
    mixed = {name: words for name in case.numbers if (words := words_among_numbers(table, name))}
    others = [name for name in table.columns if name not in case.numbers]
    for word in sorted({word for words in mixed.values() for word in words}):
        names = [name for name, words in mixed.items() if word in words]
        meant = any((table.text(name) == word).any() for name in others)
        where = (table.text(names[0]) == word).to_numpy()
        message = f"stands among the numbers of {listed(names, SHOWN)}"
        edits = as_missing([word], names if meant else ())
        yield Finding("error", word, message, evidence=table.at(where), edits=edits)


def codes_of_table(table: Table) -> list[str]:
    """Cells that seem to mean missing in all columns of a table, without a study."""
    if len(table.columns) < 2:
        return []
    text = f'data.file = "any.csv"\ntargets.{toml_key(table.columns[0])} = {{}}'
    case = Case(parse_study(Source(Path(table.file), text)), table, StudyError("not built"))
    found = [*find_code(case), *find_word(case)]
    return [finding.about for finding in found if finding.edits[0].table == ("data",)]


# Values beyond the bounds of a target or of a known scale.


@rule(
    harm="A score cannot have them: they are typing errors, or the bound is wrong.",
    fix="`[columns.NAME] missing` for a few; a corrected bound for many",
)
def find_outside(case: Case) -> Iterator[Finding]:
    """Values beyond the bounds of a target, or of the scale suggested by the column's name."""
    clipped = {target.values for target in case.study.targets if target.outside == "clip"}
    for name, rest in case.uncoded.items():
        lower, upper = case.bounds[name]
        beyond = rest.where(rest.beyond(lower, upper))
        if not len(beyond) or name in clipped:
            continue
        few = beyond.n <= max(3, 0.02 * rest.n)
        yield Finding(
            "error" if name in case.targets else "warning",
            name,
            f"has {'a few' if few else 'many'} values beyond {lower:g} to {upper:g}",
            evidence=f"{beyond.n} of {rest.n} values: {case.cells(name, beyond.values)}",
            edits=as_missing(beyond.values, [name]) if few else (),
        )


@rule(
    harm="With bounds of another scale, scores count as censored that are not, or the reverse.",
    fix="`[targets.NAME] lower` and `upper` of the scale",
)
def find_scale(case: Case) -> Iterator[Finding]:
    """A target named like a known scale with other bounds, or a column that does not fit it."""
    declared = {target.values: target.name for target in case.study.targets}
    for name, found in case.uncoded.items():
        versions = columns.versions_of(name)
        if not versions or not len(found):
            continue
        lower, upper = case.bounds[name]
        if name in declared and np.isfinite([lower, upper]).all():
            low, high = found.at(0.01), found.at(0.99)
            scale = columns.known_scale(name, low, high)
            if scale and (lower, upper) not in [(each.lower, each.upper) for each in versions]:
                target = ("targets", declared[name])
                message = f"is named like {scale.title}; the study says {lower:g} to {upper:g}"
                edits = Edit(target, "lower", scale.lower), Edit(target, "upper", scale.upper)
                evidence = f"nearly all values are from {low:g} to {high:g}"
                yield warn(declared[name], message, edits, evidence)
        low, high = found.at(0.02), found.at(0.98)
        if not any(each.lower <= low and high <= each.upper for each in versions):
            message = f"is named like {versions[-1].title}, and has many values beyond"
            yield warn(name, message, evidence=f"most values are from {low:g} to {high:g}")


@rule(
    harm="A single typing error can turn a slope, and the prediction for that person is worthless.",
    fix="`[columns.NAME] missing`, if the cells cannot be corrected",
)
def find_outlier(case: Case) -> Iterator[Finding]:
    """A few values far from all others of their column, such as an age of 720."""
    for name, found in case.uncoded.items():
        rest = found.where(~found.beyond(*case.bounds[name]))
        far = numbers.outliers_of(rest)
        if not len(far) or len(numbers.years_of(found)):
            continue
        if numbers.two_units(name, case.numbers[name]):
            continue
        others = rest.without(far)
        low, high = others.values[[0, -1]]
        guess = numbers.guess_unit(name, float(far[-1]), others.at(0.01), others.at(0.99))
        evidence = f"{case.cells(name, far)}; all others are from {low:g} to {high:g}"
        evidence += f": {guess}?" if guess else ""
        yield warn(name, "has a few values far from all others", as_missing(far, [name]), evidence)


@rule(
    harm="The column says two different things, and its slope is that of neither.",
    fix="`[columns.NAME] divide` by the factor, with `above` or `below`; `missing` for years",
)
def find_units(case: Case) -> Iterator[Finding]:
    """A column in two clusters that are a known factor apart, or ages and years of birth."""
    for name, rest in case.uncoded.items():
        years = numbers.years_of(rest)
        if len(years):
            message = "holds calendar years among far smaller numbers: years of birth, and ages?"
            yield warn(name, message, as_missing(years, [name]), case.cells(name, years))
        elif two := numbers.two_units(name, rest):
            unit, limit, few_above = two
            side, factor = ("above", unit.factor) if few_above else ("below", 1.0 / unit.factor)
            few = rest.where((rest.values > limit) == few_above)
            message = f"is in two clusters, a factor of {unit.factor:g} apart: {unit.larger} and "
            evidence = f"{few.n} of {rest.n} values are {side} {limit:g}, such as "
            place = ("columns", name)
            edits = Edit(place, "divide", factor), Edit(place, side, limit)
            evidence += case.cells(name, few.values[:1])
            yield warn(name, f"{message}{unit.smaller}?", edits, evidence)


@rule(
    harm="Scores at the end of the scale are treated as exact, which flattens all slopes.",
    fix="`[targets.NAME] lower` or `upper`",
)
def find_bound(case: Case) -> Iterator[Finding]:
    """Many values at the minimum or maximum of a target, and no bound there."""
    targets = case.built.targets
    observed = np.where(targets.observed, targets.low, np.nan)
    for task, target in enumerate(case.study.targets):
        found = numbers.Distinct.of(observed[:, task])
        scale = len(found) and columns.known_scale(target.values, found.values[0], found.values[-1])
        ends = columns.find_floor_and_ceiling(observed[:, task])
        for side, flag, at_bound, extreme in (
            ("lower", target.below, targets.at_lower, "smallest"),
            ("upper", target.above, targets.at_upper, "largest"),
        ):
            bound = getattr(target, side)
            if at_bound[:, task].any() or isinstance(bound, str) or flag is not None:
                continue
            if scale and bound is None:
                end = getattr(scale, side)
                said = f"no {side} bound, but {scale.name} ({scale.source}) has one: {end:g}"
            elif side in ends:
                end, share = ends[side]
                said = f"{share:.0%} of the values are {end:g}, its {extreme}, and {side} is "
                said += "not set" if bound is None else f"{bound:g}"
            else:
                continue
            end = int(end) if float(end).is_integer() else float(end)
            yield warn(target.name, said, (Edit(("targets", target.name), side, end),))
