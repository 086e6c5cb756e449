"""Tobit models without a subspace: of no feature at all, and with a ridge on all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines._base import Baseline
from deeptobit.baselines._folds import Folds
from deeptobit.estimators import TobitRegressor
from deeptobit.metrics import centred_anmse
from deeptobit.targets import CensoredTargets

_ALPHAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class InterceptOnly(Baseline):
    """The censored normal distribution of every task, the same for everyone.

    Examples
    --------
    >>> model = InterceptOnly(lower=0, upper=30).fit(np.ones((4, 1)), [30.0, 30.0, 28.0, 24.0])
    >>> model.predict(np.ones((1, 1)), kind="latent").round(2), model.sigma_.round(2)
    (array([29.66]), array([4.32]))
    """

    prediction = "mean"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        # One feature that is 0, under a penalty: nothing but intercepts and scales is left.
        model = TobitRegressor(alpha=1.0).fit(np.zeros((len(X), 1)), targets)
        self.intercept_, self.sigma_ = model.intercept_, model.sigma_

    def _latent(self, X: FloatArray) -> FloatArray:
        return np.tile(self.intercept_, (len(X), 1))

    def __sklearn_tags__(self) -> Any:
        """It is here to be beaten."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class RidgeTobit(Baseline):
    """A Tobit model of every task, whose ridge predicts held-out rows best in R² over all tasks.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> model = RidgeTobit(lower=0).fit(X[:150], Y[:150])
    >>> round(model.score(X[150:], Y[150:]), 2), model.alpha_
    (0.58, 0.001)
    """

    prediction = "mean"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        def error(alpha: float) -> float:
            held_out = np.full(targets.shape, np.nan)
            for train, test in folds:
                held_out[test] = (
                    TobitRegressor(alpha=alpha).fit(X[train], targets[train]).predict(X[test])
                )
            return float(centred_anmse(targets, held_out))

        self.alpha_ = min(_ALPHAS, key=error)
        model = TobitRegressor(alpha=self.alpha_).fit(X, targets)
        self.coef_, self.intercept_, self.sigma_ = model.coef_, model.intercept_, model.sigma_

    @property
    def chosen_(self) -> dict[str, Any]:
        """α of all tasks."""
        return {"alpha": self.alpha_}

    def _latent(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.coef_.T + self.intercept_)
