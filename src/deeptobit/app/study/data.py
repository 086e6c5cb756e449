"""From a study and its table to what an estimator takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.study.columns import (
    MOST_CATEGORIES,
    categorical_columns,
    check_columns,
    feature_columns,
    kind_of,
)
from deeptobit.app.study.config import Study
from deeptobit.app.study.encoding import Encoder, learn_encoding
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.outcomes import read_outcomes
from deeptobit.app.study.tables import UNUSUAL, Table, read_table, unusual_form
from deeptobit.auto import Fold, make_folds
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd


USELESS = {
    "dates": "holds dates; turn it into a number such as an age, or exclude it",
    "mixed": "holds numbers and words; list the words in [data] missing, or exclude the feature",
    "text": f"holds free text, an identifier or over {MOST_CATEGORIES} categories; exclude it, or "
    "list it in categorical",
}


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
        Where it all came from.
    """

    X: pd.DataFrame
    targets: CensoredTargets
    groups: NDArray[np.object_] | None
    encoder: Encoder
    table: Table

    @property
    def ids(self) -> list[str]:
        """Who the rows are, as text."""
        return [str(name) for name in self.X.index]

    @property
    def lower(self) -> dict[str, float]:
        """Lower bounds of the scales by target; −inf where open or different by row."""
        return dict(zip(self.targets.names, self.targets.lower.tolist(), strict=True))

    @property
    def upper(self) -> dict[str, float]:
        """Upper bounds of the scales by target; +inf where open or different by row."""
        return dict(zip(self.targets.names, self.targets.upper.tolist(), strict=True))


def read_data(study: Study, path: Path | None = None) -> Table:
    r"""Read the table of a study, or another file in its place.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,MMSE\n70,30\n75,-4\n")
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "a.csv"\nmissing = [-4]\n[targets.MMSE]')
    ...     table = read_data(read_study(path))
    >>> table.columns, table.numbers("MMSE")
    (['age', 'MMSE'], array([30., nan]))
    """
    codes = [str(code) for code in study.data.missing]
    return read_table(path or study.data_path, sheet=study.data.sheet, missing=codes)


def build_data(study: Study, table: Table) -> StudyData:
    r"""Features, targets, ids and groups of a study.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
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
    import pandas as pd

    check_columns(study, table)
    if len(table) < 2:
        raise study.source.error(
            ("data", "file"), f"{table.file} has one row of data; a model needs at least 10"
        )
    kinds = _feature_kinds(study, table)
    encoder = learn_encoding(table, kinds, study.features.missing)
    X = encoder.encode(table)
    X.index = pd.Index(read_ids(study, table), name=study.data.id)
    groups = read_groups(study, table)
    return StudyData(X, read_outcomes(study, table), groups, encoder, table)


def read_ids(study: Study, table: Table) -> list[str]:
    r"""Ids of the rows as text, each once; without an id column, the number of the row.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("who,MMSE\n007,30\n012,21\n")
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "a.csv"\nid = "who"\n[targets.MMSE]')
    ...     study = read_study(path)
    ...     print(read_ids(study, read_data(study)))
    ['007', '012']
    """
    column = study.data.id
    if column is None:
        return [str(row) for row in range(1, len(table) + 1)]
    ids = _labels(study, table, "id", column)
    repeated = ids[ids.duplicated()]
    if len(repeated):
        same = (ids == repeated.iloc[0]).to_numpy()
        raise study.source.error(
            ("data", "id"),
            f"the id {column!r} is not unique: {repeated.iloc[0]!r} is in {table.at(same)}. "
            f"If rows are visits of the same people, write group = {column!r} and no id",
        )
    return [str(name) for name in ids]


def read_groups(study: Study, table: Table) -> NDArray[np.object_] | None:
    """Labels of the groups as text; a row without one is an error."""
    column = study.data.group
    if column is None:
        return None
    return np.asarray(_labels(study, table, "group", column), dtype=object)


def _labels(study: Study, table: Table, key: str, column: str) -> pd.Series[Any]:
    labels = table.text(column)
    blank = labels.isna().to_numpy()
    if blank.any():
        raise study.source.error(
            ("data", key),
            f"the {key} {column!r} is blank in {int(blank.sum())} row(s) ({table.at(blank)})",
        )
    return labels


def _feature_kinds(study: Study, table: Table) -> dict[str, bool]:
    """The features, and whether each is categorical."""
    declared = categorical_columns(study, table)
    kinds = {}
    for name in feature_columns(study, table):
        kind = "categories" if name in declared else kind_of(table, name)
        if kind in USELESS:
            raise _useless(study, table, name, kind)
        kinds[name] = kind == "categories"
    return kinds


def useless(study: Study, name: str, kind: str, example: str) -> StudyError:
    """Why a column cannot be a feature as it is, and what to do."""
    return study.source.error(("features", "include"), f"feature {name!r} {USELESS[kind]}{example}")


def _useless(study: Study, table: Table, name: str, kind: str) -> StudyError:
    form = unusual_form(table, name)
    if form is None or kind == "dates":
        return useless(study, name, kind, _example(table, name))
    return study.source.error(
        ("features", "include"), f"feature {name!r} holds {UNUSUAL[form]}{_example(table, name)}"
    )


def _example(table: Table, name: str) -> str:
    """The first cell that is no number, and where it stands."""
    wrong = table.parse(name)[1]
    found = table.text(name)[wrong]
    return f" ({found.iloc[0]!r}: {table.at(wrong)})" if len(found) else ""


# Which rows are predicted by a model that was fitted to the others.

FEWEST_ROWS = 10
FEWEST_GROUPS = 3  # one held out, one to choose by, one to learn from


def outer_folds(study: Study, data: StudyData) -> list[Fold]:
    """Folds of shuffled rows or of whole groups, each row held out once.

    There are ``[model] cv`` of them, or as many as there are groups.
    """
    n_folds = count_folds(study, data.groups, len(data.X))
    return make_folds(len(data.X), n_folds, data.groups, study.model.seed)


def count_folds(study: Study, groups: NDArray[np.object_] | None, n_rows: int) -> int:
    """Folds for some of the rows: as many as the study asks for, if there are enough groups."""
    return min(study.model.cv, n_rows if groups is None else len(set(groups)))


def check_enough(study: Study, data: StudyData) -> None:
    """Folds within folds need rows, and every target in some of them."""
    if len(data.X) < FEWEST_ROWS:
        raise StudyError(
            f"{data.table.file} has {len(data.X)} rows; a model that is tested on rows it has not "
            f"seen needs at least {FEWEST_ROWS}"
        )
    known = ~data.targets.missing
    check_values(study, known.sum(axis=0))
    for name, rows in zip(data.targets.names, known.T, strict=True):
        if data.groups is not None and len(set(data.groups[rows])) < FEWEST_GROUPS:
            raise study.source.error(
                ("data", "group"),
                f"target {name!r} has values in {len(set(data.groups[rows]))} group(s) of "
                f"{study.data.group!r}, which are never split, and needs at least {FEWEST_GROUPS}",
            )


def check_values(study: Study, known: NDArray[np.int64]) -> None:
    """Every target must have values in some rows, by the number of values of each."""
    for target, n_values in zip(study.targets, known.tolist(), strict=True):
        if n_values < FEWEST_ROWS:
            raise study.source.error(
                ("targets", target.name),
                f"target {target.name!r} has values in {n_values} rows and needs at least "
                f"{FEWEST_ROWS}; leave it out, or add rows",
            )
