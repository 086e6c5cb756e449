"""Columns as features, targets and groups: no measurement, too good to be true, or of whom."""

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

import numpy as np
import pandas as pd
from scipy.linalg import eigvalsh, qr
from scipy.special import gammaln

from deeptobit.app.study import columns
from deeptobit.app.study.config import NetworkSettings
from deeptobit.app.study.data import WRITTEN, check_enough, why_useless
from deeptobit.app.study.doctor.registry import SHOWN, Case, Edit, Finding, exclude, rule, warn
from deeptobit.app.study.doctor.values import words_among_numbers
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import BoolArray, FloatArray, listed

_MOSTLY = 0.5
_NEARLY_ALL = 0.95
_MANY_BLANK = 0.1
_FEW_VALUES = 20
_DIGITS = 2  # by which the pairs of people are fewer than the pairs of rows that there could be


@rule(
    harm="The column cannot be a feature.",
    fix="`[columns.NAME] remove` or `decimal_comma`, or `[features] exclude`",
)
def find_useless(case: Case) -> Iterator[Finding]:
    """A feature of dates, free text, numbers that cannot be read, or without any value."""
    for name in case.features if isinstance(case.data, StudyError) else ():
        summary = columns.summarise_column(case.table, name, declared=name in case.categorical)
        why = why_useless(summary)
        if why and not words_among_numbers(case.table, name):
            edits = _read_by(case.table, name) or exclude([name])
            yield Finding("error", name, why, evidence=summary.example.strip(" ()"), edits=edits)


def _read_by(table: Table, name: str) -> tuple[Edit, ...]:
    """What reads a column as numbers."""
    repair = columns.number_repair(table, name)
    return tuple(Edit(("columns", name), key, value) for key, value in repair.items())


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
                yield warn(target.name, f"{share:.0%} of the values are at its {side} bound")
        if between < _FEW_VALUES:
            yield warn(target.name, f"only {between} values lie between its bounds")
        if without >= _MOSTLY:
            yield warn(target.name, f"{without:.0%} of the values are missing")


@rule(
    harm="It carries no information; as a target it cannot be predicted.",
    fix="`[features] exclude`; a target is left out by hand",
)
def find_constant(case: Case) -> Iterator[Finding]:
    """The same value in every row of a feature or target."""
    targets = case.built.targets
    for task, target in enumerate(case.study.targets):
        between = targets.low[targets.observed[:, task], task]
        if np.ptp(targets.values[~targets.missing[:, task], task]) == 0.0:
            yield warn(target.name, "is a target with the same value in every row; leave it out")
        elif len(between) > 1 and np.ptp(between) == 0.0:
            yield warn(target.name, "all values between its bounds are the same; leave it out")
    same = [
        column.name
        for column in case.built.encoder.columns
        if (len(case.numbers[column.name]) == 1 if column.reference is None else not column.levels)
    ]
    yield from _leave_out("the same value in every row of", same)


@rule(harm="Most rows get a mean in place of a value.", fix="`[features] exclude`")
def find_sparse(case: Case) -> Iterator[Finding]:
    """A feature with at least half of its cells missing."""
    names, least = (column.name for column in case.built.encoder.columns), len(case.table) * _MOSTLY
    sparse = [name for name in names if case.table.n_blank(name) >= least]
    yield from _leave_out(f"at least {_MOSTLY:.0%} of the cells missing in", sparse)


def _leave_out(what: str, names: list[str]) -> Iterator[Finding]:
    """One finding for all features of which the same is true."""
    if names:
        yield warn("features", f"{what} {listed(names, SHOWN)}", exclude(names))


