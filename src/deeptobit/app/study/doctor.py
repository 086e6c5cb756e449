"""Problems of a study and its table that can be seen before the model is fitted."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import eigvalsh, qr
from sklearn.preprocessing import StandardScaler

from deeptobit.app.study import columns
from deeptobit.app.study.config import Study, TargetSettings, toml_cell, toml_value
from deeptobit.app.study.data import EncodedColumn, Encoder, StudyData, check_enough
from deeptobit.app.study.tables import StudyError, Table, parse_numbers, split_limits
from deeptobit.arrays import FloatArray, listed
from deeptobit.targets import CensoredTargets


class Finding(NamedTuple):
    """A ``warning`` may harm the model, a ``note`` is good to know."""

    level: Literal["warning", "note"]
    about: str
    message: str


_warn, _note = partial(Finding, "warning"), partial(Finding, "note")
_MOSTLY = 0.5
_NEARLY_ALL = 0.95
_FEW_VALUES = 20
_SHOWN = 20  # names in one message; a table may have thousands of columns


def diagnose(study: Study, data: StudyData) -> list[Finding]:
    r"""Problems of a study and its table, targets first.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{max(age - 70, 0)}" for age in range(50, 100)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,loss", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.loss = {}')
    ...     study = read_study(path)
    ...     for finding in diagnose(study, build_data(study, read_data(study))):
    ...         print(*finding)
    warning loss 42% of the values are 0: is lower = 0 missing?
    """
    return [
        *_targets(study, data),
        *_columns(data),
        *_identifiers(study, data),
        *_codes(study, data),
        *find_collinear(data.X, data.encoder),
        *_categories(study, data),
        *_groups(study, data),
        *_rows(study, data),
    ]


def find_in_sample(
    study: Study, X: pd.DataFrame, targets: CensoredTargets, encoder: Encoder
) -> Iterator[Finding]:
    """What a sample of the rows shows: bounds that are not declared, collinear features."""
    observed = np.where(targets.observed, targets.low, np.nan)
    for target, values in zip(study.targets, observed.T, strict=True):
        yield from find_missing_bounds(target, values)
    yield from find_collinear(X, encoder)


def _targets(study: Study, data: StudyData) -> Iterator[Finding]:
    shares = data.targets.describe()
    exact = np.where(data.targets.observed, data.targets.low, np.nan)
    missing = data.targets.missing.mean(axis=0).tolist()
    for target, values, without in zip(study.targets, exact.T, missing, strict=True):
        row = shares.loc[target.name]
        for side in ("lower", "upper"):
            share = row[f"at_{side}"]
            if share >= _NEARLY_ALL:
                yield _warn(target.name, f"{share:.0%} of the values are at its {side} bound")
        known = values[~np.isnan(values)]
        if len(known) < _FEW_VALUES:
            yield _warn(target.name, f"only {len(known)} values lie between its bounds")
        if without >= _MOSTLY:
            yield _warn(target.name, f"{without:.0%} of the values are missing")
        if len(known) > 1 and np.ptp(known) == 0.0:
            yield _warn(target.name, "all values between its bounds are the same; leave it out")
        yield from find_missing_bounds(target, values)


def find_missing_bounds(target: TargetSettings, values: FloatArray) -> Iterator[Finding]:
    """Sides where a target looks censored and the study has no bound, by its observed values."""
    warn, ends = partial(_warn, target.name), columns.find_floor_and_ceiling(values)
    low, high = np.fmin.reduce(values, initial=np.inf), np.fmax.reduce(values, initial=-np.inf)
    scale = columns.known_scale(target.values, low, high)
    for side, flag in (("lower", target.below), ("upper", target.above)):
        if getattr(target, side) is not None or flag is not None:
            continue
        if scale is not None:
            bound = getattr(scale, side)
            yield warn(f"no {side} bound, but {scale.name} has one: {side} = {bound:g}")
        elif side in ends:
            end, share = ends[side]
            yield warn(f"{share:.0%} of the values are {end:g}: is {side} = {end:g} missing?")


def _columns(data: StudyData) -> Iterator[Finding]:
    cells = {column.name: _cells(data, column) for column in data.encoder.columns}
    constant = [name for name, found in cells.items() if columns.is_constant(found)]
    if constant:
        yield _warn("features", f"the same value in every row; exclude {listed(constant, _SHOWN)}")
    sparse = [name for name, found in cells.items() if found.isna().mean() >= _MOSTLY]
    if sparse:
        message = f"at least {_MOSTLY:.0%} of the cells missing in {listed(sparse, _SHOWN)}"
        yield _warn("features", message)


def _cells(data: StudyData, column: EncodedColumn) -> "pd.Series[Any]":
    """Numbers, or categories as text."""
    table, name = data.table, column.name
    return pd.Series(table.parse(name)[0]) if column.reference is None else table.text(name)


def _categories(study: Study, data: StudyData) -> Iterator[Finding]:
    declared = columns.matching_columns(study, "categorical", data.table)
    for column in data.encoder.columns:
        if column.reference is None:
            continue
        form = None if column.name in declared else columns.number_format(data.table, column.name)
        if form:
            yield _warn(column.name, f"read as categories, but holds {form}")
        counts = data.table.text(column.name).value_counts()
        rare = [str(level) for level, count in counts.items() if count < columns.FEWEST]
        if rare:
            message = f"categories with fewer than {columns.FEWEST} rows: {listed(rare)}"
            yield _note(column.name, message)


def _groups(study: Study, data: StudyData) -> Iterator[Finding]:
    if data.groups is None or study.data.group is None:
        return
    warn = partial(_warn, study.data.group)
    names, counts = np.unique(data.groups.astype(str), return_counts=True)
    folds = max(study.model.cv, study.evaluation.folds)
    if len(names) < 2 * folds:
        yield warn(f"{len(names)} groups for {folds} folds, which never split one: too few")
    if counts.max() > _MOSTLY * len(data.groups):
        # Its label may name a person, and findings are stored with the model.
        yield warn(f"its largest group has {counts.max() / len(data.groups):.0%} of the rows")
    single = int((counts == 1).sum())
    if _NEARLY_ALL * len(names) <= single < len(names):
        yield warn(
            "nearly all groups have one row; if one is an id that was written twice by mistake, "
            f"id = {study.data.group!r} in place of group says where"
        )
    elif single > 0:
        yield _note(study.data.group, f"{single} of {len(names)} groups have one row")


def _rows(study: Study, data: StudyData) -> Iterator[Finding]:
    """What concerns the number of rows, and what ``fit`` will refuse."""
    n_rows, n_features = data.X.shape
    if n_rows <= n_features:
        message = f"{n_features} features for {n_rows} rows: the model relies on its prior"
        yield _note("features", message)
    without = int(data.targets.missing.all(axis=1).sum())
    if without:
        yield _note("rows", f"{without} rows have no outcome and are left out")
    try:
        check_enough(study, data)
    except StudyError as error:
        yield _warn("fit", f"will refuse: {error}")


# Columns that identify rows or people.

_LEAST_ROWS = 20  # fewer consecutive numbers may be chance


def _identifiers(study: Study, data: StudyData) -> Iterator[Finding]:
    """Identifiers among the features, and repeated identifiers that are not declared as group."""
    features = [column.name for column in data.encoder.columns if column.reference is None]
    suspects = {name: why for name in features if (why := _why_identifier(data, name))}
    table = data.table
    named = [name for name in table.columns if name in suspects or columns.names_person(name)]
    people = [name for name in named if not study.data.group and columns.repeats(table.text(name))]
    for name, why in suspects.items():
        if name not in people:
            yield _warn(name, f"looks like an identifier ({why}), and is a feature; exclude it")
    for name in people:
        yield _warn(
            name,
            "looks like an identifier that repeats, so that rows of a person may be both in the "
            f"training and in the held-out rows; group = {name!r} under [data] keeps them together",
        )


def _why_identifier(data: StudyData, name: str) -> str | None:
    values = data.table.parse(name)[0]
    known = values[~np.isnan(values)]
    least = min(columns.MOST_CATEGORIES, len(values) - 1)
    if (known % 1.0 != 0.0).any() or len(np.unique(known)) <= least:
        return None
    text = data.table.text(name)
    if columns.names_person(name):
        return "by its name"
    if columns.is_numbered(text):
        return "by its leading zeros"
    # Values such as 1, 2, 3 or 1001, 1002 count the rows; ages or years do not.
    first, last = values[0], values[-1]
    starts = first in (0, 1) or (first >= 100 and not 1800 <= first < last <= 2100)
    counts = starts and len(values) >= _LEAST_ROWS and (np.diff(values) == 1.0).all()
    return "it counts the rows" if counts else None


# Collinear features.

MOST_FEATURES = 2000  # beyond it the correlations take longer than the model
_SAME = 0.999
_NOTHING_LEFT = 1e-8


def same_pairs(X: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Pairs of features with an absolute correlation of 0.999 or more.

    Examples
    --------
    >>> import pandas as pd
    >>> same_pairs(pd.DataFrame({"kg": [1.0, 2, 4], "g": [1e3, 2e3, 4e3], "age": [3.0, 1, 2]}))
    [('kg', 'g', 1.0)]
    """
    Z = StandardScaler().fit_transform(X)
    correlation = Z.T @ Z / len(Z)
    first, second = np.nonzero(np.triu(np.abs(correlation) >= _SAME, k=1))
    return [
        (str(X.columns[i]), str(X.columns[j]), round(float(correlation[i, j]), 4))
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]


