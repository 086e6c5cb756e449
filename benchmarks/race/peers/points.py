"""Methods that predict a number: fitted, with their predictions of held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.race.forecast import Forecast
from benchmarks.race.problem import Problem
from deeptobit.app.study.methods import predict_held_out
from deeptobit.arrays import FloatArray


class Predictor(Protocol):
    """What has learned to predict all tasks."""

    def predict(self, X: FloatArray, /) -> FloatArray:
        """Outcomes of rows X, (N, T)."""


@dataclass(frozen=True, eq=False)
class FittedPoints:
    """A fitted method without a distribution.

    Attributes
    ----------
    model : Predictor
    held_out : array of shape (N, T)
        Predictions of the training rows by models of the same settings that had not seen them.
    """

    model: Predictor
    held_out: FloatArray

    def predict(self, X: FloatArray) -> Forecast:
        """Predictions alone."""
        return Forecast(self.model.predict(X))


def fit_best(problem: Problem, candidates: Sequence[Any]) -> FittedPoints:
    """Fit the candidate with the smallest held-out squared error over all tasks.

    Parameters
    ----------
    problem : Problem
    candidates : sequence of models of scikit-learn
        They take missing outcomes.
    """
    with warnings.catch_warnings():
        # A lasso at its smallest penalties, or a network at its last epoch, is used as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        held_out = [predict_held_out(m, problem.X, problem.Y, problem.folds) for m in candidates]
        errors = [np.nansum(np.square(problem.Y - predicted)) for predicted in held_out]
        best = int(np.argmin(errors))
        return FittedPoints(candidates[best].fit(problem.X, problem.Y), held_out[best])


def fit_tuned(problem: Problem, tune: Callable[..., Any]) -> FittedPoints:
    """Fit a model that ``tune`` chooses by the folds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tuned = tune(problem.X, problem.Y, problem.folds)
    return fit_best(problem, [tuned])
