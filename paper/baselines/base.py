"""What every baseline can predict, given latent scores and noise scales."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.validation import check_is_fitted, validate_data

from deeptobit.arrays import BoolArray, FloatArray, in_precision_of, with_names
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import centred_anmse, read_targets
from deeptobit.targets import BoundsLike, CensoredTargets

# Folds of the training rows, by which every method is tuned.

Rows: TypeAlias = NDArray[np.intp]
Folds: TypeAlias = list[tuple[Rows, Rows]]


def inner_folds(
    n_rows: int, groups: ArrayLike | None = None, cv: int = 5, random_state: Any = None
) -> Folds:
    """Pairs of rows to train on and rows held out: shuffled, or whole groups.

    There are at most ``cv`` folds, and no more than there are rows or groups.

    Examples
    --------
    >>> [test.tolist() for _, test in inner_folds(4, ["a", "b", "a", "b"])]
    [[1, 3], [0, 2]]
    """
    rows = np.zeros((n_rows, 1))
    if groups is None:
        return list(KFold(min(cv, n_rows), shuffle=True, random_state=random_state).split(rows))
    labels = np.asarray(groups)
    return list(GroupKFold(min(cv, len(np.unique(labels)))).split(rows, None, labels))


def among(folds: Iterable[tuple[Rows, Rows]], known: BoolArray) -> Folds:
    """The same folds of the known rows alone, which are counted anew.

    A fold that holds out fewer than two of them has no R² and is left out.
    """
    place = np.cumsum(known) - 1
    inside = [(place[train[known[train]]], place[test[known[test]]]) for train, test in folds]
    return [(train, test) for train, test in inside if len(test) > 1]


class Baseline(RegressorMixin, BaseEstimator, ABC):
    r"""A regression whose predictive distribution is y = clip(η(x) + σε, lower, upper), ε Gaussian.

    A subclass learns η and σ in ``_learn``. ``prediction`` is what ``predict`` returns by default:
    the clipped score for a regression that was fitted to y itself, E[y|x] for one that was fitted
    to what is behind y.

    Parameters
    ----------
    lower, upper : number, one per task, dict by target name, or None
        Bounds; a :class:`~deeptobit.CensoredTargets` brings its own.
    cv : int or list of pairs of rows
        Folds by which the baseline is tuned, and its noise scale measured.
    random_state : int or None
        Shuffles the folds, and whatever else is random.

    Attributes
    ----------
    sigma_ : array of shape (T,)
    lower_, upper_ : arrays of shape (T,)
    target_names_ : list of str
    """

    noise_ = Gaussian()
    prediction: Literal["clip", "mean"] = "clip"

    sigma_: FloatArray

    def __init__(
        self,
        *,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, groups: ArrayLike | None = None) -> Baseline:
        """Tune and fit.

        Parameters
        ----------
        X : array or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        groups : array of shape (N,), optional
            Rows with the same label are never split between folds.
        """
        matrix = _read(self, X, ensure_min_samples=2)
        if not isinstance(y, CensoredTargets):
            y = read_targets(y, self.lower, self.upper)
        _check(matrix, y)
        self.lower_, self.upper_ = y.lower, y.upper
        self.target_names_ = list(y.names)
        self._one_dimensional = y.one_dimensional
        folds = self.cv
        if isinstance(folds, int):
            folds = inner_folds(len(y), groups, folds, self.random_state)
        self._learn(matrix, replace(y, one_dimensional=False), folds)
        return self

    def predict(self, X: Any, kind: Literal["mean", "clip", "latent"] | None = None) -> FloatArray:
        """E[y|x], the clipped score, or the score before censoring: (N, T), or (N,) for 1-d y."""
        predictive = self.predictive(X)
        kind = self.prediction if kind is None else kind
        if kind == "latent":
            result = predictive.latent
        elif kind == "clip":
            result = np.clip(predictive.latent, self.lower_, self.upper_)
        elif kind == "mean":
            result = predictive.mean()
        else:
            raise ValueError(f"kind must be 'mean', 'clip' or 'latent'; got {kind!r}")
        return in_precision_of(X, result[:, 0] if self._one_dimensional else result)

    def predictive(self, X: Any) -> Predictive:
        """The predictive distribution of every entry, (N, T)."""
        check_is_fitted(self)
        latent = self._latent(_read(self, X, reset=False))
        return Predictive(Gaussian(), latent, self.sigma_, self.lower_, self.upper_)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R² of the prediction, averaged over tasks; missing entries are skipped."""
        return 1.0 - float(centred_anmse(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Many outcomes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` came to its end."""
        return hasattr(self, "sigma_")

    @property
    def chosen_(self) -> dict[str, Any]:
        """Settings that it searched for itself, by name; empty where there was no search."""
        return {}

    @abstractmethod
    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        """Set ``sigma_``, and whatever ``_latent`` needs."""

    @abstractmethod
    def _latent(self, X: FloatArray) -> FloatArray:
        """Scores before censoring, (N, T)."""


def _read(estimator: Baseline, X: Any, **options: Any) -> FloatArray:
    """Features in double precision, with contiguous rows: sums round by the order in memory."""
    X = with_names(X)
    return np.asarray(validate_data(estimator, X, dtype=np.float64, order="C", **options))


def _check(X: FloatArray, targets: CensoredTargets) -> None:
    if len(targets) != len(X):
        raise ValueError(f"X has {len(X)} rows but y has {len(targets)}")
    for name, values in zip(targets.names, targets.values.T, strict=True):
        if np.isnan(values).all():
            raise ValueError(f"target {name!r} has no value; leave it out")
