"""Methods to compare the model of a study with: regressions of scikit-learn, Tobit models."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn import linear_model
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from deeptobit.app.study.evaluation import Folds, inner_folds
from deeptobit.app.study.fitting import fit_null
from deeptobit.app.study.tables import did_you_mean
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import AutoTobitRegressor, TobitRegressor
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import centred_anmse
from deeptobit.targets import CensoredTargets


class Baseline(BaseEstimator, ABC):
    r"""A method with the predictive distribution y = clip(η(x) + σε, lower, upper), ε Gaussian.

    A subclass estimates η and σ in ``_learn``, and computes η in ``_latent``. Its ``prediction`` is
    what ``predict`` returns by default: the clipped score for a regression fitted to the recorded
    values, E[y|x] for a model of the censored likelihood.

    Parameters
    ----------
    cv : int or list of pairs of rows
        Folds that tune the method, and estimate σ where the likelihood does not.
    random_state : int
        Seed of the folds, and of a forest.

    Attributes
    ----------
    sigma_, lower_, upper_ : arrays of shape (T,)
    """

    noise_ = Gaussian()
    prediction: Literal["clip", "mean"] = "clip"
    sigma_: FloatArray

    def __init__(self, *, cv: int | Folds = 5, random_state: Any = 0) -> None:
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: FloatArray, y: CensoredTargets) -> Self:
        """Tune and fit to X (N, D) and outcomes (N, T), some of which may be missing."""
        self.lower_, self.upper_ = y.lower, y.upper
        folds = self.cv
        if isinstance(folds, int):
            folds = inner_folds(len(y), None, folds, self.random_state)
        self._learn(X, replace(y, one_dimensional=False), folds)
        return self

    def predict(
        self, X: FloatArray, kind: Literal["mean", "clip", "latent"] | None = None
    ) -> FloatArray:
        """E[y|x], the clipped score, or the score before censoring, (N, T)."""
        latent, kind = self._latent(X), kind or self.prediction
        if kind == "mean":
            return Predictive(self.noise_, latent, self.sigma_, self.lower_, self.upper_).mean()
        return latent if kind == "latent" else np.clip(latent, self.lower_, self.upper_)

    @abstractmethod
    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        """Set ``sigma_`` and whatever ``_latent`` needs."""

    @abstractmethod
    def _latent(self, X: FloatArray) -> FloatArray:
        """Scores before censoring, (N, T)."""


class InterceptOnly(Baseline):
    """The censored normal distribution of every task, without features.

    Examples
    --------
    >>> y = CensoredTargets.from_bounds([30.0, 30.0, 28.0, 24.0], 0, 30)
    >>> model = InterceptOnly().fit(np.ones((4, 1)), y)
    >>> model.predict(np.ones((1, 1)), kind="latent").round(2), model.sigma_.round(2)
    (array([[29.66]]), array([4.32]))
    """

    prediction = "mean"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        model = fit_null(targets)
        self.intercept_, self.sigma_ = model.intercept_, model.sigma_

    def _latent(self, X: FloatArray) -> FloatArray:
        return np.tile(self.intercept_, (len(X), 1))


_ALPHAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class RidgeTobit(Baseline):
    """A Tobit model per task; the folds choose one ridge penalty by R² over all tasks.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(150, 10, 3, 2, random_state=0)
    >>> RidgeTobit().fit(X, CensoredTargets.from_bounds(Y, 0)).model_.alpha
    0.1
    """

    prediction = "mean"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        def error(alpha: float) -> float:
            held_out = predict_held_out(TobitRegressor(alpha=alpha), X, targets, folds)
            return float(centred_anmse(targets, held_out))

        self.model_ = TobitRegressor(alpha=min(_ALPHAS, key=error)).fit(X, targets)
        self.sigma_ = self.model_.sigma_

    def _latent(self, X: FloatArray) -> FloatArray:
        return self.model_.predict(X, kind="latent")


class Regression(Baseline):
    r"""A regression of scikit-learn, fitted to recorded values and clipped to the bounds.

    Features and outcomes are standardised. The noise scale is that of errors on held-out rows,

    .. math:: \sigma_t^2 = \frac{1}{n_t}\sum_i \left(y_{it} - \hat y_{it}^{(-i)}\right)^2

    over the known entries of task t, each predicted by a model of the other folds.

    Parameters
    ----------
    kind : {"ridge", "lasso", "mt-lasso", "forest"}
    cv, random_state
        As for every :class:`Baseline`.

    Attributes
    ----------
    model_ : object with ``predict``
        The tuned regression, in standard units.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(150, 10, 3, 2, random_state=0)
    >>> Regression("ridge").fit(X, CensoredTargets.from_bounds(Y, 0)).sigma_.round(1)
    array([1.7, 2.1, 2.2])
    """

    def __init__(self, kind: str = "ridge", *, cv: int | Folds = 5, random_state: Any = 0) -> None:
        super().__init__(cv=cv, random_state=random_state)
        self.kind = kind

    def _tune(self, X: FloatArray, Y: FloatArray, folds: Folds) -> Any:
        """The unfitted regression with chosen settings, for X and Y in standard units."""
        options = {"random_state": self.random_state} if self.kind == "forest" else {}
        return _TUNE[self.kind](X, Y, folds, **options)

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        self._features, self._outcomes = StandardScaler().fit(X), StandardScaler()
        X, Y = self._features.transform(X), self._outcomes.fit_transform(targets.values)
        # A lasso may not converge at the smallest penalties, which are not chosen.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            tuned = self._tune(X, Y, folds)
            errors = Y - predict_held_out(tuned, X, Y, folds)
            self.model_ = tuned.fit(X, Y)
        spread = np.sqrt(np.nanmean(np.square(errors), axis=0))
        self.sigma_ = self._outcomes.scale_ * np.maximum(spread, SIGMA_FLOOR)

    def _latent(self, X: FloatArray) -> FloatArray:
        scores = self.model_.predict(self._features.transform(X))
        return np.asarray(self._outcomes.inverse_transform(scores))


def predict_held_out(model: Any, X: FloatArray, Y: Any, folds: Folds) -> FloatArray:
    """Predictions of every row by a model that was not fitted to it, (N, T)."""
    held_out = np.full(Y.shape, np.nan)
    for train, test in folds:
        held_out[test] = clone(model).fit(X[train], Y[train]).predict(X[test])
    return held_out


# Regressions of scikit-learn on outcomes some of which are missing.


def fill(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Y with missing entries predicted by ridge regressions on the rows in which they are known.

    Tasks that are known in the same rows share a regression.
    """
    filled = Y.copy()
    patterns, member = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for number, known in enumerate(patterns.T):
        if not known.all():
            tasks = np.flatnonzero(member == number)
            ridge = linear_model.RidgeCV(np.logspace(0, 5, 10))
            ridge.fit(X[known], Y[np.ix_(known, tasks)])
            filled[np.ix_(~known, tasks)] = ridge.predict(X[~known]).reshape(-1, len(tasks))
    return filled


