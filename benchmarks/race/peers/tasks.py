"""Methods that know one task at a time: the tasks of a problem, and their models side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.race import censored
from benchmarks.race.forecast import Forecast, Latent
from benchmarks.race.problem import Problem
from deeptobit.app.study import Folds
from deeptobit.arrays import FloatArray


class Task(NamedTuple):
    """One task of a problem.

    Attributes
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        NaN where missing.
    lower, upper : float
    folds : list of pairs of row indices
        Rows to fit, in all of which the task is known, and all rows to predict.
    seed : int
    """

    X: FloatArray
    y: FloatArray
    lower: float
    upper: float
    folds: Folds
    seed: int

    @property
    def known(self) -> NDArray[np.intp]:
        """Rows in which the task is known."""
        return np.flatnonzero(~np.isnan(self.y))


def tasks_of(problem: Problem) -> list[Task]:
    """The tasks of a problem; rows without a value of a task are left out of its fits.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [np.nan, 2.0], [3.0, 1.0]])
    >>> folds = [(np.array([0, 1]), np.array([2]))]
    >>> problem = Problem(np.ones((3, 1)), Y, np.zeros(2), np.full(2, np.inf), folds, 0)
    >>> [(task.known.tolist(), task.folds[0][0].tolist()) for task in tasks_of(problem)]
    [([0, 2], [0]), ([0, 1, 2], [0, 1])]
    """
    tasks = []
    for y, lower, upper in zip(problem.Y.T, problem.lower, problem.upper, strict=True):
        folds = [(train[~np.isnan(y[train])], test) for train, test in problem.folds]
        tasks.append(Task(problem.X, y, float(lower), float(upper), folds, problem.seed))
    return tasks


class TaskModel(Protocol):
    """What has learned one task."""

    def latent(self, X: FloatArray, /) -> Latent:
        """Its distribution before clipping, one for each of (N,)."""


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Distributions of T tasks, each with parameters of shape (N,), as those of (N, T).

    Examples
    --------
    >>> from scipy.stats import logistic, norm
    >>> latent = SideBySide([norm([0.0, 1.0], 1.0), logistic([0.0, 1.0], 1.0)])
    >>> latent.cdf(np.array([0.0, 1.0])).round(2)
    array([[0.5 , 0.73],
           [0.16, 0.5 ]])
    >>> latent.ppf(np.array([0.1, 0.5, 0.9])[:, None, None]).shape
    (3, 2, 2)
    """

    tasks: Sequence[Latent]

    def cdf(self, x: Any, /) -> FloatArray:
        """P(Z ≤ x)."""
        return self._each("cdf", x)

    def sf(self, x: Any, /) -> FloatArray:
        """P(Z > x)."""
        return self._each("sf", x)

    def logcdf(self, x: Any, /) -> FloatArray:
        """Log P(Z ≤ x)."""
        return self._each("logcdf", x)

    def logsf(self, x: Any, /) -> FloatArray:
        """Log P(Z > x)."""
        return self._each("logsf", x)

    def logpdf(self, x: Any, /) -> FloatArray:
        """Log density at x."""
        return self._each("logpdf", x)

    def ppf(self, q: ArrayLike, /) -> FloatArray:
        """The q-quantile."""
        return self._each("ppf", q)

    def _each(self, method: str, x: Any) -> FloatArray:
        x = np.asarray(x)
        columns = np.moveaxis(np.broadcast_to(x, (*x.shape[:-1], len(self.tasks))), -1, 0)
        return np.stack(
            [
                getattr(task, method)(column)
                for task, column in zip(self.tasks, columns, strict=True)
            ],
            axis=-1,
        )


@dataclass(frozen=True, eq=False)
class FittedTasks:
    """Models of all tasks, each with a distribution."""

    models: Sequence[TaskModel]
    lower: FloatArray
    upper: FloatArray
    held_out: None = None

    def predict(self, X: FloatArray) -> Forecast:
        """Distributions, and their means within the bounds."""
        latent = SideBySide([model.latent(X) for model in self.models])
        return Forecast(censored.mean(latent, self.lower, self.upper), latent)


def fit_tasks(problem: Problem, fit: Callable[[Task], TaskModel]) -> FittedTasks:
    """Fit every task for itself."""
    models = [fit(task) for task in tasks_of(problem)]
    return FittedTasks(models, problem.lower, problem.upper)
