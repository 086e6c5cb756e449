"""From a study and its table to what an estimator takes: features, targets and groups."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit.app.study import columns, formats, tables
from deeptobit.app.study.config import Source, Study, TargetSettings
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import BoolArray, FloatArray, listed
from deeptobit.targets import CensoredTargets

# Columns as a matrix of features, encoded in the same way for new tables.

MISSING = " (missing)"
SHOWN = 10  # features in one message


@dataclass(frozen=True)
class EncodedColumn:
    """How one column becomes one or more features.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Categories that get a feature ``name=level`` each; empty for a column of numbers.
    reference : str or None
        The most frequent category, which gets none: all its features are 0.
    means : tuple of float
        Means of the features where the column is known; they replace missing values.
    indicator : bool
        Whether cells were missing, so that a further feature marks them.
    few : tuple of bool
        Whether the mean of a feature would reveal a count below five; reports then leave it out.
    """

    name: str
    levels: tuple[str, ...]
    reference: str | None
    means: tuple[float, ...]
    indicator: bool
    few: tuple[bool, ...]

    @property
    def features(self) -> list[str]:
        """Names of the features, the indicator last."""
        levels = [f"{self.name}={level}" for level in self.levels]
        names = [self.name] if self.reference is None else levels
        return names + [self.name + MISSING] * self.indicator

    @property
    def rare(self) -> dict[str, str]:
        """Features of categories with fewer than five rows, and names that hide the category."""
        pairs = zip(self.levels, self.few, strict=False)
        found = [f"{self.name}={level}" for level, few in pairs if few]
        return {name: f"{self.name}=rare category {k}" for k, name in enumerate(found, start=1)}


@dataclass(frozen=True)
class Encoder:
    """How the columns of a table become features; learned from one table, applied to others.

    Missing values are replaced by the mean of their feature. Where cells were missing in the first
    table, an indicator is added. A category that the first table did not have counts as missing.
    With ``missing="error"`` both are errors.
    """

    columns: tuple[EncodedColumn, ...]
    missing: str

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    @property
    def indicators(self) -> list[str]:
        """Names of the features that mark missing cells."""
        return [column.name + MISSING for column in self.columns if column.indicator]

    @property
    def means(self) -> list[float]:
        """Features of a row of means, without missing cells."""
        return [value for one in self.columns for value in (*one.means, *[0.0] * one.indicator)]

    @property
    def rare(self) -> dict[str, str]:
        """Features of rare categories, and the names under which they are published."""
        return {name: public for column in self.columns for name, public in column.rare.items()}

    def encode(self, table: Table) -> pd.DataFrame:
        """Features of a table, (N, D); columns it has beyond those needed are ignored."""
        return pd.DataFrame(self.matrix(table), columns=pd.Index(self.features), copy=False)

    def matrix(self, table: Table) -> FloatArray:
        """The same without names, column by column in memory."""
        known = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in known]
        if absent:
            meant = {tables.closest(name, known) for name in absent[:SHOWN]} - {None}
            hint = f"; did you mean {listed(sorted(map(str, meant)))}?" if meant else ""
            features = "feature" if len(absent) == 1 else "features"
            raise StudyError(f"{table.file} lacks the {features} {listed(absent, SHOWN)}{hint}")
        rows, end = np.empty((len(self.features), len(table))), 0
        for column in self.columns:
            start, end = end, end + len(column.features)
            self._encode(column, table, rows[start:end])
        return rows.T

    def _encode(self, column: EncodedColumn, table: Table, rows: FloatArray) -> None:
        """Write the features of a column, each a row."""
        if column.reference is None:
            rows[0] = table.numbers(column.name, "feature")
            missing, unseen = np.isnan(rows[0]), list[str]()
        else:
            text = table.text(column.name)
            for row, level in zip(rows, column.levels, strict=False):
                row[:] = text == level
            missing = ~text.isin([*column.levels, column.reference]).to_numpy()
            unseen = sorted(set(text[missing].dropna()))
        if self.missing == "error" and missing.any():
            what = f"feature {column.name!r} is missing or of an unknown category"
            where = f"in {int(missing.sum())} row(s), and the study says missing = 'error'"
            do = "fill the cells, exclude the feature, or write missing = 'impute'"
            raise StudyError(f"{table.at(missing)}: {what} {where}; {do}")
        if unseen:
            what = f"feature {column.name!r} has categories that the model does not know"
            message = f"{table.file}: {what} ({listed(unseen)}); they are treated as missing"
            warnings.warn(message, stacklevel=4)
        if column.indicator:
            rows[-1] = missing
        for row, mean in zip(rows, column.means, strict=False):
            row[missing] = mean


def learn_encoder(study: Study, summaries: Sequence[columns.ColumnSummary], file: str) -> Encoder:
    """The encoder of a table's features, by summaries of its columns.

    A column that cannot be a feature as it is is an error, which says what to do.

    Parameters
    ----------
    study : Study
    summaries : sequence of ColumnSummary
    file : str
        Name of the table, for errors.
    """
    for summary in summaries:
        why = why_useless(summary)
        if why and summary.kind != "empty":
            message = f"feature {summary.name!r} {why}{summary.example}"
            raise study.source.error(("features", "include"), message)
    encoder = Encoder(tuple(_learn(one, file) for one in summaries), study.features.missing)
    twice = [name for name, times in Counter(encoder.features).items() if times > 1]
    if twice:
        message = f"a column has the name of an encoded feature, {listed(twice)}; rename it"
        raise StudyError(f"{file}: {message}")
    return encoder


def _learn(summary: columns.ColumnSummary, file: str) -> EncodedColumn:
    name, counts, n_known = summary.name, summary.levels, summary.n_known
    if n_known == 0:
        raise StudyError(f"{file}: feature {name!r} has no value at all; exclude it")
    has_blanks = n_known < summary.n_rows
    if summary.kind != "categories":
        few = summary.values is not None and columns.is_small(summary.values.values())
        return EncodedColumn(name, (), None, (summary.total / n_known,), has_blanks, (few,))
    if counts is None:
        what = f"feature {name!r} has over {columns.MOST_DECLARED:,} categories"
        most = "more than a table that does not fit in memory may have"
        raise StudyError(f"{file}: {what}, {most}; join the rare ones, or exclude it")
    reference = min(counts, key=lambda level: (-counts[level], level))
    levels = tuple(sorted(counts.keys() - {reference}))
    return EncodedColumn(
        name,
        levels,
        reference,
        means=tuple(counts[level] / n_known for level in levels),
        indicator=has_blanks,
        few=tuple(columns.is_small([counts[level], n_known - counts[level]]) for level in levels),
    )


# The data of a study.


@dataclass(frozen=True, eq=False)
class StudyData:
    """What an estimator takes: ``fit(data.X, data.targets, groups=data.groups)``.

    Attributes
    ----------
    X : DataFrame of shape (N, D)
        Encoded features; the index holds the ids.
    targets : CensoredTargets of shape (N, T)
    groups : array of shape (N,) or None
        Rows with the same label belong together.
    encoder : Encoder
        Turns other tables into the same features.
    table : Table
        The table they were read from.
    time : array of shape (N,) or None
        When the visits were, for a model of repeated visits.
    """

    X: pd.DataFrame
    targets: CensoredTargets
    groups: NDArray[np.object_] | None
    encoder: Encoder
    table: Table
    time: FloatArray | None = None

    def where(self, rows: Any) -> "StudyData":
        """Some of the rows; the table stays whole."""
        groups = None if self.groups is None else self.groups[rows]
        time = None if self.time is None else self.time[rows]
        X, targets = self.X.iloc[rows], self.targets[rows]
        return replace(self, X=X, targets=targets, groups=groups, time=time)

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None if the study has none."""
        return None if self.groups is None else len(set(self.groups))


