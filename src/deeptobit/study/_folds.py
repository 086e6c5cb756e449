"""Which rows are predicted by a model that was fitted to the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.study._build import StudyData
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study

FEWEST_ROWS = 10
FEWEST_GROUPS = 3  # one held out, one to choose by, one to learn from


class Fold(NamedTuple):
    """Indices of rows to train on and of rows held out."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def outer_folds(study: Study, data: StudyData) -> list[Fold]:
    """Folds of shuffled rows or of whole groups, each row held out once.

    There are ``[model] cv`` of them, or as many as there are groups.
    """
    n_folds = count_folds(study, data.groups, len(data.X))
    splitter: KFold | GroupKFold = GroupKFold(n_folds)
    if data.groups is None:
        splitter = KFold(n_folds, shuffle=True, random_state=study.model.seed)
    pairs = splitter.split(np.zeros((len(data.X), 1)), groups=data.groups)
    return [Fold(train, test) for train, test in pairs]


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
