"""LightGBM and XGBoost for every outcome by itself, CatBoost for all of them, squared error.

The grid of the first two: leaves 4, 15 and 31, rates 0.03 and 0.1, early stopping on the held-out
rows of the folds (50 rounds, 1000 at most). The trees of all rows are as many as those of the folds
on average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.race.peers.points import FittedPoints
from benchmarks.race.peers.tasks import Task, tasks_of
from benchmarks.race.problem import Problem
from deeptobit.app.study.methods import fill
from deeptobit.arrays import FloatArray

LEAVES, RATES = (4, 15, 31), (0.03, 0.1)
ROUNDS, PATIENCE = 1000, 50
_DEPTHS = (4, 6)

Grow = Callable[..., tuple[Any, int]]


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Models of the outcomes, side by side."""

    models: Sequence[Callable[[FloatArray], FloatArray]]

    def predict(self, X: FloatArray, /) -> FloatArray:
        return np.column_stack([model(X) for model in self.models])


def fit_lightgbm(problem: Problem) -> FittedPoints:
    """One booster for every outcome."""
    return _fit_each(problem, _lightgbm)


def fit_xgboost(problem: Problem) -> FittedPoints:
    """One booster for every outcome, trees by their leaves."""
    return _fit_each(problem, _xgboost)


def fit_catboost(problem: Problem) -> FittedPoints:
    """MultiRMSE, trees of all outcomes at once; ridge regressions fill missing outcomes."""
    from catboost import CatBoostRegressor

    def grow(train: Any, depth: int, test: Any = None, rounds: int = ROUNDS) -> tuple[Any, int]:
        model = CatBoostRegressor(
            loss_function="MultiRMSE" if problem.Y.shape[1] > 1 else "RMSE",
            depth=depth,
            learning_rate=0.1,
            iterations=rounds,
            random_seed=problem.seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
        X, Y = problem.X, fill(problem.X, problem.Y)
        judge = None if test is None else (X[test], Y[test])
        patience = None if test is None else PATIENCE
        model.fit(X[train], Y[train], eval_set=judge, early_stopping_rounds=patience)
        return model, (model.get_best_iteration() or 0) + 1

    best: Any = None
    for depth in _DEPTHS:
        held_out, rounds = np.full(problem.Y.shape, np.nan), []
        for train, test in problem.folds:
            model, number = grow(train, depth, test)
            held_out[test] = model.predict(problem.X[test]).reshape(len(test), -1)
            rounds.append(number)
        error = float(np.nansum(np.square(problem.Y - held_out)))
        if best is None or error < best[0]:
            best = error, depth, int(np.mean(rounds)), held_out
    _, depth, number, held_out = best
    model, _ = grow(np.arange(len(problem.X)), depth, rounds=number)
    whole = _Tasks([lambda X: model.predict(X).reshape(len(X), -1)])
    return FittedPoints(whole, held_out)


def _fit_each(problem: Problem, grow: Grow) -> FittedPoints:
    models, held_out = [], np.full(problem.Y.shape, np.nan)
    for number, task in enumerate(tasks_of(problem)):
        model, held_out[:, number] = _fit_task(task, grow)
        models.append(model)
    return FittedPoints(_Tasks(models), held_out)


def _fit_task(task: Task, grow: Grow) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    best: Any = None
    for leaves, rate in product(LEAVES, RATES):
        predicted, rounds = np.full(len(task.y), np.nan), []
        for train, test in task.folds:
            judge = test[~np.isnan(task.y[test])]
            predict, number = grow(task, train, leaves, rate, judge)
            predicted[test] = predict(task.X[test])
            rounds.append(number)
        error = float(np.nansum(np.square(task.y - predicted)))
        if best is None or error < best[0]:
            best = error, leaves, rate, max(1, int(np.mean(rounds))), predicted
    _, leaves, rate, number, predicted = best
    predict, _ = grow(task, task.known, leaves, rate, None, number)
    return predict, predicted


def _lightgbm(
    task: Task, train: Any, leaves: int, rate: float, judge: Any, rounds: int = ROUNDS
) -> tuple[Callable[[FloatArray], FloatArray], int]:
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "l2",
        "num_leaves": leaves,
        "learning_rate": rate,
        "num_threads": 1,
        "seed": task.seed,
        "verbose": -1,
    }
    data = lightgbm.Dataset(task.X[train], task.y[train])
    if judge is None:
        whole: Any = lightgbm.train(settings, data, rounds)
        return whole.predict, rounds
    booster: Any = lightgbm.train(
        settings,
        data,
        rounds,
        valid_sets=[lightgbm.Dataset(task.X[judge], task.y[judge], reference=data)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return booster.predict, booster.best_iteration


def _xgboost(
    task: Task, train: Any, leaves: int, rate: float, judge: Any, rounds: int = ROUNDS
) -> tuple[Callable[[FloatArray], FloatArray], int]:
    import xgboost

    settings = {
        "objective": "reg:squarederror",
        "grow_policy": "lossguide",
        "max_leaves": leaves,
        "max_depth": 0,
        "learning_rate": rate,
        "nthread": 1,
        "seed": task.seed,
    }
    data, stop = xgboost.DMatrix(task.X[train], task.y[train]), {}
    if judge is not None:
        watched = xgboost.DMatrix(task.X[judge], task.y[judge])
        stop = {"evals": [(watched, "stop")], "early_stopping_rounds": PATIENCE}
    booster = xgboost.train(settings, data, rounds, verbose_eval=False, **stop)
    number = rounds if judge is None else booster.best_iteration + 1

    def predict(X: FloatArray) -> FloatArray:
        scores = booster.predict(xgboost.DMatrix(X), iteration_range=(0, number))
        return np.asarray(scores, dtype=np.float64)

    return predict, number