def read_data(study: Study, path: Path | None = None) -> Table:
    r"""Read the table of a study, or another file in the same way.

    The codes for missing values are those of the study. So is the sheet, unless another file has
    none. The header of another file is detected: it may have no title above it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,MMSE\n70,30\n75,-4\n")
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "a.csv"\nmissing = [-4]\n[targets.MMSE]')
    ...     table = read_data(read_study(path))
    >>> table.columns, table.numbers("MMSE")
    (['age', 'MMSE'], array([30., nan]))
    """
    return open_data(study, path).read()


def open_data(study: Study, path: Path | formats.TableFile | None = None) -> formats.TableFile:
    """The same without reading its rows; what is open already stays as it is."""
    if isinstance(path, formats.TableFile):
        return path
    has_sheets = path is None or path.suffix.lower() in formats.SHEETS
    return formats.TableFile(
        study.data_path if path is None else path,
        sheet=study.data.sheet if has_sheets else None,
        header=study.data.header if path is None else None,
        missing=[str(code) for code in study.data.missing],
        repairs={column.name: column for column in study.columns},
    )


def build_data(study: Study, table: Table) -> StudyData:
    r"""Features, targets, ids and groups of a study.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,sex,MMSE\n70,f,30\n,m,21\n75,f,30\n")
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "a.csv"\n[targets.MMSE]\nlower = 0\nupper = 30')
    ...     study = read_study(path)
    ...     data = build_data(study, read_data(study))
    >>> data.X
        age  age (missing)  sex=m
    1  70.0            0.0    0.0
    2  72.5            1.0    1.0
    3  75.0            0.0    0.0
    >>> data.targets.at_upper.ravel()
    array([ True, False,  True])
    """
    columns.check_columns(study, table)
    if len(table) < 2:
        message = f"{table.file} has one row of data; a model needs at least {FEWEST_ROWS}"
        raise study.source.error(("data", "file"), message)
    declared = columns.matching_columns(study, "categorical", table)
    summaries = [
        columns.summarise_column(table, name, declared=name in declared)
        for name in columns.feature_columns(study, table)
    ]
    encoder = learn_encoder(study, summaries, table.file)
    X = encoder.encode(table)
    X.index = pd.Index(read_ids(study, table), name=study.data.id)
    targets = read_targets(study, table)
    for name, missing in zip(targets.names, targets.missing.T, strict=True):
        if missing.all():
            message = f"target {name!r} has no value at all; leave it out"
            raise study.source.error(("targets", name), message)
    return StudyData(X, targets, read_groups(study, table), encoder, table)


