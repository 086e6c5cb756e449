"""Numbers that do not belong: codes for missing values, typing errors, two units, other scales."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeptobit.app.study import columns
from deeptobit.app.study.config import Study, TargetSettings
from deeptobit.app.study.doctor.registry import (
    CODES,
    SHOWN,
    Case,
    Distinct,
    Edit,
    Finding,
    rule,
    scale_bounds,
)
from deeptobit.app.study.tables import Table, as_text, parse_numbers, split_limits
from deeptobit.arrays import FloatArray, listed
from deeptobit.targets import CensoredTargets

# Codes for missing values: -4 or 999 in a score.

_LEAST_REST = 5  # other values that a column must have
_FAR = 2.0  # ranges of the other values
_FAR_BELOW = 3.0  # steps between them, for the only negative values
_FEW = 0.005  # share of values that may be typing errors


def _few(n: int) -> int:
    return max(3, int(_FEW * n))


def codes_of(found: Distinct, lower: float = -np.inf, upper: float = np.inf) -> list[float]:
    """Numbers of a column that stand for missing values.

    Beyond the bounds of a scale these are the usual codes, and any number that repeats at least
    three times. Elsewhere they are the usual codes that repeat far from all other values: above
    them by twice their range, or as the only negative ones. A few other values may be far too.

    Examples
    --------
    >>> codes_of(Distinct.of(np.r_[0:31, 31, -4, -4, 99]), 0, 30)
    [-4.0, 99.0]
    >>> codes_of(Distinct.of(np.r_[18:45, 999, 999])), codes_of(Distinct.of(np.r_[40:90, -9, -9]))
    ([999.0], [-9.0])
    >>> codes_of(Distinct.of(np.r_[60:99, 99, 99])), codes_of(Distinct.of(np.r_[-20:20, -9, -9]))
    ([], [])
    """
    usual = np.isin(found.values, CODES)
    beyond = (found.values < lower) | (found.values > upper)
    suspect = beyond & (usual | (found.counts >= 3)) | usual & (found.counts > 1)
    rest = found.where(~usual & ~beyond)
    if not suspect.any() or rest.n < max(_LEAST_REST, found.n / 2):
        return []
    low, high = rest.at(0.01), rest.at(0.99)
    step = float(np.median(np.diff(rest.values))) if len(rest) > 1 else 0.0
    negative = int(rest.counts[rest.values < 0.0].sum())

    def is_code(value: float, is_beyond: bool) -> bool:
        if is_beyond:
            return True
        if abs(value) < 10 and value > -2:  # 9 and -1 are answers more often than codes
            return bool(value == 9 and high <= 3 and rest.values[-1] <= 4 and len(rest) > 1)
        if value > 0.0:
            return value - high >= _FAR * (high - low) and _alone(rest, high, value)
        only = negative <= _few(rest.n) and low >= 0.0 and low - value > _FAR_BELOW * step
        return only or (low - value >= _FAR * (high - low) and _alone(rest, low, value))

    pairs = zip(found.values[suspect].tolist(), beyond[suspect].tolist(), strict=True)
    return [value for value, is_beyond in pairs if is_code(value, is_beyond)]


def _alone(rest: Distinct, end: float, value: float) -> bool:
    """Whether hardly any other value is beyond half of the way from the others to a code."""
    half = 0.5 * (end + value)
    beyond = rest.values > half if value > end else rest.values < half
    return int(rest.counts[beyond].sum()) <= _few(rest.n)


def codes_by_column(case: Case) -> dict[str, list[float]]:
    """Codes of all columns of numbers that have some."""
    found = {name: codes_of(case.distinct(name), *case.bounds(name)) for name in case.numeric}
    return {name: codes for name, codes in found.items() if codes}


def _without_codes(case: Case, name: str) -> Distinct:
    found = case.distinct(name)
    return found.where(~np.isin(found.values, codes_of(found, *case.bounds(name))))


def means(found: Distinct, value: float) -> bool:
    """Whether a column has a number among its values: not below 0 alone, nor far above all."""
    rest = found.where(~np.isin(found.values, CODES))
    if not (found.values == value).any() or not len(rest):
        return bool((found.values == value).any())
    low, high = float(rest.values[0]), float(rest.values[-1])
    return low < 0.0 if value < 0 else value <= high + (high - low)


def missing_edits(code: float | str, names: list[str], meant: list[str]) -> tuple[Edit, ...]:
    """Declare a code in all columns, or where others mean it as a value, in its own."""
    cell: float | str = int(code) if isinstance(code, float) and code.is_integer() else code
    if meant:
        return tuple(Edit(("columns", name), "missing", (cell,)) for name in names)
    return (Edit(("data",), "missing", (cell,)),)


@rule(
    "code",
    harm="Taken as numbers, they pull means, slopes and predictions towards them.",
    fix="`[data] missing`, or `[columns.NAME] missing` where another column has it as a value",
    cells=True,
)
def find_codes(case: Case) -> Iterator[Finding]:
    """A number such as -4, 99 or 999 that repeats far from all other values, or beyond a scale."""
    by_column = codes_by_column(case)
    for code in sorted({code for codes in by_column.values() for code in codes}):
        names = [name for name, codes in by_column.items() if code in codes]
        others = (name for name in case.numeric if name not in names)
        meant = [name for name in others if means(case.distinct(name), code)]
        targets = {target.values for target in case.study.targets}
        yield Finding(
            "error" if targets & set(names) else "warning",
            f"{code:g}",
            f"seems to mean missing in {listed(names, SHOWN)}, where it is far from all values",
            "code",
            "; ".join(f"{name}: {case.cells(name, [code])}" for name in names[:4]),
            missing_edits(code, names, meant),
        )


# Words among numbers.

_MOST_WORDS = 5  # more different words are remarks, not codes


def words_of(table: Table, name: str) -> list[str]:
    """Up to five words among the numbers of a column; none if cells are written as 5% or 1.234,5.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"age": ["70", "refused", "75", "81"]})
    >>> words_of(Table(cells, "a.csv", np.arange(4)), "age")
    ['refused']
    """
    if not table.parse(name)[1].any():
        return []
    bare = split_limits(table.text(name))[0]
    wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)[1]
    words = sorted(set(table.text(name)[wrong]))
    return words if len(words) <= _MOST_WORDS and all(map(_is_word, words)) else []


def _is_word(cell: str) -> bool:
    """Not a number that is written in an unusual way, such as 1.234,5 or 5% or inf."""
    return cell.startswith("#") or not re.search(r"\d|^[+-]?inf", cell.lower())


@rule(
    "word",
    harm="The column cannot be read as numbers.",
    fix="`[data] missing`, or `[columns.NAME] missing` where another column has it as a category",
    cells=True,
)
def find_words(case: Case) -> Iterator[Finding]:
    """A word among the numbers of a column, such as `refused` or `#DIV/0!`."""
    table = case.table
    mixed = {name: words for name in case.numeric if (words := words_of(table, name))}
    others = [name for name in case.features if name not in case.numeric]
    for word in sorted({word for words in mixed.values() for word in words}):
        names = [name for name, words in mixed.items() if word in words]
        meant = [name for name in others if (table.text(name) == word).any()]
        where = (table.text(names[0]) == word).to_numpy()
        message = f"stands among the numbers of {listed(names, SHOWN)}"
        edits = missing_edits(word, names, meant)
        yield Finding("error", word, message, "word", table.at(where), edits)


def codes_of_table(table: Table) -> list[str]:
    """Cells that seem to mean missing in all columns of a table, without a study.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = {"MMSE": ["30", "-4.0", "28", "21", "19", "25"], "n": list("123456")}
    >>> cells["age"] = ["70", "refused", "75", "81", "66", "64"]
    >>> codes_of_table(Table(pd.DataFrame(cells), "a.csv", np.arange(2, 8)))
    ['-4', 'refused']
    """
    kinds = {name: columns.kind_of(table, name) for name in table.columns}
    numeric = [name for name, kind in kinds.items() if kind in ("numbers", "mixed")]
    distinct = {name: Distinct.of(table.parse(name)[0]) for name in numeric}
    sf36 = columns.sf36_together(table.columns)
    found = {n: codes_of(distinct[n], *scale_bounds(n, distinct[n], sf36)) for n in numeric}
    codes = [
        code
        for code in sorted({code for codes in found.values() for code in codes})
        if not any(code not in found[n] and means(distinct[n], code) for n in numeric)
    ]
    words = {word for name in numeric for word in words_of(table, name)}
    for name, kind in kinds.items():
        words -= set(table.text(name)) if kind == "categories" else set()
    return [*map(as_text, codes), *sorted(words)]


# Values beyond the bounds of a target or of a known scale.


@rule(
    "outside",
    harm="A score cannot have them: they are typing errors, or the bound is wrong.",
    fix="`[columns.NAME] missing` for a few; a corrected bound for many",
    cells=True,
)
def find_outside(case: Case) -> Iterator[Finding]:
    """Values beyond the bounds of a target, or of the scale that a column is called like."""
    clipped = {target.values for target in case.study.targets if target.outside == "clip"}
    targets = {target.values for target in case.study.targets}
    for name in case.numeric:
        lower, upper = case.bounds(name)
        rest = _without_codes(case, name)
        beyond = rest.where((rest.values < lower) | (rest.values > upper))
        if not len(beyond) or name in clipped:
            continue
        few = beyond.n <= max(3, 0.02 * rest.n)
        edits = (Edit(("columns", name), "missing", _numbers(beyond.values)),) if few else ()
        yield Finding(
            "error" if name in targets else "warning",
            name,
            f"{'a few' if few else 'many'} values beyond {lower:g} to {upper:g}",
            "outside",
            f"{beyond.n} of {rest.n} values: {case.cells(name, beyond.values)}",
            edits,
        )


def _numbers(values: FloatArray) -> tuple[float, ...]:
    return tuple(int(v) if v.is_integer() else v for v in values.tolist())


@rule(
    "scale",
    harm="Bounds of another scale say that people are at the end who are not, or the reverse.",
    fix="`[targets.NAME] lower` and `upper` of the scale",
    cells=True,
)
def find_scales(case: Case) -> Iterator[Finding]:
    """A target called like a known scale with other bounds, or a column that does not fit it."""
    for target in case.study.targets:
        found = _without_codes(case, target.values)
        ends = {side: getattr(target, side) for side in ("lower", "upper")}
        if not len(found) or not all(isinstance(end, int | float) for end in ends.values()):
            continue
        scale = columns.known_scale(target.values, found.at(0.01), found.at(0.99))
        declared = tuple(ends.values())
        versions = columns.versions_of(target.values)
        if scale is None or declared in [(version.lower, version.upper) for version in versions]:
            continue
        edits = (Edit(("targets", target.name), side, getattr(scale, side)) for side in ends)
        yield Finding(
            "warning",
            target.name,
            f"is called like {scale.name} ({scale.source}), which goes from {scale.lower:g} to "
            f"{scale.upper:g}; the study says {ends['lower']:g} to {ends['upper']:g}",
            "scale",
            f"nearly all values are from {found.at(0.01):g} to {found.at(0.99):g}",
            tuple(edits),
        )
    for name in case.numeric:
        found = _without_codes(case, name)
        versions = columns.versions_of(name)
        if (
            versions
            and len(found)
            and not any(
                version.lower <= found.at(0.02) and found.at(0.98) <= version.upper
                for version in versions
            )
        ):
            scale = versions[-1]
            yield Finding(
                "warning",
                name,
                f"is called like {scale.name} ({scale.source}), which goes from {scale.lower:g} to "
                f"{scale.upper:g}, and has many values beyond",
                "scale",
                f"most values are from {found.at(0.02):g} to {found.at(0.98):g}",
            )


# Single values far from all others.

_LEAST_VALUES, _LEAST_DISTINCT = 20, 6
_APART, _LOG_APART = 3.0, 1.8
_NEARER, _LOG_FARTHER = 1.8, 3.5
_MOST = 0.01  # share of the values


def outliers_of(found: Distinct) -> FloatArray:
    r"""Values far from all others, few of them.

    With median m and the farthest other value r on the same side, v is far if (v − m)/(r − m)
    exceeds 3 as it is, and of positive numbers 1.8 on the logarithmic scale, so that long tails do
    not count; or 1.8 and 3.5, which a decimal point in the wrong place does.

    Examples
    --------
    >>> outliers_of(Distinct.of(np.r_[60.0:90.0, 720.0]))
    array([720.])
    >>> outliers_of(Distinct.of(np.exp(np.random.default_rng(0).normal(size=300)))).size
    0
    """
    if found.n < _LEAST_VALUES or len(found) < _LEAST_DISTINCT:
        return np.zeros(0)
    sides = (_far_end(found, 1.0), -_far_end(found, -1.0)[::-1])
    return np.concatenate(sides[::-1])


def _far_end(found: Distinct, sign: float) -> FloatArray:
    """Far values at the upper end, or with sign -1 at the lower one, with their sign changed."""
    flipped = found if sign > 0 else Distinct(-found.values[::-1], found.counts[::-1])
    values, middle = flipped.values, flipped.at(0.5)
    number = int(np.searchsorted(np.cumsum(flipped.counts[::-1]), max(3, _MOST * found.n), "right"))
    positive = found.values[0] > 0.0
    for k in range(min(number, len(values) - _LEAST_DISTINCT), 0, -1):
        inner, outer = values[-k - 1], values[-k]
        if inner <= middle:
            continue
        apart, log_apart = (outer - middle) / (inner - middle), np.inf
        if positive:
            logs = np.log(np.abs([outer / middle, inner / middle]))
            log_apart = abs(logs[0] / logs[1]) if logs[1] else np.inf
        elif found.values[0] == 0.0 and sign > 0:
            shift = 0.1 * float(np.median(values[values > 0.0]))
            log = np.log(np.array([outer, inner, middle]) + shift)
            log_apart = (log[0] - log[2]) / (log[1] - log[2])
        if (apart > _APART and log_apart > _LOG_APART) or (
            positive and apart > _NEARER and log_apart > _LOG_FARTHER
        ):
            return values[-k:]
    return values[:0]


@rule(
    "outlier",
    harm="A single typing error can turn a slope, and the person's own prediction is of nobody.",
    fix="`[columns.NAME] missing`, if the cells cannot be corrected",
    cells=True,
)
def find_outliers(case: Case) -> Iterator[Finding]:
    """A few values far from all others of their column, such as an age of 720."""
    for name in case.numeric:
        found, (lower, upper) = case.distinct(name), case.bounds(name)
        if two_units(name, found) is not None:
            continue
        wrong = np.isin(found.values, codes_of(found, lower, upper))
        wrong |= (found.values < lower) | (found.values > upper)
        rest = found.where(~wrong)
        far = outliers_of(rest)
        if not len(far):
            continue
        others = rest.where(~np.isin(rest.values, far))
        guess = guess_unit(name, float(far[-1]), others.at(0.01), others.at(0.99))
        yield Finding(
            "warning",
            name,
            "has a few values far from all others",
            "outlier",
            f"{case.cells(name, far)}; all others are from {others.values[0]:g} to "
            f"{others.values[-1]:g}{guess and f': {guess}?'}",
            (Edit(("columns", name), "missing", _numbers(far)),),
        )


# Two units in one column.


class Unit(NamedTuple):
    """A factor between two units, columns that have them by their name, and both in words."""

    factor: float
    names: str
    larger: str
    smaller: str


# Molar masses: glucose 180.16, creatinine 113.12, cholesterol 386.7, triolein 885.7,
# urea nitrogen 28.01, bilirubin 584.7, urate 168.1, calcium 40.08, 25-OH vitamin D 400.6 g/mol.
UNITS = (
    Unit(18.016, "gluc|glukose|sugar|blutzucker|bz", "mg/dl", "mmol/l"),
    Unit(88.4, "crea|krea", "µmol/l", "mg/dl"),
    Unit(38.67, "chol|ldl|hdl", "mg/dl", "mmol/l"),
    Unit(88.57, "trigl|^tg$", "mg/dl", "mmol/l"),
    Unit(2.801, "bun|urea|harnstoff", "mg/dl", "mmol/l"),
    Unit(17.1, "bili", "µmol/l", "mg/dl"),
    Unit(59.48, "urate|uric|harnsaeure", "µmol/l", "mg/dl"),
    Unit(4.008, "calc|kalzium|^ca$", "mg/dl", "mmol/l"),
    Unit(2.496, "vit", "nmol/l", "ng/ml"),
    Unit(1000.0, "vol|hippo|brain|icv|ventric|amygd|cortex|lesion", "mm³", "ml"),
    Unit(2.54, "height|waist|hip|circ|groesse|length|taille", "cm", "inches"),
    Unit(100.0, "height|groesse|length|waist", "cm", "m"),
    Unit(2.20462, "weight|mass|gewicht", "lb", "kg"),
    Unit(12.0, "age|alter|dur|year|educ", "months", "years"),
    Unit(365.25, "age|alter|dur|time", "days", "years"),
    Unit(7.0, "dur|time|week", "days", "weeks"),
    Unit(60.0, "time|dur|minutes|hours", "the smaller unit of time", "the larger"),
    Unit(4.184, "energ|kcal", "kJ", "kcal"),
    Unit(10.0, "", "a tenth of the unit, or a decimal point", "ten times the unit"),
    Unit(100.0, "", "percent or hundredths", "the whole unit"),
    Unit(1000.0, "", "thousandths of the unit", "the unit"),
    Unit(1e6, "", "millionths of the unit", "the unit"),
)


def _units_of(name: str) -> list[Unit]:
    """Units that a column may have, those that its name suggests first."""
    words = columns.words_of(name)
    return sorted(UNITS, key=lambda unit: not (unit.names and re.search(unit.names, words)))


def guess_unit(name: str, value: float, low: float, high: float) -> str:
    """What a value far outside would be in another unit; empty if no unit brings it inside.

    Examples
    --------
    >>> guess_unit("hippocampus", 6800.0, 2.1, 9.8)
    'mm³ instead of ml'
    >>> guess_unit("hippocampus", 40.0, 2.1, 9.8)
    'a tenth of the unit, or a decimal point instead of ten times the unit'
    """
    if value <= 0.0 or low <= 0.0:
        return ""
    for unit in _units_of(name):
        if unit.names and not re.search(unit.names, columns.words_of(name)):
            continue
        if value > high and low <= value / unit.factor <= high:
            return f"{unit.larger} instead of {unit.smaller}"
        if value < low and low <= value * unit.factor <= high:
            return f"{unit.smaller} instead of {unit.larger}"
    return ""


class TwoUnits(NamedTuple):
    """A column in two units: the factor, a limit between them, and whether few are above it."""

    unit: Unit
    limit: float
    few_above: bool


_LEAST_CLUSTER = 3
_GAP = 0.7  # of the spread of the wider cluster, on the logarithmic scale


def two_units(name: str, found: Distinct) -> TwoUnits | None:
    """Two clusters of a column, as far apart as two units are; None if there are not two.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mmol = rng.lognormal(1.7, 0.25, size=200)
    >>> mmol[:30] *= 18.016
    >>> two_units("glucose", Distinct.of(mmol)).unit.factor
    18.016
    >>> two_units("glucose", Distinct.of(mmol[30:])) is None
    True
    """
    if len(found) < 2 * _LEAST_DISTINCT or found.n < _LEAST_VALUES or found.values[0] <= 0.0:
        return None
    logs, before = np.log(found.values), np.cumsum(found.counts)
    least = max(_LEAST_CLUSTER, 0.01 * found.n)
    inside = (before[:-1] >= least) & (found.n - before[:-1] >= least)
    gaps = np.where(inside, np.diff(logs), 0.0)
    at = int(np.argmax(gaps))
    parts = [found.where(logs <= logs[at]), found.where(logs > logs[at])]
    small = min(parts, key=lambda part: part.n)
    if gaps[at] == 0.0 or min(map(len, parts)) < _LEAST_CLUSTER:
        return None
    spreads = [np.log(part.at(0.95) / part.at(0.05)) for part in parts]
    if gaps[at] < _GAP * max(spreads):
        return None
    ratio = np.log(parts[1].at(0.5) / parts[0].at(0.5))
    deviation = max(spreads) / 3.3
    error = 3.0 * 1.25 * deviation * np.sqrt(sum(1.0 / part.n for part in parts)) + 0.03
    for unit in _units_of(name):
        named = unit.names and re.search(unit.names, columns.words_of(name))
        if abs(ratio - np.log(unit.factor)) < error and (named or unit.factor in (10, 100, 1000)):
            limit = float(np.exp(0.5 * (logs[at] + logs[at + 1])))
            return TwoUnits(unit, float(f"{limit:.3g}"), small is parts[1])
    factors = [(abs(ratio - np.log(unit.factor)), unit) for unit in UNITS]
    distance, unit = min(factors, key=lambda pair: pair[0])
    limit = float(f"{np.exp(0.5 * (logs[at] + logs[at + 1])):.3g}")
    return TwoUnits(unit, limit, small is parts[1]) if distance < error else None


@rule(
    "units",
    harm="The column says two different things, and its slope is that of neither.",
    fix="`[columns.NAME] divide` by the factor, with `above` or `below`",
    cells=True,
)
def find_units(case: Case) -> Iterator[Finding]:
    """A column in two clusters that are a known factor apart, such as 1000 or 18 (glucose)."""
    for name in case.numeric:
        rest = _without_codes(case, name)
        two = two_units(name, rest)
        if two is None:
            continue
        factor = two.unit.factor if two.few_above else 1.0 / two.unit.factor
        side = "above" if two.few_above else "below"
        other = rest.values > two.limit if two.few_above else rest.values < two.limit
        table = ("columns", name)
        yield Finding(
            "warning",
            name,
            f"is in two clusters, a factor of {two.unit.factor:g} apart: {two.unit.larger} and "
            f"{two.unit.smaller}?",
            "units",
            f"{rest.where(other).n} of {rest.n} values are {side} {two.limit:g}, such as "
            f"{case.cells(name, rest.values[other][:1])}",
            (Edit(table, "divide", factor), Edit(table, side, two.limit)),
        )


# Ends of a scale that the study does not know of.


@rule(
    "bound",
    harm="People at the end of a scale are taken for exactly there, which flattens all slopes.",
    fix="`[targets.NAME] lower` or `upper`",
)
def find_bounds(case: Case) -> Iterator[Finding]:
    """Many values at the smallest or largest of a target, and no bound there."""
    data = case.built
    yield from bounds_of_targets(case.study, data.targets)


def bounds_of_targets(study: Study, targets: CensoredTargets) -> Iterator[Finding]:
    """The same for targets, by their observed values."""
    observed = np.where(targets.observed, targets.low, np.nan)
    at = {"lower": targets.at_lower, "upper": targets.at_upper}
    for task, target in enumerate(study.targets):
        known = {side for side in at if at[side][:, task].any()}
        yield from _missing_bounds(target, observed[:, task], known)


def _missing_bounds(
    target: TargetSettings, values: FloatArray, known: set[str]
) -> Iterator[Finding]:
    """Ends without a bound; ``known`` are the sides at whose bound there are values."""
    ends = columns.find_floor_and_ceiling(values)
    low, high = np.fmin.reduce(values, initial=np.inf), np.fmax.reduce(values, initial=-np.inf)
    scale = columns.known_scale(target.values, low, high)
    extreme = {"lower": "smallest", "upper": "largest"}
    for side, flag in (("lower", target.below), ("upper", target.above)):
        bound = getattr(target, side)
        if side in known or isinstance(bound, str) or flag is not None:
            continue
        if scale is not None and bound is None:
            end = getattr(scale, side)
            said = f"no {side} bound, but {scale.name} ({scale.source}) has one: {end:g}"
        elif side in ends:
            end, share = ends[side]
            said = f"{share:.0%} of the values are {end:g}, its {extreme[side]}, and {side} is "
            said += "not set" if bound is None else f"{bound:g}"
        else:
            continue
        end = int(end) if float(end).is_integer() else float(end)
        edit = Edit(("targets", target.name), side, end)
        yield Finding("warning", target.name, said, "bound", edits=(edit,))
