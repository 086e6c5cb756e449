"""The strength of a norm, by cross-validation along a path of warm starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines._folds import Folds, Rows
from deeptobit.baselines._solution import Problem, Solution

_PATH = np.logspace(0.0, -4.0, 14)  # of the least strength at which nothing is left
_PATIENCE = 3
_ROUGH = 1e-2  # enough to tell one strength from another


class Chosen(NamedTuple):
    """The best α, where to start its solution from, and scores of held-out rows at it (N, T)."""

    alpha: float
    start: Solution
    held_out: FloatArray


def choose_alpha(
    pose: Callable[[Rows], Problem],
    X: FloatArray,
    folds: Folds,
    alphas: FloatArray,
    error: Callable[[Solution, Rows], float],
) -> Chosen:
    """Solve all folds at ever smaller α, until errors have not fallen for three of them.

    Parameters
    ----------
    pose : callable
        The problem of some rows.
    X : array of shape (N, D)
    folds : list of pairs of rows
    alphas : array
        Descending.
    error : callable
        Of a solution, on rows that were held out.

    Returns
    -------
    Chosen
    """
    problems = [pose(train) for train, _ in folds]
    tests = [test for _, test in folds]
    solutions = [problem.null() for problem in problems]
    best, lowest, waited = (float(alphas[0]), solutions), np.inf, 0
    for alpha in alphas.tolist():
        solutions = [
            problem.solve(alpha, start, _ROUGH)
            for problem, start in zip(problems, solutions, strict=True)
        ]
        found = sum(map(error, solutions, tests))
        waited += 1
        if found < lowest:
            best, lowest, waited = (alpha, solutions), found, 0
        if waited == _PATIENCE:
            break
    alpha, solutions = best
    held_out = np.full((len(X), len(solutions[0].theta)), np.nan)
    for solution, test in zip(solutions, tests, strict=True):
        held_out[test] = solution.latent(X[test])
    return Chosen(alpha, solutions[0], held_out)


def path(problem: Problem) -> FloatArray:
    """From the α at which all coefficients are 0 down to a ten-thousandth of it."""
    return np.asarray(problem.alpha_max * _PATH)