def dependent_features(X: pd.DataFrame) -> list[str]:
    """Features that are exact linear combinations of others; none if there are too few rows.

    Examples
    --------
    >>> import pandas as pd
    >>> total = pd.DataFrame({"left": [1.0, 2, 4, 1], "right": [3.0, 1, 2, 2]})
    >>> dependent_features(total.assign(both=total.left + total.right))
    ['both']
    """
    Z = StandardScaler().fit_transform(X) / np.sqrt(len(X))
    varies = np.flatnonzero(np.linalg.norm(Z, axis=0) > 0.5)  # 1, or 0 for a constant
    Z, names = Z[:, varies], X.columns[varies]
    # The smallest eigenvalue is cheap and settles most cases; pivoted QR then finds the names.
    if not 0 < Z.shape[1] < Z.shape[0] or eigvalsh(Z.T @ Z)[0] > _NOTHING_LEFT:
        return []
    R, order = qr(Z, mode="r", pivoting=True)
    left = np.abs(np.diag(R))
    return sorted(str(names[order[k]]) for k in np.flatnonzero(left <= _NOTHING_LEFT).tolist())


def find_collinear(X: pd.DataFrame, encoder: Encoder) -> Iterator[Finding]:
    """Features that are nearly equal to, or linear combinations of, others."""
    # Columns of one examination are missing together, so that their indicators are equal.
    X = X.drop(columns=encoder.indicators)
    if X.shape[1] > MOST_FEATURES:
        yield _note("features", f"over {MOST_FEATURES}: not checked for collinearity")
        return
    pairs = same_pairs(X)
    for first, second, correlation in pairs[:_SHOWN]:
        yield _warn(second, f"correlation {correlation:g} with {first!r}; exclude one")
    if len(pairs) > _SHOWN:
        yield _warn("features", f"{len(pairs) - _SHOWN} more pairs are as collinear")
    dependent = dependent_features(X.drop(columns=list({second for _, second, _ in pairs})))
    if dependent:
        message = f"linear combinations of other features: {listed(dependent, _SHOWN)}"
        yield _warn("features", message)


