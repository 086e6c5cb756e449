"""XGBoost's accelerated failure time model of every task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.race.peers.rounds import ROUNDS, BoostedTask, Ensemble, Rows, boost
from benchmarks.race.peers.tasks import FittedTasks, Task, fit_tasks
from benchmarks.race.peers.units import Family, Units, find_log_units
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray


class Setting(NamedTuple):
    """Of one fit; sigma as a share of the scale of the constant model."""

    family: Family
    depth: int
    sigma: float


_SETTINGS = [
    Setting("normal", 2, 0.8),
    Setting("normal", 4, 0.8),
    Setting("logistic", 2, 0.5),
    Setting("logistic", 4, 0.5),
]


def fit_aft(problem: Problem) -> FittedTasks:
    """Boosted trees for intervals of log(y − origin): an entry at a bound is beyond it.

    The origin is the one of :func:`~benchmarks.race.peers.units.find_log_units`; noise family,
    depth, number of trees and scale are chosen by the folds.
    """
    return fit_tasks(problem, _fit_task)


def _fit_task(task: Task) -> BoostedTask:
    return boost(task, find_log_units(task), _SETTINGS, _train)


def _train(task: Task, units: Units, rows: Rows, setting: Setting) -> Ensemble:
    import xgboost

    y = task.y[rows]
    label = np.exp(units.standard(y))
    intervals = xgboost.DMatrix(
        task.X[rows],
        label_lower_bound=np.where(y <= task.lower, 0.0, label),
        label_upper_bound=np.where(y >= task.upper, np.inf, label),
    )
    parameters = {
        "objective": "survival:aft",
        "aft_loss_distribution": setting.family,
        "aft_loss_distribution_scale": setting.sigma,
        "base_score": 1.0,  # the logarithm of which is 0
        "max_depth": setting.depth,
        "learning_rate": 0.1,
        "subsample": 0.8,
        "colsample_bynode": 0.5,
        "min_child_weight": 5.0,
        "max_bin": 32,
        "seed": task.seed,
        "nthread": 1,
    }
    booster = xgboost.train(parameters, intervals, max(ROUNDS))

    def scores(X: FloatArray, n_rounds: int) -> FloatArray:
        matrix = xgboost.DMatrix(X)
        margin = booster.predict(matrix, output_margin=True, iteration_range=(0, n_rounds))
        return np.asarray(margin, dtype=np.float64)

    return scores