# What a column holds whose cells people, but not we, read as numbers.
WRITTEN = "numbers with %, commas or points; [columns.NAME] remove or decimal_comma reads them"


def why_useless(summary: columns.ColumnSummary) -> str | None:
    """Why a column cannot be a feature as it is, and what to do; None if it can."""
    reasons = {
        "dates": "holds dates; turn it into a number such as an age, or exclude it",
        "mixed": "holds numbers and words; list the words in [data] missing, or exclude it",
        "text": "holds free text, an identifier or over "
        f"{columns.MOST_CATEGORIES} categories; exclude it, or list it in categorical",
        "written": f"holds {WRITTEN}",
        "empty": "has no value at all; exclude it",
    }
    return reasons.get(summary.kind)


def read_ids(study: Study, table: Table) -> list[str]:
    """Ids of the rows as text, each once; without an id column, the number of the row."""
    column = study.data.id
    if column is None:
        return [str(row) for row in range(1, len(table) + 1)]
    ids = _labels(study, table, "id", column)
    repeated = ids[ids.duplicated()]
    if len(repeated):
        same = (ids == repeated.iloc[0]).to_numpy()
        what = f"the id {column!r} is not unique: {repeated.iloc[0]!r} is in {table.at(same)}"
        do = f"If rows are visits of the same people, write group = {column!r} and no id"
        raise study.source.error(("data", "id"), f"{what}. {do}")
    return [str(name) for name in ids]


def read_groups(study: Study, table: Table) -> NDArray[np.object_] | None:
    """Labels of the groups as text; a row without one is an error."""
    group = study.data.group
    return None if group is None else np.asarray(_labels(study, table, "group", group), object)