# Codes for missing values that are not declared: -4 or 999 in a score, a word among numbers.

_CODES = (-1, -4, -5, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, 99, 777, 888, 999, 9999)
_LONE = tuple(code for code in _CODES if code != -1)  # -1, 0 and 1 are answers
_LEAST_REST = 10  # other values that a column must have
_FAR = 2.0  # ranges of the other values
_FAR_BELOW = 3.0  # steps between them, for the only negative values
_MOST_WORDS = 5  # more different words are remarks, not codes


def find_codes(table: Table) -> list[str]:
    """Cells that seem to mean missing, as they are written.

    A number is a code if it is outside the bounds of a known scale, unless another column has it
    as a value. A word is a code if it occurs among numbers, unless another column has it as a
    category.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = {"MMSE": ["30", "-4", "28", "21"], "age": ["70", "refused", "75", "81"]}
    >>> find_codes(Table(pd.DataFrame(cells), "a.csv", np.arange(2, 6)))
    ['-4', 'refused']
    """
    kinds = {name: columns.kind_of(table, name) for name in table.columns}
    numeric = [name for name, kind in kinds.items() if kind in ("numbers", "mixed")]
    values = {name: table.parse(name)[0] for name in numeric}
    beyond = sorted({code for name in numeric for code in _beyond_scale(name, values[name])})
    codes = [code for code in beyond if all(_stands_apart(code, values[name]) for name in numeric)]
    written = {
        str(cell)
        for name in numeric
        if np.isin(values[name], codes).any()
        for cell in table.text(name)[np.isin(values[name], codes)]
    }
    return [*sorted(written), *sorted(_words(table, kinds))]