@dataclass(eq=False)
class Taskwise(BaseEstimator):
    """One model per task, each fitted to the rows in which its task is known."""

    models: Sequence[Any]

    def fit(self, X: FloatArray, Y: FloatArray) -> Self:
        """Fit every task."""
        for model, y in zip(self.models, Y.T, strict=True):
            known = ~np.isnan(y)
            model.fit(X[known], y[known])
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        return np.column_stack([model.predict(X) for model in self.models])


@dataclass(eq=False)
class Filled(BaseEstimator):
    """One model of all tasks, fitted to outcomes without gaps; see :func:`fill`."""

    model: Any

    def fit(self, X: FloatArray, Y: FloatArray) -> Self:
        """Fill and fit."""
        self.model.fit(X, fill(X, Y))
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        return np.asarray(self.model.predict(X)).reshape(len(X), -1)


_RIDGES = np.logspace(0, 5, 30)
_PATH: dict[str, Any] = {"alphas": 30, "eps": 0.02}  # down to 2 % of the penalty without effects
_LEAVES = (3, 10, 25)


def tune_ridge(X: FloatArray, Y: FloatArray, folds: Folds) -> Taskwise:
    """Ridge regressions with one penalty for all tasks.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> tune_ridge(X, X @ [[1.0], [0.0], [2.0]], inner_folds(50, random_state=0)).models
    [Ridge(alpha=np.float64(1.0))]
    """
    search = linear_model.RidgeCV(_RIDGES, cv=folds).fit(X, fill(X, Y))
    return Taskwise([linear_model.Ridge(search.alpha_) for _ in Y.T])


