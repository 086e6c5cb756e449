"""Small problems and methods that a race can be run with."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.race.forecast import Forecast
from benchmarks.race.ours import NAME, OURS
from benchmarks.race.peer import Peer
from benchmarks.race.problem import Problem
from deeptobit.app.study import EvaluationData
from deeptobit.app.study.methods import predict_held_out, tune_ridge
from deeptobit.arrays import FloatArray
from deeptobit.targets import CensoredTargets


def small_data(name: str = "small", n_rows: int = 60) -> EvaluationData:
    """Two scores in whole points from 0 to 10, of two features; some are missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    scores = (4.0 + 4.0 * X + rng.normal(size=(n_rows, 2))).round().clip(0.0, 10.0)
    scores[::20, 0] = np.nan
    return EvaluationData(name, X, CensoredTargets.from_bounds(scores, 0.0, 10.0))


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """Predictions without a distribution."""

    model: object
    held_out: FloatArray

    def predict(self, X: FloatArray) -> Forecast:
        return Forecast(self.model.predict(X))  # type: ignore[attr-defined]


def fit_ridge(problem: Problem) -> FittedRidge:
    model = tune_ridge(problem.X, problem.Y, problem.folds)
    held_out = predict_held_out(model, problem.X, problem.Y, problem.folds)
    return FittedRidge(model.fit(problem.X, problem.Y), held_out)


def fail(problem: Problem) -> FittedRidge:
    raise ArithmeticError("singular\nat step 3")


def crash(problem: Problem) -> FittedRidge:
    os.kill(os.getpid(), signal.SIGKILL)
    return fit_ridge(problem)


def sleep(problem: Problem) -> FittedRidge:
    time.sleep(60.0)
    return fit_ridge(problem)


METHODS = {
    NAME: Peer(NAME, OURS.fit),  # compiled before
    "ridge": Peer("ridge", fit_ridge),
    "failing": Peer("failing", fail),
    "crashing": Peer("crashing", crash),
}
