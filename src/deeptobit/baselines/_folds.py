"""Folds of the training rows, by which every method is tuned."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.arrays import BoolArray

Rows: TypeAlias = NDArray[np.intp]
Folds: TypeAlias = list[tuple[Rows, Rows]]


def inner_folds(
    n_rows: int, groups: ArrayLike | None = None, cv: int = 5, random_state: Any = None
) -> Folds:
    """Pairs of rows to train on and rows held out: shuffled, or whole groups.

    There are at most ``cv`` folds, and no more than there are rows or groups.

    Examples
    --------
    >>> [test.tolist() for _, test in inner_folds(4, ["a", "b", "a", "b"])]
    [[1, 3], [0, 2]]
    """
    rows = np.zeros((n_rows, 1))
    if groups is None:
        return list(KFold(min(cv, n_rows), shuffle=True, random_state=random_state).split(rows))
    labels = np.asarray(groups)
    return list(GroupKFold(min(cv, len(np.unique(labels)))).split(rows, None, labels))


def among(folds: Iterable[tuple[Rows, Rows]], known: BoolArray) -> Folds:
    """The same folds of the known rows alone, which are counted anew.

    A fold that holds out fewer than two of them has no R² and is left out.
    """
    place = np.cumsum(known) - 1
    inside = [(place[train[known[train]]], place[test[known[test]]]) for train, test in folds]
    return [(train, test) for train, test in inside if len(test) > 1]
