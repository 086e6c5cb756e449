"""Regressions of scikit-learn, tuned by folds; features and outcomes are in standard units.

Every function takes X (N, D), Y (N, T) with NaN where missing, and folds of the rows, and returns a
model that is not fitted yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LassoCV, MultiTaskLasso, MultiTaskLassoCV, Ridge, RidgeCV

from deeptobit.arrays import FloatArray
from deeptobit.baselines._folds import Folds, among
from deeptobit.baselines._missing import Filled, Taskwise, fill

_RIDGES = np.logspace(0, 5, 30)
_PATH: dict[str, Any] = {"alphas": 30, "eps": 0.02}  # of a lasso: down to 2 % of no effect at all
_LEAVES = (3, 10, 25)


def tune_ridge(X: FloatArray, Y: FloatArray, folds: Folds) -> Taskwise:
    """Ridge, with one penalty for all tasks.

    Examples
    --------
    >>> from deeptobit.baselines import inner_folds
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = tune_ridge(X, X @ [[1.0], [0.0], [2.0]], inner_folds(50, random_state=0))
    >>> model.models
    [Ridge(alpha=np.float64(1.0))]
    """
    search = RidgeCV(_RIDGES, cv=folds).fit(X, fill(X, Y))
    return Taskwise([Ridge(search.alpha_) for _ in Y.T])


def tune_lasso(X: FloatArray, Y: FloatArray, folds: Folds) -> Taskwise:
    """Lasso, with a penalty for every task.

    Examples
    --------
    >>> from deeptobit.baselines import inner_folds
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = tune_lasso(X, X @ [[1.0], [0.0], [2.0]], inner_folds(50, random_state=0))
    >>> model.fit(X, X @ [[1.0], [0.0], [2.0]]).models[0].coef_.round(1)
    array([1., 0., 2.])
    """
    models = []
    for y in Y.T:
        known = ~np.isnan(y)
        search = LassoCV(cv=among(folds, known), **_PATH).fit(X[known], y[known])
        models.append(Lasso(search.alpha_))
    return Taskwise(models)


def tune_multi_task_lasso(X: FloatArray, Y: FloatArray, folds: Folds) -> Filled:
    """The ℓ2,1 penalty: a feature matters to all tasks or to none.

    Examples
    --------
    >>> from deeptobit.baselines import inner_folds
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> Y = X @ [[1.0, -1.0], [0.0, 0.0], [2.0, 1.0]]
    >>> tune_multi_task_lasso(X, Y, inner_folds(50, random_state=0)).fit(X, Y).model.coef_.round(1)
    array([[ 1. , -0. ,  1.9],
           [-0.9, -0. ,  0.9]])
    """
    search = MultiTaskLassoCV(cv=folds, tol=1e-3, **_PATH).fit(X, fill(X, Y))
    return Filled(MultiTaskLasso(search.alpha_, tol=1e-3))


def tune_forest(
    X: FloatArray, Y: FloatArray, folds: Folds, random_state: Any = 0
) -> Filled | Taskwise:
    """A random forest of all tasks, with the size of its leaves.

    Examples
    --------
    >>> from deeptobit.baselines import inner_folds
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> tune_forest(X, np.sign(X[:, :2]), inner_folds(50, random_state=0)).model.min_samples_leaf
    3
    """

    def forest(leaf: int) -> Filled | Taskwise:
        model = RandomForestRegressor(
            100, min_samples_leaf=leaf, max_features=1 / 3, random_state=random_state
        )
        return Filled(model) if Y.shape[1] > 1 else Taskwise([model])

    def error(leaf: int) -> float:
        held_out = predict_held_out(forest(leaf), X, Y, folds)
        return float(np.nansum(np.square(Y - held_out)))

    return forest(min(_LEAVES, key=error))


def predict_held_out(model: Any, X: FloatArray, Y: FloatArray, folds: Folds) -> FloatArray:
    """Predictions of every row by a model that was not fitted to it, (N, T)."""
    held_out = np.full(Y.shape, np.nan)
    for train, test in folds:
        held_out[test] = clone(model).fit(X[train], Y[train]).predict(X[test])
    return held_out
