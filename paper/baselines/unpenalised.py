"""Least squares, and Tobit models without a penalty wherever the data determine them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.app.study import Baseline, Folds, Regression, Taskwise
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import some_targets
from paper.arrays import BoolArray, FloatArray


class LeastSquaresBaseline(Regression):
    """Least squares, each task on the rows in which it is known; of minimum norm where D > N.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = LeastSquaresBaseline().fit(X, CensoredTargets.from_bounds(X @ [[1.0], [2.0]]))
    >>> model.predict(np.eye(2)).round(6).ravel()
    array([1., 2.])
    """

    def __init__(self, *, cv: int | Folds = 5, random_state: Any = 0) -> None:
        super().__init__("least squares", cv=cv, random_state=random_state)

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Taskwise:
        return Taskwise([LinearRegression() for _ in Y.T])


class FixedRegression(Regression):
    """A regression whose settings are known.

    Parameters
    ----------
    model : object
        Of the attribute ``model_`` of a fitted :class:`~deeptobit.app.study.Regression`.
    """

    def __init__(self, model: Any, *, cv: int | Folds = 5, random_state: Any = 0) -> None:
        super().__init__("fixed", cv=cv, random_state=random_state)
        self.model = model

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        return clone(self.model)


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
    >>> TobitBaseline().fit(X, CensoredTargets.from_bounds(Y, 0)).alpha_
    array([0., 0., 0.])
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