@rule(
    harm="One group of people is counted as several, or a measurement as a word.",
    fix="`[columns.NAME] ignore_case = true`; other cells are corrected in the table",
)
def find_category(case: Case) -> Iterator[Finding]:
    """Categories written in several ways, rare ones, and numbers among them."""
    for column in case.built.encoder.columns:
        if column.reference is None:
            continue
        name = column.name
        counts = Counter[str](case.table.text(name).dropna())
        levels, shown = sorted(counts), listed(sorted(counts), SHOWN)
        if name not in case.categorical and columns.summarise_column(case.table, name).written:
            message = f"read as categories, but holds {WRITTEN}"
            yield warn(name, message, _read_by(case.table, name))
        elif name not in case.table.labels and {*map(_is_digits, levels)} == {True, False}:
            yield warn(name, f"categories are partly numbers and partly words: {shown}")
        folded = Counter(map(str.casefold, levels))
        twice = [level for level in levels if folded[level.casefold()] > 1]
        if twice:
            message = f"categories that differ in case alone: {listed(twice, SHOWN)}"
            yield warn(name, message, (Edit(("columns", name), "ignore_case", True),))
        if any(level[:1] in folded for level in folded if len(level) > _SHORT):
            yield warn(name, f"an abbreviation beside what it stands for? {shown}")
        rare = [level for level, count in counts.items() if count < columns.FEWEST]
        usual = [level for level in levels if level not in rare]
        wrong = [one for one in rare if one.isalpha() and len(one) >= _LONG and one not in twice]
        wrong = [one for one in wrong if get_close_matches(one, usual, cutoff=_ALIKE)]
        if wrong:
            message = f"rare categories that are spelled nearly like another: {listed(wrong)}"
            yield warn(name, message)
        elif rare and not twice:
            message = f"categories with fewer than {columns.FEWEST} rows: {listed(rare)}"
            yield Finding("note", name, message)


def _is_digits(level: str) -> bool | None:
    """Whether a category is a number, or False for a word; None for others, such as 1-2."""
    return level.isdigit() if level.isalnum() else None


_SHORT, _LONG, _ALIKE = 2, 5, 0.8  # letters, and the share of them that is the same
_LEAST_ROWS = 20  # fewer consecutive numbers may be chance


@rule(
    harm="A number that names people is memorised, and says nothing about new people.",
    fix="`[features] exclude`",
)
def find_identifier(case: Case) -> Iterator[Finding]:
    """An identifier among the features: by its name, by leading zeros, or by numbering rows."""
    for name, why in identifiers(case).items():
        if case.study.data.group or not columns.repeats(case.table.text(name)):
            yield warn(name, f"looks like an identifier ({why}), and is a feature", exclude([name]))


def identifiers(case: Case) -> dict[str, str]:
    """Features that look like identifiers, and why."""
    encoded = [column.name for column in case.built.encoder.columns if column.reference is None]
    return {name: why for name in encoded if (why := _why_identifier(case, name))}


def _why_identifier(case: Case, name: str) -> str | None:
    values, found = case.values(name), case.numbers[name]
    least = min(columns.MOST_CATEGORIES, len(values) - 1)
    if len(found) <= least or (found.values != np.rint(found.values)).any():
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
    return "it numbers the rows" if counts else None


@rule(
    harm="Larger ranks are cut to that number, so the study asks for models that cannot be fitted.",
    fix="`[model] ranks` that fit",
)
def find_rank(case: Case) -> Iterator[Finding]:
    """Ranks larger than the number of targets or features."""
    settings = case.study.model
    most = min(len(case.study.targets), case.built.X.shape[1])
    if isinstance(settings, NetworkSettings) and settings.ranks and max(settings.ranks) > most:
        message = f"go up to {max(settings.ranks)}, but targets and features allow {most} at most"
        yield warn("ranks", message)


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
        yield warn("duplicates", message, evidence=case.table.at(twice))
    try:
        check_enough(case.study, data)
    except StudyError as error:
        yield warn("fit", f"will refuse: {error}")