def _beyond_scale(name: str, values: FloatArray) -> Iterable[int]:
    """Codes outside the bounds of the known scale that the other values of a column fit."""
    found = [code for code in _CODES if (values == code).any()]
    rest = values[~np.isin(values, found) & ~np.isnan(values)]
    if not found or not rest.size:
        return []
    scale = columns.known_scale(name, rest.min(), rest.max())
    return [code for code in found if scale and not scale.lower <= code <= scale.upper]


def _stands_apart(code: int, values: FloatArray) -> bool:
    """Whether a column lacks a code, or has it away from its values: below 0, or far above all."""
    if not (values == code).any():
        return True
    rest = values[~np.isin(values, _CODES) & ~np.isnan(values)]
    if not rest.size:
        return False
    low, high = float(rest.min()), float(rest.max())
    return low >= 0.0 if code < 0 else code > high + (high - low)


def lone_codes(values: FloatArray) -> list[int]:
    """Codes that repeat in a column far from all its other values.

    Above the others, they are away by at least twice the range of these. Below, they are the only
    negative values, and away by more than three times the usual step.

    Examples
    --------
    >>> lone_codes(np.r_[np.arange(18.0, 45.0), 999, 999]), lone_codes(np.r_[40.0:90.0, -9, -9])
    ([999], [-9])
    >>> lone_codes(np.r_[np.arange(60.0, 99.0), 99, 99]), lone_codes(np.r_[-20.0:20.0, -9, -9])
    ([], [])
    """
    rest = np.unique(values[~np.isin(values, _LONE) & ~np.isnan(values)])
    if np.isin(values, rest).sum() < max(_LEAST_REST, (~np.isnan(values)).sum() / 2):
        return []
    low, high = float(rest[0]), float(rest[-1])
    step = float(np.median(np.diff(rest))) if len(rest) > 1 else 0.0

    def is_far(code: int) -> bool:
        if code < 0:
            return low >= 0.0 and low - code > _FAR_BELOW * step
        return code - high >= _FAR * (high - low)

    return [code for code in _LONE if (values == code).sum() > 1 and is_far(code)]


def _words(table: Table, kinds: dict[str, columns.Kind]) -> set[str]:
    found: set[str] = set()
    for name, kind in kinds.items():
        if kind == "mixed":
            bare = split_limits(table.text(name))[0]
            wrong = parse_numbers(bare, decimal_comma=table.decimal_comma)[1]
            words = set(table.text(name)[wrong])
            found |= words if len(words) <= _MOST_WORDS and all(map(_is_word, words)) else set()
    for name, kind in kinds.items():
        if kind == "categories":
            found -= set(table.text(name))
    return found


def _is_word(cell: str) -> bool:
    """Not a number that is written in an unusual way, such as 1.234,5 or 5% or inf."""
    return cell.startswith("#") or not re.search(r"\d|^[+-]?inf", cell.lower())


def _codes(study: Study, data: StudyData) -> Iterator[Finding]:
    """Codes for missing values that the study reads as numbers."""
    table = data.table
    holding: dict[int, list[str]] = {}
    for column in data.encoder.columns:
        if column.reference is None:
            for code in lone_codes(table.parse(column.name)[0]):
                holding.setdefault(code, []).append(column.name)
    for code, names in holding.items():
        others = [name for name in table.columns if name not in names]
        others = [name for name in others if columns.kind_of(table, name) == "numbers"]
        meant = [name for name in others if not _stands_apart(code, table.parse(name)[0])]
        written = {str(cell) for n in names for cell in table.text(n)[table.parse(n)[0] == code]}
        missing = [*map(toml_value, study.data.missing), *map(toml_cell, sorted(written))]
        advice = f"write missing = [{', '.join(missing)}] under [data]"
        if meant:
            advice = f"leave those cells blank ({listed(meant)} may mean it)"
        said = f"{code} repeats in {listed(names, _SHOWN)}, far from all other values"
        yield _warn("features", f"{said}: if it means missing, {advice}")
