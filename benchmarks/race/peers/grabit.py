"""GPBoost's Tobit objective: gradient-boosted trees of every task (Grabit)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.race.peers.rounds import ROUNDS, BoostedTask, Ensemble, Rows, boost
from benchmarks.race.peers.tasks import FittedTasks, Task, fit_tasks
from benchmarks.race.peers.units import Family, Units, find_linear_units
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray


class Setting(NamedTuple):
    """Of one fit; sigma as a share of the scale of the constant model."""

    depth: int
    sigma: float
    family: Family = "normal"


_SETTINGS = [Setting(2, 0.5), Setting(2, 0.9), Setting(4, 0.5), Setting(4, 0.9)]
_EXACT = 1024.0


def fit_grabit(problem: Problem) -> FittedTasks:
    """Boosted trees under a Tobit likelihood with both bounds.

    Depth, number of trees and scale are chosen by the folds.
    """
    return fit_tasks(problem, _fit_task)


def _fit_task(task: Task) -> BoostedTask:
    return boost(task, find_linear_units(task), _SETTINGS, _train)


def _train(task: Task, units: Units, rows: Rows, setting: Setting) -> Ensemble:
    import gpboost

    # GPBoost keeps outcomes in single precision and takes those that equal a bound for censored, so
    # bounds are moved to numbers that are exact there.
    lower, upper = (
        float(np.round(_EXACT * units.standard(bound)) / _EXACT)
        for bound in (task.lower, task.upper)
    )
    inside = np.clip(units.standard(task.y[rows]), lower, upper)
    at_lower, at_upper = task.y[rows] <= task.lower, task.y[rows] >= task.upper
    y = np.select([at_lower, at_upper], [lower, upper], inside)
    parameters = {
        "objective": "tobit",
        "yl": lower,
        "yu": upper,
        "sigma": setting.sigma,
        "boost_from_average": False,
        "max_depth": setting.depth,
        "num_leaves": 2**setting.depth,
        "learning_rate": 0.1,
        "min_data_in_leaf": 10,
        "max_bin": 31,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "feature_fraction_bynode": 0.5,
        "seed": task.seed,
        "num_threads": 1,
        "verbose": -1,
    }
    data = gpboost.Dataset(task.X[rows], y, params={"verbose": -1})
    booster = gpboost.train(parameters, data, max(ROUNDS))

    def scores(X: FloatArray, n_rounds: int) -> FloatArray:
        return np.asarray(booster.predict(X, num_iteration=n_rounds), dtype=np.float64)

    return scores
