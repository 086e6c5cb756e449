"""Columns as features and targets: empty, constant, misspelt, or no measurement at all."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from deeptobit.app.study import columns
from deeptobit.app.study.config import NetworkSettings
from deeptobit.app.study.data import check_enough, why_useless
from deeptobit.app.study.doctor.registry import SHOWN, Case, Edit, Finding, exclude, rule
from deeptobit.app.study.doctor.values import words_of
from deeptobit.app.study.tables import StudyError
from deeptobit.arrays import BoolArray, listed

_MOSTLY = 0.5
_NEARLY_ALL = 0.95
_FEW_VALUES = 20
_DIGITS = 10  # of the number of different rows that there could be; with fewer, people are equal


@rule(
    harm="The column cannot be a feature.",
    fix="`[features] exclude`",
)
def find_useless(case: Case) -> Iterator[Finding]:
    """A feature of dates, free text, numbers that cannot be read, or without any value."""
    for name in case.features:
        summary = columns.summarise_column(case.table, name, declared=name in case.categorical)
        why = why_useless(summary, columns.number_format(case.table, name))
        if why and not words_of(case.table, name):
            evidence = summary.example.strip(" ()")
            yield Finding("error", name, why, evidence=evidence, edits=exclude([name]))


@rule(
    harm="There is little to learn from, and its measures say little.",
    fix="leave the target out, or correct its bounds",
)
def find_target(case: Case) -> Iterator[Finding]:
    """A target that is nearly always at a bound, mostly missing, or has few values between."""
    targets = case.built.targets
    shares, known = targets.describe(), targets.observed.sum(axis=0).tolist()
    missing = targets.missing.mean(axis=0).tolist()
    for target, between, without in zip(case.study.targets, known, missing, strict=True):
        for side in ("lower", "upper"):
            share = shares[f"at_{side}"][target.name]
            if share >= _NEARLY_ALL:
                message = f"{share:.0%} of the values are at its {side} bound"
                yield Finding("warning", target.name, message)
        if between < _FEW_VALUES:
            message = f"only {between} values lie between its bounds"
            yield Finding("warning", target.name, message)
        if without >= _MOSTLY:
            yield Finding("warning", target.name, f"{without:.0%} of the values are missing")


@rule(
    harm="It tells nothing; as a target it cannot be predicted.",
    fix="`[features] exclude`; a target is left out by hand",
)
def find_constant(case: Case) -> Iterator[Finding]:
    """The same value in every row of a feature or target."""
    targets = case.built.targets
    for task, target in enumerate(case.study.targets):
        values = targets.values[~targets.missing[:, task], task]
        between = targets.low[targets.observed[:, task], task]
        if np.ptp(values) == 0.0:
            message = "is a target with the same value in every row; leave it out"
            yield Finding("warning", target.name, message)
        elif len(between) > 1 and np.ptp(between) == 0.0:
            message = "all values between its bounds are the same; leave it out"
            yield Finding("warning", target.name, message)
    same = [
        column.name
        for column in case.built.encoder.columns
        if (len(case.numbers[column.name]) == 1 if column.reference is None else not column.levels)
    ]
    if same:
        message = f"the same value in every row of {listed(same, SHOWN)}"
        yield Finding("warning", "features", message, edits=exclude(same))


@rule(
    harm="Most rows get a mean in place of a value.",
    fix="`[features] exclude`",
)
def find_sparse(case: Case) -> Iterator[Finding]:
    """A feature with at least half of its cells missing."""
    names, least = (column.name for column in case.built.encoder.columns), len(case.table) * _MOSTLY
    sparse = [name for name in names if case.table.n_blank(name) >= least]
    if sparse:
        message = f"at least {_MOSTLY:.0%} of the cells missing in {listed(sparse, SHOWN)}"
        yield Finding("warning", "features", message, edits=exclude(sparse))


@rule(
    harm="One group of people is counted as several, or a measurement as a word.",
    fix="`[columns.NAME] ignore_case = true`; other cells are corrected in the table",
)
def find_category(case: Case) -> Iterator[Finding]:
    """Categories that differ in upper and lower case alone, rare ones, and numbers among them."""
    for column in case.built.encoder.columns:
        if column.reference is None:
            continue
        name, counts = column.name, case.table.text(column.name).value_counts()
        form = None if name in case.categorical else columns.number_format(case.table, name)
        if form:
            yield Finding("warning", name, f"read as categories, but holds {form}")
        folded = Counter(str(level).casefold() for level in counts.index)
        twice = [str(level) for level in counts.index if folded[str(level).casefold()] > 1]
        rare = [str(level) for level, count in counts.items() if count < columns.FEWEST]
        if twice:
            message = f"categories that differ in case alone: {listed(sorted(twice), SHOWN)}"
            edits = (Edit(("columns", name), "ignore_case", True),)
            yield Finding("warning", name, message, edits=edits)
        elif rare:
            message = f"categories with fewer than {columns.FEWEST} rows: {listed(rare)}"
            yield Finding("note", name, message)


_LEAST_ROWS = 20  # fewer consecutive numbers may be chance


@rule(
    harm="A number that names people is learned by heart, and says nothing of new ones.",
    fix="`[features] exclude`",
)
def find_identifier(case: Case) -> Iterator[Finding]:
    """An identifier among the features: by its name, by leading zeros, or since it counts rows."""
    for name, why in identifiers(case).items():
        if case.study.data.group or not columns.repeats(case.table.text(name)):
            message = f"looks like an identifier ({why}), and is a feature"
            yield Finding("warning", name, message, edits=exclude([name]))


def identifiers(case: Case) -> dict[str, str]:
    """Features that look like identifiers, and why."""
    encoded = [column.name for column in case.built.encoder.columns if column.reference is None]
    return {name: why for name in encoded if (why := _why_identifier(case, name))}


def _why_identifier(case: Case, name: str) -> str | None:
    values, found = case.values(name), case.numbers[name]
    least = min(columns.MOST_CATEGORIES, len(values) - 1)
    if len(found) <= least or (found.values % 1.0 != 0.0).any():
        return None
    if columns.names_person(name):
        return "by its name"
    start = str(case.table.cells[name].iloc[0]).strip()  # text of a whole column takes time
    if start.isdigit() and len(start) > 2 and columns.is_numbered(case.table.text(name)):
        return "by its leading zeros"
    # Values such as 1, 2, 3 or 1001, 1002 count the rows; ages or years do not.
    first, last = values[0], values[-1]
    starts = first in (0, 1) or (first >= 100 and not 1800 <= first < last <= 2100)
    counts = starts and len(values) >= _LEAST_ROWS and (np.diff(values) == 1.0).all()
    return "it counts the rows" if counts else None


@rule(
    harm="A rank above the number of targets is that number; the study promises what it cannot.",
    fix="`[model] ranks` that fit",
)
def find_rank(case: Case) -> Iterator[Finding]:
    """Ranks larger than the number of targets or features."""
    settings = case.study.model
    most = min(len(case.study.targets), case.built.X.shape[1])
    if isinstance(settings, NetworkSettings) and settings.ranks and max(settings.ranks) > most:
        yield Finding("warning", "ranks", f"ranks up to {max(settings.ranks)} for at most {most}")


@rule(
    harm="Fewer people than it seems, or too few to choose and to test a model.",
    fix="more rows; duplicates are taken out of the table",
)
def find_rows(case: Case) -> Iterator[Finding]:
    """Rows that are the same in every cell, rows without outcome, and what `fit` will refuse."""
    data = case.built
    n_rows, n_features = data.X.shape
    if n_rows <= n_features:
        message = f"{n_features} features for {n_rows} rows: the model relies on its prior"
        yield Finding("note", "features", message)
    without = int(data.targets.missing.all(axis=1).sum())
    if without:
        yield Finding("note", "outcomes", f"{without} rows have no outcome and are left out")
    twice = _same_rows(case)
    if twice.any():
        message = f"{twice.sum()} rows repeat an earlier one in every cell"
        yield Finding("warning", "duplicates", message, evidence=case.table.at(twice))
    try:
        check_enough(case.study, data)
    except StudyError as error:
        yield Finding("warning", "fit", f"will refuse: {error}")


def _same_rows(case: Case) -> BoolArray:
    """Rows that repeat an earlier one; none where cells are so few that people may be equal."""
    X, targets = case.built.X, case.built.targets
    if sum(np.log10(max(len(found), 1)) for found in case.numbers.values()) < _DIGITS:
        return np.zeros(len(X), dtype=np.bool_)
    cells = pd.DataFrame(np.column_stack([X.to_numpy(dtype=np.float64), targets.values]))
    hashes = pd.util.hash_pandas_object(cells, index=False)  # of 64 bits, and no two by chance
    return np.asarray(hashes.duplicated())