def _labels(study: Study, table: Table, key: str, column: str) -> "pd.Series[Any]":
    labels = table.text(column)
    blank = labels.isna().to_numpy()
    if blank.any():
        message = f"the {key} {column!r} is blank in {int(blank.sum())} row(s) ({table.at(blank)})"
        raise study.source.error(("data", key), message)
    return labels


# Targets: values, bounds, limits that differ by row, and flags of what is censored.


def read_entries(study: Study, table: Table) -> FloatArray:
    """Values of all targets in the rows of a table, and their lower and upper limits, (3, N, T).

    A value is NaN where missing, the limit where censored; a limit is ∓inf where open.
    """
    found = [_read_target(target, table, study.source) for target in study.targets]
    return np.stack(found, axis=-1)


def read_targets(study: Study, table: Table) -> CensoredTargets:
    """All targets in the rows of a table."""
    return as_targets(study, read_entries(study, table))


def as_targets(study: Study, entries: FloatArray) -> CensoredTargets:
    """Entries as censored targets."""
    names = [target.name for target in study.targets]
    lower, upper = limits_by_row(study, entries)
    return CensoredTargets.from_bounds(
        entries[0], *task_bounds(study), entry_lower=lower, entry_upper=upper, names=names
    )


def limits_by_row(study: Study, entries: FloatArray) -> tuple[FloatArray | None, FloatArray | None]:
    """Limits of every entry, (N, T), if one differs from the bounds of its scale."""
    if (entries[1:] == np.stack(task_bounds(study))[:, None]).all():
        return None, None
    return entries[1], entries[2]


_OPEN = {"lower": -np.inf, "upper": np.inf}


def task_bounds(study: Study) -> tuple[FloatArray, FloatArray]:
    """Bounds of the scales, (T,), ∓inf where open or different by row."""
    bounds = np.array([[_fixed_bound(target, side) for target in study.targets] for side in _OPEN])
    return bounds[0], bounds[1]


def read_limits(study: Study, table: Table) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds for predictions, (N, T), ∓inf where open.

    Where the study names a column of limits, a side is open in rows without one, and in all rows
    of a table that lacks the column.
    """
    limits = [[_limits(target, side, table) for target in study.targets] for side in _OPEN]
    lower, upper = map(np.column_stack, limits)
    lower, upper = np.fmax(lower, -np.inf), np.fmin(upper, np.inf)  # open where blank
    crossed = lower >= upper
    for task in np.flatnonzero(crossed.any(axis=0)).tolist():
        name = study.targets[task].name
        what = f"target {name!r} has a lower limit that is not below the upper one"
        raise StudyError(f"{table.at(crossed[:, task])}: {what}")
    return lower, upper


def _fixed_bound(target: TargetSettings, side: str) -> float:
    bound = getattr(target, side)
    return float(bound) if isinstance(bound, int | float) else _OPEN[side]


def _limits(target: TargetSettings, side: str, table: Table) -> FloatArray:
    """Limits of one side by row, ∓inf where open, NaN where a column of limits is blank."""
    bound = getattr(target, side)
    if isinstance(bound, str) and bound in table.columns:
        return table.numbers(bound, f"the {side} limit of {target.name!r}, column")
    return np.full(len(table), _fixed_bound(target, side))


def _read_target(target: TargetSettings, table: Table, source: Source) -> FloatArray:
    """One target: its values, which may be flagged as censored, and the limits of rows, (3, N)."""

    def refuse(rows: BoolArray, what: str) -> None:
        if rows.any():
            where = f"{int(rows.sum())} row(s) ({table.at(rows)})"
            message = f"target {target.name!r} {what} in {where}"
            raise source.error(("targets", target.name), message)

    values, below, above = _signed_values(target, table, source)
    below = below | _flags(target, target.below, table)
    above = above | _flags(target, target.above, table)
    refuse(below & above, "is flagged both below and above detection")
    known = ~np.isnan(values) | below | above
    lower, upper = (_limits(target, side, table) for side in _OPEN)
    refuse(np.isnan(lower) & known, f"has a value, but no lower limit in {target.lower!r}")
    refuse(np.isnan(upper) & known, f"has a value, but no upper limit in {target.upper!r}")
    lower, upper = np.fmax(lower, -np.inf), np.fmin(upper, np.inf)  # open where blank
    # A flagged cell holds its own limit, or is blank and takes that of the row.
    lower = np.where(below, np.fmax(values, lower), lower)
    upper = np.where(above, np.fmin(values, upper), upper)
    refuse(below & np.isinf(lower), "is flagged below detection, but has no limit")
    refuse(above & np.isinf(upper), "is flagged above detection, but has no limit")
    values = np.where(below, lower, np.where(above, upper, values))
    refuse(known & ~(lower < upper), "has a lower limit that is not below the upper one")
    sides = {"lower": (values < lower, lower), "upper": (values > upper, upper)}
    for side, (outside, bound) in sides.items():
        if target.outside == "error" and outside.any():
            count = int(outside.sum())
            what = f"target {target.name!r} has {count} value(s) beyond its {side} bound"
            first = f"the first is {values[outside][0]:g}, the bound {bound[outside][0]:g}"
            do = "Correct the bound or the cells, list codes for missing values in [data] missing"
            message = f"{what} ({table.at(outside)}; {first}). {do}, or write outside = 'clip'"
            raise source.error(("targets", target.name, side), message)
    return np.stack([np.clip(values, lower, upper), lower, upper])


def _signed_values(
    target: TargetSettings, table: Table, source: Source
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Numbers, and where the cell says ``<`` or ``>``."""
    values, wrong = table.parse(target.values)
    if not wrong.any():
        return values, wrong, wrong
    bare, below, above = tables.split_limits(table.text(target.values))
    values, wrong = tables.parse_numbers(bare, decimal_comma=table.decimal_comma)
    if wrong.any():
        found = table.text(target.values)[wrong].iloc[0]
        what = f"target {target.name!r} must hold numbers (or limits such as <0.5)"
        message = f"{what}; found {found!r} ({table.at(wrong)})"
        raise source.error(("targets", target.name, "column"), message)
    return values, below, above


