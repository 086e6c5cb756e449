"""What the numbers of one column say of it: codes for missing values, typing errors, two units."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from deeptobit.app.study import columns
from deeptobit.arrays import BoolArray, FloatArray


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

    def where(self, kept: BoolArray) -> "Distinct":
        """Some of the values."""
        return Distinct(self.values[kept], self.counts[kept])

    def without(self, values: ArrayLike) -> "Distinct":
        """All but some of the values."""
        return self.where(~np.isin(self.values, values))

    def beyond(self, lower: float, upper: float) -> BoolArray:
        """Which values lie outside of an interval."""
        return (self.values < lower) | (self.values > upper)


# Codes for missing values: -4 or 999 in a score.

# Numbers that people write for missing values.
_POSITIVE = [9, 66, 77, 88, 96, 97, 98, 99, 666, 777, 888, 996, 997, 998, 999, 99.9, 999.9, 99.99]
_POSITIVE += [6666, 7777, 8888, 9996, 9997, 9998, 9999, 9999.9, 99999, 999999]
_NEGATIVE = [-1, -4, -5, -7, -8, -9, -77, -88, -99, -99.9, -777, -888, -999, -999.9, -9999, -99999]
CODES = np.array([*_POSITIVE, *_NEGATIVE])  # without -2 and -3, so that a change shows itself
_LEAST_REST = 5  # other values that a column must have
_FAR = 2.0  # ranges of the other values
_FAR_BELOW = 3.0  # steps between them, for the only negative values
_FEW = 0.005  # share of values that may be typing errors
_SCORE = 10  # different values of a score; with fewer, -1 may be an answer
_ZERO = 0.25  # of the median: where nothing is below it, 0 is no measurement
_MOST_ZEROS = 0.3
_GRID = 5  # between the other values, where a code is none of them


def scale_bounds(name: str, found: Distinct, sf36: frozenset[str]) -> tuple[float, float]:
    """Bounds of the known scale of a column, or ∓inf; codes and a few values do not hide it."""
    rest = found.without(CODES)
    scale = columns.known_scale(name, rest.at(0.1), rest.at(0.9), sf36=sf36) if len(rest) else None
    return (-np.inf, np.inf) if scale is None else (scale.lower, scale.upper)


def codes_of(found: Distinct, lower: float = -np.inf, upper: float = np.inf) -> list[float]:
    """Numbers of a column that stand for missing values.

    Beyond the bounds of a scale these are the usual codes, and one or two other numbers that repeat
    at least three times; more are of another scale. Elsewhere they are the usual codes that repeat
    far from all other values: above them by twice their range, as the only negative ones, or among
    values that are all multiples of 5 or more; and a 0 far below positive values. A few other
    values may be far too.

    Examples
    --------
    >>> codes_of(Distinct.of(np.r_[0:31, 31, -4, -4, 99]), 0, 30)
    [-4.0, 99.0]
    >>> codes_of(Distinct.of(np.r_[18:45, 999, 999])), codes_of(Distinct.of(np.r_[40:90, -9, -9]))
    ([999.0], [-9.0])
    >>> codes_of(Distinct.of(np.r_[60:99, 99, 99])), codes_of(Distinct.of(np.r_[-20:20, -9, -9]))
    ([], [])
    >>> codes_of(Distinct.of(np.r_[0:99:5, 3 * [99]])), codes_of(Distinct.of(np.r_[30:90, 3 * [0]]))
    ([99.0], [0.0])
    """
    usual, beyond = np.isin(found.values, CODES), found.beyond(lower, upper)
    repeats = found.counts >= 3
    for side in (found.values < lower, found.values > upper):  # several are another scale
        repeats &= ~side | ((side & ~usual).sum() <= 2)
    zero = (found.values == 0.0) & repeats & (found.counts <= _MOST_ZEROS * found.n)
    zero &= lower == -np.inf
    suspect = beyond & (usual | repeats) | usual & (found.counts > 1) | zero
    rest = found.where(~usual & ~beyond & ~zero)
    if not suspect.any() or rest.n < max(_LEAST_REST, found.n / 2):
        return []
    low, high, few = rest.at(0.01), rest.at(0.99), max(3, int(_FEW * rest.n))
    step = float(np.median(np.diff(rest.values))) if len(rest) > 1 else 0.0
    is_score, n_negative = len(rest) >= _SCORE, rest.counts[rest.values < 0.0].sum()
    grid = np.gcd.reduce(rest.values.astype(np.int64)) if (rest.values % 1.0 == 0.0).all() else 1

    def is_code(value: float) -> bool:
        if not lower <= value <= upper:
            return True
        if value == 0.0:
            return is_score and rest.values[0] > max(_ZERO * rest.at(0.5), _FAR_BELOW * step)
        if grid >= _GRID and value % grid > 0.0 and value in found.values[repeats]:
            return True
        if -2 < value < 10 and not (value == -1 and is_score):  # answers more often than codes
            return bool(value == 9 and high <= 3 and rest.values[-1] <= 4 and len(rest) > 1)
        away = value - high if value > 0.0 else low - value
        half = value - 0.5 * np.sign(value) * away  # of the way from the others
        beside = rest.values > half if value > 0.0 else rest.values < half
        if away >= _FAR * (high - low) and rest.counts[beside].sum() <= few:
            return True
        return bool(value < 0.0 <= low and n_negative <= few and away > _FAR_BELOW * step)

    return [value for value in found.values[suspect].tolist() if is_code(value)]


def is_plausible(found: Distinct, value: float) -> bool:
    """Whether a column has a number among its values: not below 0 alone, nor far above all."""
    rest = found.without(CODES).values
    if value not in found.values or not len(rest):
        return value in found.values
    return bool(rest[0] < 0.0 if value < 0 else value <= 2.0 * rest[-1] - rest[0])


# Single values far from all others.

_LEAST_VALUES, _LEAST_DISTINCT = 20, 6
_APART, _LOG_APART = 3.0, 1.8
_NEARER, _LOG_FARTHER, _HIDDEN = 1.8, 3.5, 1.4
_MOST = 0.01  # share of the values


def outliers_of(found: Distinct) -> FloatArray:
    r"""Values far from all others, few of them.

    With median m and the farthest other value r on the same side, v is far if (v − m)/(r − m)
    exceeds 3 as it is, and of positive numbers 1.8 on the logarithmic scale, so that long tails do
    not count; or 1.8 and 3.5, which a decimal point in the wrong place does. So is a value of 0 or
    less where all others are well above 0.

    Examples
    --------
    >>> outliers_of(Distinct.of(np.r_[60.0:90.0, 720.0]))
    array([720.])
    >>> outliers_of(Distinct.of(np.exp(np.random.default_rng(0).normal(size=300)))).size
    0
    """
    if found.n < _LEAST_VALUES or len(found) < _LEAST_DISTINCT:
        return np.zeros(0)
    return np.concatenate([_far_end(found, is_upper=False), _far_end(found, is_upper=True)])


def _far_end(found: Distinct, *, is_upper: bool) -> FloatArray:
    """Far values at one end."""
    step = -1 if is_upper else 1
    values, counts, middle = found.values[::step], found.counts[::step], found.at(0.5)
    number = int(np.searchsorted(np.cumsum(counts), max(3, _MOST * found.n), "right"))
    is_positive, shift = bool(found.values[0] > 0.0), 0.0
    if found.values[0] == 0.0 and is_upper:  # zeros have no logarithm
        shift = 0.1 * float(np.median(found.values[1:]))
    most = min(number, len(values) - _LEAST_DISTINCT)

    def ratios(outer: float, inner: float) -> tuple[float, float]:
        if (inner - middle) * -step <= 0.0:
            return 0.0, 0.0
        if not (is_positive or shift):
            return (outer - middle) / (inner - middle), np.inf
        logs = np.log(np.array([outer, inner, middle]) + shift)
        return (outer - middle) / (inner - middle), (logs[0] - logs[2]) / (logs[1] - logs[2])

    for k in range(most, 0, -1):
        outer, next_one = float(values[k - 1]), float(values[k])
        is_far = not is_upper and outer <= 0.0 < next_one
        is_far = is_far and next_one > max(_ZERO * middle, _FAR_BELOW * np.median(np.diff(values)))
        apart, log_apart = ratios(outer, next_one)
        is_far |= apart > _APART and log_apart > _LOG_APART
        is_far |= is_positive and apart > _NEARER and log_apart > _LOG_FARTHER
        # The next value may be far too: then all are compared with the last that may be.
        is_far |= is_positive and apart > _HIDDEN and min(ratios(outer, values[most])) > _APART
        if is_far:
            return np.sort(values[:k])
    return values[:0]


# Two units in one column.


class Unit(NamedTuple):
    """A factor between two units, columns that have them by their name, and both in words."""

    factor: float
    names: str
    larger: str
    smaller: str

    def rank(self, column: str) -> int:
        """0 if the name of a column suggests it, 1 if it may be of any column, 2 otherwise."""
        if not self.names:
            return 1
        return 0 if re.search(self.names, columns.plain_name(column)) else 2


_UNITS = pd.read_csv(Path(__file__).with_name("units.csv"), usecols=list(Unit._fields))
UNITS = tuple(map(Unit._make, _UNITS.fillna("").itertuples(index=False)))


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
    for unit in sorted(UNITS, key=lambda unit: unit.rank(name)):
        inside = value / unit.factor if value > high else value * unit.factor
        if unit.rank(name) < 2 and low <= inside <= high and not low <= value <= high:
            words = (unit.larger, unit.smaller)
            return " instead of ".join(words if value > high else words[::-1])
    return ""


_YEARS, _OLDEST = (1880, 2100), 130
_LEAST_CLUSTER = 3
_GAP = 0.7  # of the spread of the wider cluster, on the logarithmic scale
_SEPARATE = 4.0  # standard deviations between clusters that touch, in a unit of such a name
# Of clusters that touch, or have another name than the unit.
_LEAST_FEW, _MOST_FEW, _CLOSE = 10, 0.05, 0.1


def years_of(found: Distinct) -> FloatArray:
    """Calendar years among numbers that are all far below, as years of birth among ages.

    Examples
    --------
    >>> years_of(Distinct.of(np.r_[20:90, 1950:1954])), years_of(Distinct.of(np.r_[1900:1990]))
    (array([1950., 1951., 1952., 1953.]), array([], dtype=float64))
    """
    is_year = found.values == np.clip(np.rint(found.values), *_YEARS)
    ages = found.where(~is_year)
    among = len(ages) >= _LEAST_DISTINCT and ages.n >= found.n / 2 and ages.values[-1] <= _OLDEST
    several = found.n - ages.n > max(_LEAST_CLUSTER, _MOST * found.n)  # fewer are typing errors
    return np.asarray(found.values[is_year & among & several])


def two_units(name: str, found: Distinct) -> tuple[Unit, float, bool] | None:
    """Two clusters of a column, as far apart as two units are; None if there are not two.

    Returns
    -------
    unit : Unit
    limit : float
        Between the clusters.
    few_above : bool
        Whether the smaller cluster is that above the limit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mmol = rng.lognormal(1.7, 0.25, size=200)
    >>> mmol[:30] *= 18.016
    >>> two_units("glucose", Distinct.of(mmol))[0].factor
    18.016
    >>> two_units("glucose", Distinct.of(mmol[30:])) is None
    True
    """
    if len(found) < 2 * _LEAST_DISTINCT or found.n < _LEAST_VALUES or found.values[0] <= 0.0:
        return None
    logs, before = np.log(found.values), np.cumsum(found.counts)[:-1]
    least = max(_LEAST_CLUSTER, 0.01 * found.n)
    enough, sums = (before >= least) & (found.n - before >= least), np.cumsum(found.counts * logs)
    # The two means of clusters explain most of the variance.
    means = sums[:-1] / before, (sums[-1] - sums[:-1]) / (found.n - before)
    explained = (means[1] - means[0]) ** 2 * before * (found.n - before) / found.n**2
    at = int(np.argmax(np.where(enough, explained, -1.0)))
    below, above = found.where(logs <= logs[at]), found.where(logs > logs[at])
    if not enough[at] or min(len(below), len(above)) < _LEAST_CLUSTER:
        return None
    spreads = [np.log(part.at(0.95) / part.at(0.05)) for part in (below, above)]
    ratio, spread = np.log(above.at(0.5) / below.at(0.5)), max(spreads)
    error = 3.0 * 1.25 * spread / 3.3 * np.sqrt(1.0 / below.n + 1.0 / above.n) + 0.03
    few = min(below.n, above.n) < max(_LEAST_FEW, _MOST_FEW * found.n)
    most = [error, error, -1.0 if few else _CLOSE]  # by the rank of the unit
    if logs[at + 1] - logs[at] < _GAP * spread:  # they touch
        rest = (found.counts @ (logs - sums[-1] / found.n) ** 2) / found.n - explained[at]
        apart = (means[1] - means[0])[at] >= _SEPARATE * np.sqrt(rest)
        if not apart or few or min(spreads) < 0.5 * spread or spread > ratio:
            return None
        most = [_CLOSE, -1.0, -1.0]
    ranked = [
        (unit.rank(name), distance, unit)
        for unit in UNITS
        if (distance := abs(ratio - np.log(unit.factor))) < most[unit.rank(name)]
    ]
    limit = float(f"{np.exp(0.5 * (logs[at] + logs[at + 1])):.3g}")
    return (min(ranked)[2], limit, above.n < below.n) if ranked else None
