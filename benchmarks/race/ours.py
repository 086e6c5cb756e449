"""deeptobit with default settings, as a method in the race."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.race.forecast import Forecast
from benchmarks.race.noisy_score import NoisyScore
from benchmarks.race.peer import Peer
from benchmarks.race.problem import Problem
from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import grid_of

NAME = "deeptobit"


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A fitted model of deeptobit."""

    model: AutoTobitRegressor
    held_out: None = None

    def predict(self, X: FloatArray) -> Forecast:
        """E[y|x], and the distribution that it is the mean of."""
        score = np.asarray(self.model.predict(X, kind="latent"))
        latent = NoisyScore(self.model.noise_, score, np.asarray(self.model.sigma_))
        return Forecast(np.asarray(self.model.predict(X)), latent, grid_of(self.model.noise_))


def fit(problem: Problem) -> FittedNetwork:
    """Everything at its default but the bounds and the folds, which are those of the race."""
    model = AutoTobitRegressor(
        lower=problem.lower, upper=problem.upper, cv=problem.folds, random_state=problem.seed
    )
    return FittedNetwork(model.fit(problem.X, problem.Y))


def prepare() -> None:
    """Load the compiled kernels, which a process does once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = np.maximum(X[:, :2] + rng.normal(size=(40, 2)), 0.0)
    for members in ("auto", ("trees",)):
        AutoTobitRegressor(cv=2, members=members).fit(X, Y).predict(X)


OURS = Peer(NAME, fit, prepare=prepare)