def _flags(target: TargetSettings, column: str | None, table: Table) -> BoolArray:
    """Rows in which a column flags the value of a target as censored."""
    if column is None:
        return np.zeros(len(table), dtype=np.bool_)
    yes, unclear = tables.parse_flags(table.text(column))
    if unclear.any():
        found = table.text(column)[unclear].iloc[0]
        what = f"column {column!r} flags censored values of {target.name!r} and must say yes or no"
        raise StudyError(f"{table.at(unclear)}: {what} (1 or 0, true or false); found {found!r}")
    return yes


# Whether there are enough rows to fit and to test a model.

FEWEST_ROWS = 10
FEWEST_GROUPS = 3  # one to test on, one to choose by, one to train on


def check_enough(study: Study, data: StudyData) -> None:
    """Refuse data with too few rows, groups or values for folds within folds."""
    if len(data.X) < FEWEST_ROWS:
        why = f"to fit a model and test it on held-out rows, at least {FEWEST_ROWS} are needed"
        raise StudyError(f"{data.table.file} has {len(data.X)} rows; {why}")
    known = ~data.targets.missing
    check_values(study, known.sum(axis=0))
    for name, rows in zip(data.targets.names, known.T, strict=True):
        if data.groups is not None and (few := len(set(data.groups[rows]))) < FEWEST_GROUPS:
            found = f"target {name!r} has values in {few} group(s) of {study.data.group!r}"
            needed = f"which are never split, and needs at least {FEWEST_GROUPS}"
            raise study.source.error(("data", "group"), f"{found}, {needed}")


def check_values(study: Study, n_values: NDArray[np.int64]) -> None:
    """Refuse a target with too few values, by the number of values of each."""
    for target, known in zip(study.targets, n_values.tolist(), strict=True):
        if known < FEWEST_ROWS:
            found = f"target {target.name!r} has values in {known} rows"
            message = f"{found} and needs at least {FEWEST_ROWS}; leave it out, or add rows"
            raise study.source.error(("targets", target.name), message)