def _same_rows(case: Case) -> BoolArray:
    """Rows that repeat an earlier one; not those of so few cells that people may be equal."""
    X, targets = case.built.X, case.built.targets
    digits = np.zeros(len(X))
    for name, found in case.numbers.items():  # the chance that two people are equal
        digits -= np.log10(np.square(found.counts / found.n).sum()) * ~np.isnan(case.values(name))
    parts = X, pd.DataFrame(targets.values)
    # Hashes are of 64 bits, and no two are equal by chance.
    hashes = [pd.util.hash_pandas_object(part, index=False).to_numpy() for part in parts]
    same = pd.DataFrame(np.column_stack(hashes)).duplicated().to_numpy()
    return np.asarray(same & (digits >= 2.0 * np.log10(len(X)) + _DIGITS))


# Features that tell the outcome, and features that tell each other.

_MOST_ROWS = 5000  # that correlations are computed from
_NEAR = 0.98  # correlation, or held-out R²
_FEWEST = 10  # rows


def pair_correlations(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Correlations of columns of X (N, D) and Y (N, T) where both are known, (D, T); 0 if unknown.

    Examples
    --------
    >>> x = np.r_[0.0:20.0]
    >>> pair_correlations(x[:, None], np.where(x > 17, np.nan, -x)[:, None])
    array([[-1.]])
    """
    (A, known_A), (B, known_B) = ((_standardised(Z), ~np.isnan(Z) * 1.0) for Z in (X, Y))
    known = known_A.T @ known_B
    n = np.maximum(known, 1.0)
    mean_A, mean_B = A.T @ known_B / n, known_A.T @ B / n
    variance_A = np.square(A).T @ known_B / n - mean_A**2
    variances = variance_A * (known_A.T @ np.square(B) / n - mean_B**2)
    usable = (known >= _FEWEST) & (variances > 1e-12)
    covariance = A.T @ B / n - mean_A * mean_B
    return np.where(usable, covariance / np.sqrt(np.where(usable, variances, 1.0)), 0.0)


def _standardised(Z: FloatArray) -> FloatArray:
    """Columns of mean 0 and standard deviation 1; 0 where unknown, and where they are constant."""
    n = np.maximum((~np.isnan(Z)).sum(axis=0), 1)
    mean = np.nansum(Z, axis=0) / n
    centred = np.nan_to_num(Z - mean)
    spread = np.sqrt(np.square(centred).sum(axis=0) / n)
    return np.asarray(centred / np.where(spread > 1e-12 * np.abs(mean), spread, np.inf))


@rule(
    harm="The model looks perfect, and fails on people whose outcome is not known yet.",
    fix="`[features] exclude`",
)
def find_leak(case: Case) -> Iterator[Finding]:
    """A copy, near copy or binned version of a target among the features, or items of its sum."""
    data = case.built
    rows = slice(None, None, -(-len(data.X) // _MOST_ROWS))
    encoded = (column.name for column in data.encoder.columns if column.reference is None)
    X = pd.DataFrame({name: case.values(name)[rows] for name in encoded}, dtype=np.float64)
    Y = pd.DataFrame(data.targets.values[rows])
    both = [(X, Y), (X.rank(), Y.rank())] if X.shape[1] else []
    pairs = [np.abs(pair_correlations(x.to_numpy(), y.to_numpy())) for x, y in both]
    copies = set()
    for name, found in zip(X.columns, np.maximum.reduce(pairs) if pairs else (), strict=True):
        share, target = found.max(), data.targets.names[int(found.argmax())]
        if share > _NEAR:
            what = "a copy" if share > 0.9999 else "nearly a copy"
            message = f"is {what} of the target {target!r} (correlation {share:.3f})"
            copies.add(name)
            yield Finding("error", name, message, edits=exclude([name]))
    for name, target in _classes(case, copies, rows):
        message = f"divides the target {target!r} into ranges: was it made from it?"
        copies.add(name)
        yield Finding("error", name, message, edits=exclude([name]))
    yield from _sums(case, copies, rows)


_MOST_CLASSES = 10
_BY_CHANCE = 1e-9


def _classes(case: Case, copies: set[str], rows: slice) -> Iterator[tuple[str, str]]:
    """Features of a few values, of each of which a target has a range of its own."""
    for column in case.built.encoder.columns:
        numbers = case.numbers.get(column.name)
        few = len(column.levels) if column.reference is not None else len(numbers or ()) - 1
        if column.name in copies or not 0 < few < _MOST_CLASSES:
            continue
        labels = case.table.text(column.name)[rows].to_numpy()
        for target, y in zip(case.study.targets, case.built.targets.values[rows].T, strict=True):
            ends = pd.Series(y).groupby(labels).agg(["min", "max", "count"]).sort_values("min")
            ends = ends[ends["count"] > 0]
            apart = (ends["max"].to_numpy()[:-1] < ends["min"].to_numpy()[1:]).all()
            chance = gammaln(ends["count"] + 1).sum() - gammaln(ends["count"].sum() + 1)
            if apart and chance + gammaln(len(ends) + 1) < np.log(_BY_CHANCE):
                yield column.name, target.name
                break


_MOST_FEATURES = 1000
_FOLDS = 3
_SUGGESTIVE = 0.8
_SHARE = 0.1  # of the largest coefficient


def _sums(case: Case, copies: set[str], rows: slice) -> Iterator[Finding]:
    """Targets that a linear model of the features predicts nearly without error."""
    data = case.built
    kept = [column for column in data.encoder.columns if column.name not in copies]
    owner = {feature: column.name for column in kept for feature in column.features}
    if not 0 < len(owner) <= _MOST_FEATURES:
        return
    columns = np.array(list(owner.values()), dtype=object)
    X = _standardised(data.X[list(owner)].to_numpy(dtype=np.float64)[rows])
    Y = data.targets.values[rows]
    patterns, member = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for number, known in enumerate(patterns.T):  # targets of the same rows share products
        tasks = np.flatnonzero(member == number)
        first = _held_out(X[known], Y[np.ix_(known, tasks)])
        for task, share, slopes in zip(tasks.tolist(), *first, strict=True):
            at, names = np.arange(len(columns)), list[str]()
            for _ in range(2):  # those that count, twice, where none of their cells is blank
                if share < _SUGGESTIVE:
                    break
                at = at[np.abs(slopes) > _SHARE * np.abs(slopes).max()]
                names = list(dict.fromkeys(columns[at]))
                cells = (case.values(name)[rows] for name in names)
                complete = [~np.isnan(found) for found in cells if not np.isnan(found).all()]
                used = np.logical_and.reduce([known, *complete])
                if used.sum() < 2 * _FEWEST:
                    break
                (share,), (slopes,) = _held_out(X[np.ix_(used, at)], Y[used, task : task + 1])
            if share > _NEAR:
                target = case.study.targets[task].name
                how = f"nearly without error (held-out R² {share:.3f} of a straight line)"
                message = f"features predict the target {target!r} {how}: {listed(names, SHOWN)}"
                about = names[0] if len(names) == 1 else target
                evidence = "is it their sum or mean?" if len(names) > 1 else ""
                yield Finding("error", about, message, evidence=evidence, edits=exclude(names))


def _held_out(X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Held-out R² of least squares with a slight ridge, (T,), and slopes of all rows, (T, D).

    R² is 0 where rows are too few, or all values the same.
    """
    shares, slopes = np.zeros(Y.shape[1]), np.zeros((Y.shape[1], X.shape[1]))
    if len(Y) < 2 * _FEWEST:
        return shares, slopes
    Y = Y - Y.mean(axis=0)
    folds = [np.arange(len(Y)) % _FOLDS == k for k in range(_FOLDS)]
    grams = [X[fold].T @ X[fold] for fold in folds]
    products = [X[fold].T @ Y[fold] for fold in folds]
    gram = np.sum(grams, axis=0) + 1e-6 * len(Y) * np.eye(X.shape[1])
    product = np.sum(products, axis=0)
    for fold, own_gram, own_product in zip(folds, grams, products, strict=True):
        errors = Y[fold] - X[fold] @ np.linalg.solve(gram - own_gram, product - own_product)
        shares += np.square(errors).sum(axis=0)
    varies, total = np.ptp(Y, axis=0) > 0.0, np.square(Y).sum(axis=0)
    shares = np.where(varies, 1.0 - shares / np.where(varies, total, 1.0), 0.0)
    return shares, np.linalg.solve(gram, product).T


# Collinear features.

MOST_FEATURES = 2000  # beyond it the correlations take longer than the model
_SAME = 0.999
_NOTHING_LEFT = 1e-8


def dependences(X: pd.DataFrame) -> tuple[list[tuple[str, str, float]], list[str]]:
    """Pairs of features that are nearly the same, and linear combinations among the others.

    Pairs have an absolute correlation of 0.999 or more. With fewer rows than features no
    combination is looked for.
    """
    names, Z = list(map(str, X.columns)), _standardised(X.to_numpy(dtype=np.float64))
    correlation = Z.T @ Z / len(Z)
    places = np.argwhere(np.triu(np.abs(correlation) >= _SAME, k=1))
    pairs = [(names[i], names[j], round(float(correlation[i, j]), 4)) for i, j in places]
    left = np.setdiff1d(np.flatnonzero(np.diagonal(correlation) > 0.5), places[:, 1])
    # The smallest eigenvalue is cheap and settles most cases; pivoted QR then finds the names.
    if not 0 < len(left) < len(X) or eigvalsh(correlation[np.ix_(left, left)])[0] > _NOTHING_LEFT:
        return pairs, []
    R, order = qr(Z[:, left] / np.sqrt(len(Z)), mode="r", pivoting=True)
    dependent = left[order[np.abs(np.diag(R)) <= _NOTHING_LEFT]]
    return pairs, sorted(names[place] for place in dependent)


@rule(
    harm="Coefficients of the two are arbitrary, though predictions are not.",
    fix="`[features] exclude` one of them",
)
def find_collinear(case: Case) -> Iterator[Finding]:
    """A feature that is nearly equal to another, or a linear combination of others."""
    X, encoder = case.built.X, case.built.encoder
    # Columns of one examination are missing together, so that their indicators are equal.
    X = X.drop(columns=encoder.indicators).iloc[:: -(-len(X) // _MOST_ROWS)]
    if X.shape[1] > MOST_FEATURES:
        yield Finding("note", "features", f"over {MOST_FEATURES}: not checked for collinearity")
        return
    pairs, dependent = dependences(X)
    whole = {column.name for column in encoder.columns}  # a category is no column
    for *pair, value in pairs[:SHOWN]:
        first, second = sorted(pair, key=lambda name: name != case.study.data.time)  # time stays
        edits = exclude([second]) if second in whole else ()
        yield warn(second, f"correlation {value:g} with {first!r}; exclude one", edits)
    if len(pairs) > SHOWN:
        yield warn("features", f"{len(pairs) - SHOWN} more pairs are as collinear")
    if dependent:
        yield warn("features", f"linear combinations of other features: {listed(dependent, SHOWN)}")


# Who the rows are: people with several rows, sites, visits, and rows that were left out.


@rule(
    harm="Rows of a person are both in training and in held-out rows, which flatters the model.",
    fix="`[data] group`",
)
def find_people(case: Case) -> Iterator[Finding]:
    """A person or a site with several rows that is not named as group."""
    data = case.study.data
    suspects = {} if data.group or isinstance(case.data, StudyError) else identifiers(case)
    for name in case.table.columns:
        is_named = columns.names_person(name)
        if not (is_named or name in suspects) or name in (data.id, data.group):
            continue
        text = case.table.text(name)
        if is_named and _MANY_BLANK <= text.isna().mean() < 1.0:
            message = "names people, and is blank in many rows: are they of the person above?"
            yield warn(name, message, evidence=case.table.at(text.isna().to_numpy()))
        elif not data.group and columns.repeats(text):
            message = "looks like an identifier that repeats, so that rows of a person may be both "
            message += "in the training and in the held-out rows"
            evidence = f"{text.duplicated().sum()} rows are of a person with an earlier row"
            yield warn(name, message, (Edit(("data",), "group", name),), evidence)


@rule(
    harm="An id names one row; a person with several rows is a group.",
    fix="`[data] group` in place of `id`, if rows are visits",
)
def find_id(case: Case) -> Iterator[Finding]:
    """An id that is the same in several rows."""
    name = case.study.data.id
    if name is None:
        return
    text = case.table.text(name)
    twice = (text.notna() & text.duplicated(keep=False)).to_numpy()
    if twice.any():
        edits: tuple[Edit, ...] = ()
        if columns.repeats(text) and not case.study.data.group:
            edits = (Edit(("data",), "id", None), Edit(("data",), "group", name))
        message = "is the id and not unique; if rows are visits of the same people, it is the group"
        yield Finding("error", name, message, evidence=case.table.at(twice), edits=edits)


@rule(
    harm="Sites differ, and people of a new site are predicted as if they were of a known one.",
    fix="`[data] group`: the model is measured on sites it has not seen; or leave it a feature",
)
def find_site(case: Case) -> Iterator[Finding]:
    """A column of sites, clinics or families among the features."""
    for name in filter(columns.names_place, case.features):
        text = case.table.text(name)
        if text.nunique() > 1 and not case.study.data.group:
            edits = (Edit(("data",), "group", name),) if columns.repeats(text) else ()
            message = "holds sites: as a feature it says nothing of people from a new one"
            yield Finding("note", name, message, edits=edits)


@rule(
    harm="What is known of a person's earlier visits is not used for the later ones.",
    fix='`[model] kind = "mixed"`, where it is known',
)
def find_time(case: Case) -> Iterator[Finding]:
    """People with several rows and a column of visits or time."""
    table, group = case.table, case.study.data.group
    named = [name for name in table.columns if columns.names_person(name)]
    people = [name for name in named if name == group or columns.repeats(table.text(name))]
    for name in table.columns if people else ():
        if columns.names_time(name) and table.text(name).nunique() > 1:
            edits = (Edit(("model",), "kind", "mixed"),) if case.study.model.kind == "auto" else ()
            message = f"is the visit or time of people with several rows ({people[0]!r})"
            yield Finding("note", name, message, edits=edits)


@rule(
    harm="Folds never split a group, so that too few or too large ones make them unequal.",
    fix="another column as `[data] group`",
)
def find_group(case: Case) -> Iterator[Finding]:
    """Groups that are too few for the folds, too large, or nearly all of one row."""
    study, groups, name = case.study, case.built.groups, case.study.data.group
    if groups is None or name is None:
        return
    labels, counts = np.unique(groups.astype(str), return_counts=True)
    folds = max(study.model.cv, study.evaluation.folds)
    if len(labels) < 2 * folds:
        yield warn(name, f"{len(labels)} groups for {folds} folds, which never split one: too few")
    if counts.max() > _MOSTLY * len(groups):
        # Its label may name a person, and findings are stored with the model.
        yield warn(name, f"its largest group has {counts.max() / len(groups):.0%} of the rows")
    single = int((counts == 1).sum())
    if _NEARLY_ALL * len(labels) <= single < len(labels):
        message = (
            "nearly all groups have one row; if one is an id that was written twice by mistake, "
            f"id = {name!r} in place of group says where"
        )
        twice = listed(labels[counts > 1].tolist(), SHOWN)
        yield warn(name, message, evidence=f"more than one row: {twice}")
    elif single > 0:
        yield Finding("note", name, f"{single} of {len(labels)} groups have one row")


@rule(harm="None, if it was guessed right.", fix="`[data] header` or `sheet`, if it was not")
def find_read(case: Case) -> Iterator[Finding]:
    """What was left out or guessed: title lines, rows of units and of means, the encoding."""
    for remark in case.table.remarks:
        edits = () if remark.setting is None else (Edit(("data",), *remark.setting),)
        yield Finding("note", remark.about, remark.message, edits=edits)
