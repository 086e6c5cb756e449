"""The batch solver on badly scaled problems, against the model with intercepts alone."""

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.problems import Problem, badly_scaled, log_score
from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import CensoringWarning

Alpha = Callable[[float, int, int], float]


@cache
def problems(n_problems: int) -> list[tuple[Problem, float]]:
    """Problems, and the log score of intercepts alone on each."""
    return [(problem, _score(problem, TobitRegressor(alpha=1e9))) for problem in _draw(n_problems)]


def excess(n_problems: int, alpha: Alpha) -> FloatArray:
    """Loss in held-out log score to intercepts alone, under alpha(n, D, T), for each problem."""
    found = []
    for problem, base in problems(n_problems):
        known = max(float((~problem.targets.missing).sum(axis=0).mean()), 1.0)
        value = alpha(known, problem.X.shape[1], problem.targets.shape[1])
        model = SubspaceTobitRegressor(problem.rank, alpha=value, solver="batch")
        found.append(_score(problem, model) - base)
    return np.array(found)


def _draw(n_problems: int) -> list[Problem]:
    return list(badly_scaled(n_problems, seed=1))


def _score(problem: Problem, model: SubspaceTobitRegressor | TobitRegressor) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)  # tasks censored throughout are meant
        model.fit(problem.X, problem.targets)
    latent = model.predict(problem.X_test, kind="latent")
    return log_score(problem.targets_test, latent, model.sigma_)
