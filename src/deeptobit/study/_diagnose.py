"""What may go wrong with a study, said before the model is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._build import StudyData
from deeptobit.study._columns import categorical_columns
from deeptobit.study._dependence import MOST_FEATURES, dependent_features, same_pairs
from deeptobit.study._encoding import Encoder
from deeptobit.study._errors import StudyError, listed
from deeptobit.study._few import FEWEST
from deeptobit.study._file import Study, TargetSettings
from deeptobit.study._finding import Finding
from deeptobit.study._folds import check_enough
from deeptobit.study._piles import find_piles
from deeptobit.study._scales import known_scale
from deeptobit.study._suspects import codes, identifiers
from deeptobit.study._unusual import UNUSUAL, unusual_form

if TYPE_CHECKING:
    import pandas as pd

_MOSTLY = 0.5
_NEARLY_ALL = 0.95
_FEW_VALUES = 20
_SHOWN = 20  # names in one message; a table may have thousands of columns


def diagnose(study: Study, data: StudyData) -> list[Finding]:
    r"""Everything that looks wrong, targets first.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, read_data, read_study
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
        *identifiers(study, data),
        *codes(study, data),
        *dependence(data.X, data.encoder),
        *_categories(study, data),
        *_groups(study, data),
        *_rows(data),
        *_refused(study, data),
    ]


def _targets(study: Study, data: StudyData) -> Iterator[Finding]:
    shares = data.targets.describe()
    exact = np.where(data.targets.observed, data.targets.low, np.nan)
    for position, target in enumerate(study.targets):
        row = shares.loc[target.name]
        n_exact = int(data.targets.observed[:, position].sum())
        if row["at_lower"] >= _NEARLY_ALL or row["at_upper"] >= _NEARLY_ALL:
            side = "lower" if row["at_lower"] >= _NEARLY_ALL else "upper"
            share = row[f"at_{side}"]
            yield Finding(
                "warning", target.name, f"{share:.0%} of the values are at its {side} bound"
            )
        if n_exact < _FEW_VALUES:
            yield Finding("warning", target.name, f"only {n_exact} values lie between its bounds")
        missing = float(data.targets.missing[:, position].mean())
        if missing >= _MOSTLY:
            yield Finding("warning", target.name, f"{missing:.0%} of the values are missing")
        if n_exact > 1 and np.ptp(exact[~np.isnan(exact[:, position]), position]) == 0.0:
            message = "all values between its bounds are the same; leave it out"
            yield Finding("warning", target.name, message)
        yield from unbounded(target, exact[:, position])


def unbounded(target: TargetSettings, values: FloatArray) -> Iterator[Finding]:
    """A target that looks censored where the study has no bound, by the values between bounds."""
    piles = find_piles(values)
    inner = values[~np.isnan(values)]
    scale = known_scale(target.values, inner.min(initial=np.inf), inner.max(initial=-np.inf))
    for side, pile, share in (
        ("lower", piles.lower, piles.share_lower),
        ("upper", piles.upper, piles.share_upper),
    ):
        flag = target.below if side == "lower" else target.above
        if getattr(target, side) is not None or flag is not None:
            continue
        if scale is not None:
            bound = getattr(scale, side)
            message = f"no {side} bound, but {scale.name} has one: {side} = {bound:g}"
            yield Finding("warning", target.name, message)
        elif pile is not None:
            message = f"{share:.0%} of the values are {pile:g}: is {side} = {pile:g} missing?"
            yield Finding("warning", target.name, message)


def _columns(data: StudyData) -> Iterator[Finding]:
    cells = {column.name: data.table.text(column.name) for column in data.encoder.columns}
    constant = [name for name, text in cells.items() if text.nunique() == 1]
    if constant:
        message = f"the same value in every row; exclude {listed(constant, _SHOWN)}"
        yield Finding("warning", "features", message)
    sparse = [name for name, text in cells.items() if text.isna().mean() >= _MOSTLY]
    if sparse:
        message = f"at least {_MOSTLY:.0%} of the cells missing in {listed(sparse, _SHOWN)}"
        yield Finding("warning", "features", message)


def dependence(X: pd.DataFrame, encoder: Encoder) -> Iterator[Finding]:
    """Features that say the same as others, by their values in some rows."""
    # Columns of one examination are missing together, and their indicators are then the same.
    X = X.drop(columns=encoder.indicators)
    if X.shape[1] > MOST_FEATURES:
        yield Finding("note", "features", f"over {MOST_FEATURES}: not checked for collinearity")
        return
    pairs = same_pairs(X)
    for first, second, correlation in pairs[:_SHOWN]:
        yield Finding("warning", second, f"correlation {correlation:g} with {first!r}; exclude one")
    if len(pairs) > _SHOWN:
        yield Finding("warning", "features", f"{len(pairs) - _SHOWN} more pairs are as collinear")
    dependent = dependent_features(X.drop(columns=list({second for _, second, _ in pairs})))
    if dependent:
        message = f"linear combinations of other features: {listed(dependent, _SHOWN)}"
        yield Finding("warning", "features", message)


def _categories(study: Study, data: StudyData) -> Iterator[Finding]:
    declared = categorical_columns(study, data.table)
    for column in data.encoder.columns:
        if column.reference is None:
            continue
        form = None if column.name in declared else unusual_form(data.table, column.name)
        if form:
            message = f"taken for categories, but holds {UNUSUAL[form]}"
            yield Finding("warning", column.name, message)
        counts = data.table.text(column.name).value_counts()
        rare = [str(level) for level, count in counts.items() if count < FEWEST]
        if rare:
            message = f"categories with fewer than {FEWEST} rows: {listed(rare)}"
            yield Finding("note", column.name, message)


def _groups(study: Study, data: StudyData) -> Iterator[Finding]:
    if data.groups is None or study.data.group is None:
        return
    names, counts = np.unique(data.groups.astype(str), return_counts=True)
    folds = max(study.model.cv, study.evaluation.folds)
    if len(names) < 2 * folds:
        message = f"{len(names)} groups for {folds} folds, which never split one: too few"
        yield Finding("warning", study.data.group, message)
    if counts.max() > _MOSTLY * len(data.groups):
        # Its label may name a person, and findings are stored with the model.
        message = f"its largest group has {counts.max() / len(data.groups):.0%} of the rows"
        yield Finding("warning", study.data.group, message)
    single = int((counts == 1).sum())
    if _NEARLY_ALL * len(names) <= single < len(names):
        message = (
            "nearly all groups have one row; if one is an id that was written twice by mistake, "
            f"id = {study.data.group!r} in place of group says where"
        )
        yield Finding("warning", study.data.group, message)
    elif single > 0:
        yield Finding("note", study.data.group, f"{single} of {len(names)} groups have one row")


def _rows(data: StudyData) -> Iterator[Finding]:
    n_rows, n_features = data.X.shape
    if n_rows <= n_features:
        message = f"{n_features} features for {n_rows} rows: the model relies on its prior"
        yield Finding("note", "features", message)
    without = int(data.targets.missing.all(axis=1).sum())
    if without:
        yield Finding("note", "rows", f"{without} rows have no target and teach nothing")


def _refused(study: Study, data: StudyData) -> Iterator[Finding]:
    """What ``fit`` will not do, said before it is asked to."""
    try:
        check_enough(study, data)
    except StudyError as error:
        yield Finding("warning", "fit", f"will refuse: {error}")
