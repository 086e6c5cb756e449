"""Tobit models without a penalty, wherever the data determine them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import TobitRegressor
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import centred_anmse, some_targets
from deeptobit.targets import CensoredTargets
from paper.baselines.base import Baseline, Folds

_TINY_RIDGE = 1e-3
_NAMES_SHOWN = 10


class TobitBaseline(Baseline):
    r"""A Tobit model of every task by maximum likelihood, without a penalty.

    The maximum exists and is unique where the rows in which a task is recorded between its bounds
    outnumber the directions of X, and X varies along all of these in them. Where they do not,
    coefficients could run to infinity or σ to 0: such a task gets a ridge of 0.001 on β/σ, and a
    warning names it.

    Attributes
    ----------
    alpha_ : array of shape (T,)
        0, or 0.001 for a task that needed the ridge.
    coef_ : array of shape (T, D)
    intercept_, sigma_ : arrays of shape (T,)

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> model = TobitBaseline(lower=0).fit(X[:150], Y[:150])
    >>> round(model.score(X[150:], Y[150:]), 2), model.alpha_
    (0.58, array([0., 0., 0.]))
    """

    prediction = "mean"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        determined = _determined(X, targets)
        if not determined.all():
            _warn(targets, determined)
        self.alpha_ = np.where(determined, 0.0, _TINY_RIDGE)
        self.coef_ = np.empty((targets.shape[1], X.shape[1]))
        self.intercept_, sigma = np.empty((2, targets.shape[1]))
        for alpha in np.unique(self.alpha_).tolist():
            tasks = np.flatnonzero(self.alpha_ == alpha)
            model = TobitRegressor(alpha=alpha).fit(X, some_targets(targets, tasks.tolist()))
            self.coef_[tasks], self.intercept_[tasks] = model.coef_, model.intercept_
            sigma[tasks] = model.sigma_
        self.sigma_ = sigma

    def _latent(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.coef_.T + self.intercept_)


def _determined(X: FloatArray, targets: CensoredTargets) -> BoolArray:
    """Tasks recorded between their bounds often enough, along all directions of X, (T,)."""
    centred = X - X.mean(axis=0)
    scale = np.sqrt(np.square(centred).sum(axis=0))
    unit = centred / np.where(scale > 0.0, scale, 1.0)
    everywhere = _directions(unit)
    return np.array(
        [
            inside.sum() > everywhere + 1 and _directions(unit[inside]) == everywhere
            for inside in targets.observed.T
        ]
    )


def _directions(X: FloatArray) -> int:
    """Dimensions in which rows differ from each other."""
    centred = X - X.mean(axis=0)
    return int(np.linalg.matrix_rank(centred.T @ centred, rtol=1e-9, hermitian=True))


def _warn(targets: CensoredTargets, determined: BoolArray) -> None:
    names = [repr(targets.names[task]) for task in np.flatnonzero(~determined).tolist()]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    warnings.warn(
        f"target(s) {', '.join(names[:_NAMES_SHOWN])}{more} have too few values between their "
        f"bounds for a Tobit model without a penalty; a ridge of {_TINY_RIDGE} on β/σ was added",
        CensoringWarning,
        stacklevel=4,
    )


# Tobit models without a subspace: of no feature at all, and with a ridge on all of them.

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
