"""Regressions that take a score at its bound for the score itself."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from deeptobit.arrays import FloatArray
from deeptobit.baselines._base import Baseline
from deeptobit.baselines._folds import Folds
from deeptobit.baselines._missing import Blockwise, Filled
from deeptobit.baselines._tuning import (
    predict_held_out,
    tune_forest,
    tune_lasso,
    tune_multi_task_lasso,
    tune_ridge,
)
from deeptobit.solvers import SIGMA_FLOOR
from deeptobit.targets import CensoredTargets


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
