"""Tobit models without a penalty, wherever the data determine them."""

from __future__ import annotations

import warnings

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.baselines._base import Baseline
from deeptobit.baselines._folds import Folds
from deeptobit.estimators import TobitRegressor
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics._selection import some_targets
from deeptobit.targets import CensoredTargets

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
