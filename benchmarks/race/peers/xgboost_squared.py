"""XGBoost with trees of all tasks at once; ridge regressions fill missing outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race.peers.points import FittedPoints
from benchmarks.race.problem import Problem
from deeptobit.app.study.methods import fill
from deeptobit.arrays import FloatArray

_DEPTHS = (2, 4)
_ROUNDS = (5, 10, 20, 40, 80)


@dataclass(frozen=True, eq=False)
class _Booster:
    booster: Any
    n_rounds: int

    def predict(self, X: FloatArray, /) -> FloatArray:
        return _predict(self.booster, X, self.n_rounds)


def fit_multi_target(problem: Problem) -> FittedPoints:
    """Squared error; the depth of the trees and their number are chosen for all tasks together."""
    held_out = np.full((len(_DEPTHS), len(_ROUNDS), *problem.Y.shape), np.nan)
    for predicted, depth in zip(held_out, _DEPTHS, strict=True):
        for train, test in problem.folds:
            booster = _train(problem, train, depth)
            predicted[:, test] = [_predict(booster, problem.X[test], n) for n in _ROUNDS]
    errors = np.nansum(np.square(problem.Y - held_out), axis=(-2, -1))
    best, n = np.unravel_index(np.argmin(errors), errors.shape)
    booster = _train(problem, np.arange(len(problem.X)), _DEPTHS[best])
    return FittedPoints(_Booster(booster, _ROUNDS[n]), held_out[best, n])


def _train(problem: Problem, rows: Any, depth: int) -> Any:
    import xgboost

    X = problem.X[rows]
    parameters = {
        "objective": "reg:squarederror",
        "multi_strategy": "multi_output_tree",
        "max_depth": depth,
        "learning_rate": 0.1,
        "subsample": 0.8,
        "colsample_bynode": 0.5,
        "min_child_weight": 5.0,
        "max_bin": 32,
        "seed": problem.seed,
        "nthread": 1,
    }
    return xgboost.train(parameters, xgboost.DMatrix(X, fill(X, problem.Y[rows])), max(_ROUNDS))


def _predict(booster: Any, X: FloatArray, n_rounds: int) -> FloatArray:
    import xgboost

    predicted = booster.predict(xgboost.DMatrix(X), iteration_range=(0, n_rounds))
    return np.asarray(predicted, dtype=np.float64).reshape(len(X), -1)
