"""Histogram gradient boosting of scikit-learn, one ensemble per task; missing rows are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.race.peers.points import FittedPoints
from benchmarks.race.peers.tasks import Task, tasks_of
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray

_LEAVES = (4, 12)
_MOST_ROUNDS = 100


class _FittedTask(NamedTuple):
    model: Any
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class _EveryTask:
    models: Sequence[Any]

    def predict(self, X: FloatArray, /) -> FloatArray:
        return np.column_stack([model.predict(X) for model in self.models])


def fit_hist_boosting(problem: Problem) -> FittedPoints:
    """Squared error; the size of the trees and their number are chosen for every task."""
    fitted = [_fit_task(task) for task in tasks_of(problem)]
    held_out = np.column_stack([task.held_out for task in fitted])
    return FittedPoints(_EveryTask([task.model for task in fitted]), held_out)


def _fit_task(task: Task) -> _FittedTask:
    held_out = np.full((len(_LEAVES), _MOST_ROUNDS, len(task.y)), np.nan)
    for predicted, leaves in zip(held_out, _LEAVES, strict=True):
        for train, test in task.folds:
            model = _model(task, leaves, _MOST_ROUNDS).fit(task.X[train], task.y[train])
            predicted[:, test] = list(model.staged_predict(task.X[test]))
    errors = np.nansum(np.square(task.y - held_out), axis=-1)
    best, last = np.unravel_index(np.argmin(errors), errors.shape)
    model = _model(task, _LEAVES[best], int(last) + 1)
    return _FittedTask(model.fit(task.X[task.known], task.y[task.known]), held_out[best, last])


def _model(task: Task, leaves: int, n_rounds: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        learning_rate=0.1,
        max_iter=n_rounds,
        max_leaf_nodes=leaves,
        min_samples_leaf=10,
        max_features=0.5,
        max_bins=63,
        early_stopping=False,  # the folds say when
        random_state=task.seed,
    )