def tune_lasso(X: FloatArray, Y: FloatArray, folds: Folds) -> Taskwise:
    """Lassos with a penalty for every task."""
    searches = [linear_model.LassoCV(cv=among(folds, ~np.isnan(y)), **_PATH) for y in Y.T]
    fitted = Taskwise(searches).fit(X, Y).models
    return Taskwise([linear_model.Lasso(search.alpha_) for search in fitted])


def among(folds: Folds, known: BoolArray) -> Folds:
    """The same folds as indices into the known rows, without folds that hold out fewer than two."""
    place = np.cumsum(known) - 1
    inside = [(place[train[known[train]]], place[test[known[test]]]) for train, test in folds]
    return [(train, test) for train, test in inside if len(test) > 1]


def tune_multi_task_lasso(X: FloatArray, Y: FloatArray, folds: Folds) -> Filled:
    """The multi-task lasso (ℓ2,1): a feature has an effect on all tasks or on none."""
    search = linear_model.MultiTaskLassoCV(cv=folds, tol=1e-3, **_PATH).fit(X, fill(X, Y))
    return Filled(linear_model.MultiTaskLasso(search.alpha_, tol=1e-3))


def tune_forest(
    X: FloatArray, Y: FloatArray, folds: Folds, random_state: Any = 0
) -> Filled | Taskwise:
    """A random forest of all tasks; the folds choose the least number of rows in a leaf."""

    def forest(leaf: int) -> Filled | Taskwise:
        model = RandomForestRegressor(
            100, min_samples_leaf=leaf, max_features=1 / 3, random_state=random_state
        )
        return Filled(model) if Y.shape[1] > 1 else Taskwise([model])

    def error(leaf: int) -> float:
        return float(np.nansum(np.square(Y - predict_held_out(forest(leaf), X, Y, folds))))

    return forest(min(_LEAVES, key=error))


_TUNE: Mapping[str, Callable[..., Filled | Taskwise]] = {
    "ridge": tune_ridge,
    "lasso": tune_lasso,
    "mt-lasso": tune_multi_task_lasso,
    "forest": tune_forest,
}


# The methods by the names that users type.

FLAGSHIP = "network"
METHODS = ("null", *_TUNE, "tobit", FLAGSHIP)


def make_methods(
    names: Iterable[str] | None = None, *, network: Any = None, seed: int = 0
) -> dict[str, Any]:
    """Unfitted estimators by name, in the order of ``METHODS``.

    Parameters
    ----------
    names : iterable of str, optional
        Some of ``METHODS``; all by default.
    network : estimator, optional
        The method ``network``, the model of the study; ``AutoTobitRegressor`` by default.
    seed : int
        Seed of methods that draw random numbers.

    Examples
    --------
    >>> list(make_methods(["network", "ridge"]))
    ['ridge', 'network']
    >>> make_methods(["rigde"])
    Traceback (most recent call last):
        ...
    ValueError: there is no method 'rigde' (known are null, ridge, lasso, mt-lasso, forest, tobit,
    network); did you mean 'ridge'?
    """
    wanted, known = list(METHODS if names is None else names), ", ".join(METHODS)
    for name in wanted:
        if name not in METHODS:
            hint = did_you_mean(name, METHODS)
            raise ValueError(f"there is no method {name!r} (known are {known}){hint}")
    if not wanted:
        raise ValueError(f"there is no method to compare; known are {known}")
    every: dict[str, Any] = {
        "null": InterceptOnly(random_state=seed),
        **{name: Regression(name, random_state=seed) for name in _TUNE},
        "tobit": RidgeTobit(random_state=seed),
        FLAGSHIP: network or AutoTobitRegressor(random_state=seed),
    }
    return {name: method for name, method in every.items() if name in wanted}
