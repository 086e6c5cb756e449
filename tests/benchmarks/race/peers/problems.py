"""Small problems with a known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.race.problem import Problem
from deeptobit.app.study import inner_folds
from deeptobit.arrays import FloatArray


class Known(NamedTuple):
    """A problem, and rows beyond it with their outcomes."""

    problem: Problem
    X: FloatArray
    Y: FloatArray


def linear(n_rows: int = 150, missing: int = 0) -> Known:
    """Three tasks, of features 0, 1 and 11 of twelve: a floor, a ceiling and no bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n_rows, 12))
    latent = X[:, [0, 1, 11]] @ [[1.0, -1.0, 0.5], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    lower, upper = np.array([-0.5, -np.inf, -np.inf]), np.array([np.inf, 0.8, np.inf])
    Y = np.clip(latent + 0.5 * rng.normal(size=latent.shape), lower, upper)
    train, test = np.arange(n_rows), np.arange(n_rows, 2 * n_rows)
    known = Y[train].copy()
    known[:missing, 0] = np.nan
    folds = inner_folds(n_rows, None, 3, random_state=0)
    return Known(Problem(X[train], known, lower, upper, folds, 0), X[test], Y[test])


def hostile() -> Problem:
    """Tasks that are hardly ever off a bound: four values above the floor, or both bounds alone."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    rare = np.zeros(90)
    rare[[0, 31, 62, 80]] = [0.5, 1.0, 1.5, 1.0]
    both = (X[:, 0] + rng.normal(size=90) > 0.0).astype(np.float64)
    folds = inner_folds(90, None, 3, random_state=0)
    return Problem(X, np.column_stack([rare, both]), np.zeros(2), np.array([np.inf, 1.0]), folds, 0)
