"""One split of one data set: what methods learn from, and what they are judged by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.race.problem import Problem
from deeptobit.app.study import (
    EvaluationData,
    Protocol,
    Split,
    draw_splits,
    find_usable,
    inner_folds,
)
from deeptobit.arrays import FloatArray
from deeptobit.targets import find_step

TRAIN_SHARE = 0.6
SEED = 0
MOST_ROWS = 5000  # of either part: the first ones of the random order


class Trial(NamedTuple):
    """A problem and the rows left out, in the units of the problem.

    Attributes
    ----------
    data : str
    split : int
    problem : Problem
    X, Y : arrays of shape (M, D) and (M, T)
        The test rows.
    step : array of shape (T,)
        Distance between neighbouring scores; 0 where an outcome is continuous.
    names : tuple of str
        Of the outcomes.
    """

    data: str
    split: int
    problem: Problem
    X: FloatArray
    Y: FloatArray
    step: FloatArray
    names: tuple[str, ...]


def draw_trials(data: EvaluationData, n_splits: int, seed: int = SEED) -> Iterator[Trial]:
    """Random splits at 60 %, of at most 5000 rows; the first are the same however many there are.

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.app.study import data_of_cohort
    >>> data = data_of_cohort(make_clinical_cohort(100, random_state=0), "simulated")
    >>> [(trial.problem.X.shape, trial.Y.shape) for trial in draw_trials(data, 2)]
    [((60, 138), (40, 30)), ((60, 138), (40, 30))]
    """
    protocol = Protocol(train_shares=(TRAIN_SHARE,), repeats=n_splits, seed=seed)
    for split in draw_splits(len(data.targets), data.groups, protocol):
        train, test = (_some(rows, data.groups) for rows in (split.train, split.test))
        yield _prepare(data, split._replace(train=train, test=test))


def _some(rows: NDArray[np.intp], groups: NDArray[np.generic] | None) -> NDArray[np.intp]:
    """Rows of which there are too many, or of their groups, at random but always the same."""
    if len(rows) <= MOST_ROWS:
        return rows
    labels = (
        np.arange(len(rows)) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    )
    place = np.random.default_rng(SEED).permutation(int(labels.max()) + 1)[labels]
    return np.sort(rows[np.argsort(place, kind="stable")[:MOST_ROWS]])


def _prepare(data: EvaluationData, split: Split) -> Trial:
    """Scale by the training rows, and leave out outcomes that they cannot teach."""
    groups = None if data.groups is None else data.groups[split.train]
    folds = inner_folds(len(split.train), groups, random_state=SEED)
    tasks, _ = find_usable(data.targets, split, folds)
    recorded = data.targets.observed | data.targets.at_lower | data.targets.at_upper
    values = np.where(recorded, data.targets.values, np.nan)[:, tasks]
    lower, upper = data.targets.lower[tasks], data.targets.upper[tasks]
    X = _standardise(data.features(split.train), split.train)
    centre, scale = (f(values[split.train], axis=0) for f in (np.nanmean, np.nanstd))
    Y, lower, upper = ((array - centre) / scale for array in (values, lower, upper))
    problem = Problem(X[split.train], Y[split.train], lower, upper, folds, split.repeat)
    names = tuple(data.targets.names[task] for task in tasks)
    step = np.array(list(map(find_step, problem.Y.T, lower, upper)))
    return Trial(data.name, split.repeat, problem, X[split.test], Y[split.test], step, names)


def _standardise(X: FloatArray, train: NDArray[np.intp]) -> FloatArray:
    centre, scale = X[train].mean(axis=0), X[train].std(axis=0)
    varies = scale > 1e-12 * np.abs(centre)
    return np.where(varies, (X - centre) / np.where(varies, scale, 1.0), 0.0)
