"""Means over the known entries of a task, and over tasks."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import BoolArray, FloatArray

Multioutput: TypeAlias = Literal["uniform_average", "raw_values"] | ArrayLike


def weigh_known(known: BoolArray, weights: FloatArray, names: Sequence[str]) -> FloatArray:
    """Weights of shape (N, T), 0 where an entry is not known; every task must have some.

    Examples
    --------
    >>> weigh_known(np.array([[True], [False]]), np.array([2.0, 2.0]), ["MMSE"])
    array([[2.],
           [0.]])
    """
    entries = np.where(known, weights[:, None], 0.0)
    for task in np.flatnonzero(~entries.any(axis=0)).tolist():
        raise ValueError(
            f"target {names[task]!r} has no known entry (of positive weight) to score; leave it out"
        )
    return entries


def average_rows(losses: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean of each task over the N rows; a loss of weight 0 may be anything, even NaN.

    Examples
    --------
    >>> average_rows(np.array([[1.0], [4.0], [np.nan]]), np.array([[2.0], [1.0], [0.0]]))
    array([2.])
    """
    counted = np.where(weights > 0.0, losses, 0.0)
    return np.asarray((weights * counted).sum(axis=0) / weights.sum(axis=0))


def combine_tasks(
    per_task: FloatArray, multioutput: Multioutput, names: Sequence[str]
) -> float | FloatArray:
    """All T values, their mean, or their weighted mean; NaN is never among them.

    Examples
    --------
    >>> combine_tasks(np.array([1.0, 4.0]), "uniform_average", ["a", "b"])
    2.5
    >>> combine_tasks(np.array([1.0, 4.0]), [2.0, 1.0], ["a", "b"])
    2.0
    """
    for task in np.flatnonzero(np.isnan(per_task)).tolist():
        raise ValueError(
            f"the score of target {names[task]!r} is not a number: outcomes or predictions are too "
            "large to compute with"
        )
    if isinstance(multioutput, str):
        if multioutput == "raw_values":
            return per_task
        if multioutput == "uniform_average":
            return float(per_task.mean())
        raise ValueError(
            "multioutput must be 'uniform_average', 'raw_values' or one weight per target; "
            f"got {multioutput!r}"
        )
    weights = np.asarray(multioutput, dtype=np.float64)
    if weights.shape != per_task.shape:
        raise ValueError(
            f"multioutput must have one weight per target, shape {per_task.shape}; "
            f"got shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise ValueError(
            "the target weights in multioutput must be finite, not negative and not all 0; "
            f"got {weights.tolist()}"
        )
    counted = weights > 0.0
    return float(np.average(per_task[counted], weights=weights[counted]))
