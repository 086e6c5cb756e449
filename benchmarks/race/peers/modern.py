"""Quantile forests, RealMLP and TabM, and the foundation models TabPFN and TabICL.

RealMLP and TabM have the tuned defaults of pytabkit. TabPFN and TabICL run where their weights are
present: nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.race.forecast import Latent
from benchmarks.race.peers.packages import importable
from benchmarks.race.peers.points import FittedPoints, fit_best
from benchmarks.race.peers.tasks import FittedTasks, Task, fit_tasks
from benchmarks.race.problem import Problem
from deeptobit.app.study.methods import Taskwise
from deeptobit.arrays import FloatArray

_LEAVES = (5, 20)  # rows of a leaf
_QUANTILES = (0.1, 0.5, 0.9)
_NARROWEST = 0.05  # σ, in standard deviations of the outcome
_WEIGHTS = "RACE_WEIGHTS"  # the folder that holds weights, one folder for each model


@dataclass(frozen=True, eq=False)
class _Forest:
    """A forest whose quantiles are those of a normal distribution."""

    forest: Any

    def latent(self, X: FloatArray, /) -> Latent:
        low, _, high = self.forest.predict(X, quantiles=list(_QUANTILES)).T
        centre = self.forest.predict(X, quantiles="mean")
        sigma = (high - low) / (norm.ppf(_QUANTILES[2]) - norm.ppf(_QUANTILES[0]))
        frozen: Latent = norm(centre, np.maximum(sigma, _NARROWEST))
        return frozen


def fit_quantile_forest(problem: Problem) -> FittedTasks:
    """One quantile forest for every outcome; the size of its leaves by the pinball loss."""
    return fit_tasks(problem, _fit_forest)


def _fit_forest(task: Task) -> _Forest:
    from quantile_forest import RandomForestQuantileRegressor

    def grow(rows: Any, leaf: int) -> Any:
        forest = RandomForestQuantileRegressor(
            200, min_samples_leaf=leaf, max_features=1 / 3, random_state=task.seed, n_jobs=1
        )
        return forest.fit(task.X[rows], task.y[rows])

    losses = []
    for leaf in _LEAVES:
        loss = 0.0
        for train, test in task.folds:
            predicted = grow(train, leaf).predict(task.X[test], quantiles=list(_QUANTILES))
            error = task.y[test, None] - predicted
            loss += float(
                np.nansum(
                    np.maximum(np.multiply(_QUANTILES, error), (np.array(_QUANTILES) - 1.0) * error)
                )
            )
        losses.append(loss)
    return _Forest(grow(task.known, _LEAVES[int(np.argmin(losses))]))


def fit_pytabkit(problem: Problem, *, name: str) -> FittedPoints:
    """A network of pytabkit with its tuned defaults, for every outcome by itself."""
    kind = getattr(import_module("pytabkit"), name)
    return _fit_each(problem, partial(kind, device="cpu", random_state=problem.seed, n_threads=1))


def fit_tabpfn(problem: Problem) -> FittedPoints:
    """TabPFN, for every outcome by itself."""
    kind = import_module("tabpfn").TabPFNRegressor
    path = str(next(_weights("tabpfn").glob("*regressor*")))
    return _fit_each(problem, partial(kind, model_path=path, device="cpu"))


def fit_tabicl(problem: Problem) -> FittedPoints:
    """TabICL, for every outcome by itself."""
    kind = import_module("tabicl").TabICLRegressor
    path = str(next(_weights("tabicl").glob("*regressor*")))
    return _fit_each(
        problem, partial(kind, model_path=path, allow_auto_download=False, device="cpu")
    )


def with_weights(package: str) -> Callable[[], str | None]:
    """A question for the race: whether package and weights are here."""

    def reason() -> str | None:
        missing = importable(package)()
        if missing is None and not any(_weights(package).glob("*regressor*")):
            return f"{_WEIGHTS} names no folder with weights of {package}; the race downloads none"
        return missing

    return reason


def _weights(package: str) -> Path:
    return Path(os.environ.get(_WEIGHTS, "weights")) / package


def _fit_each(problem: Problem, make: Callable[[], Any]) -> FittedPoints:
    return fit_best(problem, [Taskwise([make() for _ in range(problem.Y.shape[1])])])
