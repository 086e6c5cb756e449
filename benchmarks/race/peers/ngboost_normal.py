"""NGBoost with a normal distribution of every task; missing rows are dropped.

NGBoost knows censoring from the right alone, and for times to an event. A value at its bound is
therefore taken for the value itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.tree import DecisionTreeRegressor

from benchmarks.race.forecast import Latent
from benchmarks.race.peers.tasks import FittedTasks, Task, fit_tasks
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray

_MOST_ROUNDS = 200
_PATIENCE = 10


@dataclass(frozen=True, eq=False)
class _NormalTask:
    model: Any

    def latent(self, X: FloatArray, /) -> Latent:
        distribution = self.model.pred_dist(X)
        return norm(distribution.loc, distribution.scale)


def fit_ngboost(problem: Problem) -> FittedTasks:
    """Natural gradients of mean and log scale; every fold stops early, and all rows at its mean."""
    return fit_tasks(problem, _fit_task)


def _fit_task(task: Task) -> _NormalTask:
    stops = []
    for train, test in task.folds:
        judged = test[~np.isnan(task.y[test])]
        model = _model(task, _MOST_ROUNDS)
        model.fit(
            task.X[train],
            task.y[train],
            X_val=task.X[judged],
            Y_val=task.y[judged],
            early_stopping_rounds=_PATIENCE,
        )
        stops.append(1 + model.best_val_loss_itr)
    final = _model(task, round(float(np.mean(stops))))
    return _NormalTask(final.fit(task.X[task.known], task.y[task.known]))


def _model(task: Task, n_rounds: int) -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(
        Base=DecisionTreeRegressor(max_depth=3, min_samples_leaf=10),
        n_estimators=n_rounds,
        learning_rate=0.05,
        minibatch_frac=1.0,
        col_sample=0.5,
        verbose=False,
        random_state=task.seed,
    )
