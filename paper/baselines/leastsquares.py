"""Regressions that take a score at its bound for the score itself."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    Lasso,
    LassoCV,
    LinearRegression,
    MultiTaskLasso,
    MultiTaskLassoCV,
    Ridge,
    RidgeCV,
)
from sklearn.preprocessing import StandardScaler

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.targets import CensoredTargets
from paper.baselines.base import Baseline, Folds, among

# Regressions of scikit-learn on outcomes some of which are missing.


class Block(NamedTuple):
    """Tasks that are known in the same rows."""

    known: BoolArray
    tasks: NDArray[np.intp]


def blocks(Y: FloatArray) -> Iterator[Block]:
    """Tasks by the rows in which they are known; without missing entries, one block.

    Examples
    --------
    >>> Y = np.array([[1.0, np.nan, 2.0], [3.0, 4.0, 5.0]])
    >>> [(block.known.tolist(), block.tasks.tolist()) for block in blocks(Y)]
    [([False, True], [1]), ([True, True], [0, 2])]
    """
    patterns, member = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for number, known in enumerate(patterns.T):
        yield Block(known, np.flatnonzero(member == number))


class Taskwise:
    """One model per task, each fitted to the rows in which its task is known."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    def fit(self, X: FloatArray, Y: FloatArray) -> Taskwise:
        """Fit every task."""
        for model, y in zip(self.models, Y.T, strict=True):
            known = ~np.isnan(y)
            model.fit(X[known], y[known])
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks side by side, (N, T)."""
        return np.column_stack([model.predict(X) for model in self.models])

    def __sklearn_clone__(self) -> Taskwise:
        """Copy the models without what they learned."""
        return Taskwise([clone(model) for model in self.models])


class Blockwise:
    """A model of many tasks; tasks that are known in the same rows are fitted together."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: FloatArray, Y: FloatArray) -> Blockwise:
        """Fit every block of tasks to its rows."""
        self.n_tasks = Y.shape[1]
        self.fitted = [
            (tasks, clone(self.model).fit(X[known], Y[np.ix_(known, tasks)]))
            for known, tasks in blocks(Y)
        ]
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        predicted = np.empty((len(X), self.n_tasks))
        for tasks, model in self.fitted:
            predicted[:, tasks] = model.predict(X).reshape(len(X), -1)
        return predicted

    def __sklearn_clone__(self) -> Blockwise:
        """Copy the model without what it learned."""
        return Blockwise(clone(self.model))


class Filled:
    """A model of all tasks at once; ridge regressions of its own rows fill what is missing."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: FloatArray, Y: FloatArray) -> Filled:
        """Fill and fit."""
        self.model.fit(X, fill(X, Y))
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        return np.asarray(self.model.predict(X)).reshape(len(X), -1)

    def __sklearn_clone__(self) -> Filled:
        """Copy the model without what it learned."""
        return Filled(clone(self.model))


def fill(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Outcomes without gaps: ridge regressions on the known rows of a task predict the others."""
    filled = Y.copy()
    for known, tasks in blocks(Y):
        if not known.all():
            ridge = RidgeCV(np.logspace(0, 5, 10)).fit(X[known], Y[np.ix_(known, tasks)])
            filled[np.ix_(~known, tasks)] = ridge.predict(X[~known]).reshape(-1, len(tasks))
    return filled


# Regressions of scikit-learn, tuned by folds; features and outcomes are in standard units.

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


class UncensoredBaseline(Baseline):
    r"""A regression of scikit-learn, fitted to recorded values and clipped to the bounds.

    Its noise scale is that of errors on rows which it was not fitted to,

    .. math:: \sigma_t^2 = \frac{1}{n_t}\sum_i \left(y_{it} - \hat y_{it}^{(-i)}\right)^2

    over the known entries of task t, each predicted by the fold that held it out.
    """

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        self._features, self._outcomes = StandardScaler().fit(X), StandardScaler()
        Y = self._outcomes.fit_transform(targets.values)
        X = self._features.transform(X)
        with warnings.catch_warnings():
            # A lasso does not always settle at the smallest penalties, which are not chosen.
            warnings.simplefilter("ignore", ConvergenceWarning)
            tuned = self._tune(X, Y, folds)
            errors = Y - predict_held_out(tuned, X, Y, folds)
            self.model_ = tuned.fit(X, Y)
        spread = np.sqrt(np.nanmean(np.square(errors), axis=0))
        self.sigma_ = self._outcomes.scale_ * np.maximum(spread, SIGMA_FLOOR)

    def _latent(self, X: FloatArray) -> FloatArray:
        scores = self.model_.predict(self._features.transform(X))
        return np.asarray(self._outcomes.inverse_transform(scores))

    @abstractmethod
    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        """A model that is not fitted yet, for X and Y in standard units."""


class LeastSquaresBaseline(UncensoredBaseline):
    """Least squares, each task on the rows in which it is known; of minimum norm where D > N.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> round(LeastSquaresBaseline(lower=0).fit(X[:150], Y[:150]).score(X[150:], Y[150:]), 2)
    0.53
    """

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return Blockwise(LinearRegression())


class RidgeBaseline(UncensoredBaseline):
    """Ridge regression, each task on the rows in which it is known.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> model = RidgeBaseline(lower=0).fit(X[:150], Y[:150])
    >>> round(model.score(X[150:], Y[150:]), 2), model.sigma_.round(1)
    (0.52, array([2.9, 2.4, 1.9]))
    """

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return tune_ridge(X, Y, folds)

    @property
    def chosen_(self) -> dict[str, Any]:
        """α of all tasks."""
        return {"alpha": float(self.model_.models[0].alpha)}


class LassoBaseline(UncensoredBaseline):
    """The lasso, each task on the rows in which it is known.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> round(LassoBaseline(lower=0).fit(X[:150], Y[:150]).score(X[150:], Y[150:]), 2)
    0.53
    """

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return tune_lasso(X, Y, folds)

    @property
    def chosen_(self) -> dict[str, Any]:
        """α of every task."""
        return {"alpha": [float(model.alpha) for model in self.model_.models]}


class MultiTaskLassoBaseline(UncensoredBaseline):
    """The multi-task lasso (ℓ2,1); ridge regressions fill missing outcomes of its training rows.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> round(MultiTaskLassoBaseline(lower=0).fit(X[:150], Y[:150]).score(X[150:], Y[150:]), 2)
    0.53
    """

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return tune_multi_task_lasso(X, Y, folds)

    @property
    def chosen_(self) -> dict[str, Any]:
        """α of all tasks."""
        return {"alpha": float(self.model_.model.alpha)}


class ForestBaseline(UncensoredBaseline):
    """A random forest of all tasks; ridge regressions fill missing outcomes of its training rows.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> round(ForestBaseline(lower=0).fit(X[:150], Y[:150]).score(X[150:], Y[150:]), 2)
    0.42
    """

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return tune_forest(X, Y, folds, self.random_state)

    @property
    def chosen_(self) -> dict[str, Any]:
        """The least number of rows in a leaf."""
        tuned = self.model_
        forest = tuned.model if isinstance(tuned, Filled) else tuned.models[0]
        return {"min_samples_leaf": forest.min_samples_leaf}
