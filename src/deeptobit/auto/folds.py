"""Folds of rows, and how well held-out rows are predicted."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit

from deeptobit.arrays import FloatArray, read_groups
from deeptobit.layer import TargetScaling
from deeptobit.likelihood import Noise, Predictive
from deeptobit.targets import CensoredTargets

Scoring = Literal["r2", "log"]
MANY_ROWS = 5000  # more than these need no folds: one part held out is enough
_HELD_OUT = 4000  # rows at most, where one part is held out


class Fold(NamedTuple):
    """Indices of training rows and of held-out rows."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def make_folds(
    n_rows: int, cv: Any, groups: ArrayLike | None = None, random_state: Any = None
) -> list[Fold]:
    """Folds from a number, a splitter of scikit-learn or an iterable of index pairs.

    A number gives folds of shuffled rows. With ``groups`` it gives folds of whole groups, so that
    the visits of one person stay together. ``"auto"`` is 5, or a single fold that holds out a
    fifth, at most 4,000 rows, where there are more than 5,000.

    Examples
    --------
    >>> [fold.test.tolist() for fold in make_folds(4, 2, ["a", "b", "a", "b"])]
    [[1, 3], [0, 2]]
    """
    labels = None if groups is None else read_groups(groups, n_rows)
    if isinstance(cv, str) and cv == "auto":
        cv = 5
        if n_rows > MANY_ROWS:
            kind = ShuffleSplit if labels is None else GroupShuffleSplit
            share = min(0.2, _HELD_OUT / n_rows)
            cv = kind(1, test_size=share, random_state=random_state)
    if isinstance(cv, (int, np.integer)):
        what, number = ("rows", n_rows) if labels is None else ("groups", len(np.unique(labels)))
        if cv < 2:
            raise ValueError(f"cv must be at least 2; got {cv}")
        if cv > number:
            raise ValueError(
                f"cv={cv} needs at least {cv} {what}, and there are {number}; choose a smaller cv"
            )
        shuffled = KFold(int(cv), shuffle=True, random_state=random_state)
        cv = shuffled if labels is None else GroupKFold(int(cv))
    if hasattr(cv, "split") and not isinstance(cv, str):
        try:
            cv = list(cv.split(np.zeros((n_rows, 1)), None, labels))
        except ValueError as error:  # which does not say whose splitter it is
            raise ValueError(
                f"cv={cv!r} cannot split {n_rows} rows "
                f"{'without' if labels is None else 'with'} groups: {error}"
            ) from error
    elif isinstance(cv, str) or not hasattr(cv, "__iter__"):
        raise ValueError(
            "cv must be 'auto', a number of folds, a splitter, or pairs of train and test rows; "
            f"got {cv!r}"
        )
    rows = np.arange(n_rows)
    folds = [Fold(rows[train], rows[test]) for train, test in cv]
    if not folds:
        raise ValueError("cv has no folds")
    return folds


def check_folds(targets: CensoredTargets, weight: FloatArray, folds: list[Fold]) -> None:
    """Every task needs a known entry in the training rows, every fold one in its held-out rows."""
    known = ~targets.missing & (weight > 0.0)[:, None]
    for number, fold in enumerate(folds):
        empty = np.flatnonzero(~known[fold.train].any(axis=0))
        if empty.size:
            raise ValueError(
                f"target {targets.names[int(empty[0])]!r} has no entry in the training rows of "
                f"fold {number}; drop it, or choose other folds"
            )
        if not known[fold.test].any():
            raise ValueError(f"fold {number} holds out no known entry; choose other folds")


@dataclass(frozen=True)
class HeldOutFolds:
    """The outcomes of all folds, and how to score predictions of them.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    weight : array of shape (N,)
    folds : list of Fold
    noise : Noise
        The family under which predictions are scored.
    """

    targets: CensoredTargets
    weight: FloatArray
    folds: list[Fold]
    noise: Noise

    @cached_property
    def scaling(self) -> TargetScaling:
        """Location and scale of every task."""
        return TargetScaling.build(self.targets, self.weight / self.weight.sum(), center=True)

    @cached_property
    def share(self) -> FloatArray:
        """Weights of the entries that have a value, summing to 1 in every task, (N, T)."""
        share = np.where(self.targets.has_value, self.weight[:, None], 0.0)
        total = share.sum(axis=0)
        return np.asarray(share / np.where(total > 0.0, total, 1.0))

    def errors(self, rows: NDArray[np.intp], latent: FloatArray, sigma: FloatArray) -> FloatArray:
        """Errors of E[y|x] in units of the task's scale, times the root of ``share``, (..., n, T).

        The sum of their squares is the mean squared error, summed over tasks.
        """
        mean = self._predictive(rows, latent, sigma).mean()
        share = self.share[rows]
        difference = np.where(share > 0.0, self.targets[rows].values - mean, 0.0)
        return np.asarray(np.sqrt(share) * difference / self.scaling.scale)

    def score(self, fold: Fold, latent: FloatArray, sigma: FloatArray, scoring: Scoring) -> float:
        """R² or mean log density of the held-out rows; higher is better."""
        return float(self.row_scores(fold, latent, sigma, scoring).sum())

    def row_scores(
        self, fold: Fold, latent: FloatArray, sigma: FloatArray, scoring: Scoring
    ) -> FloatArray:
        """What each held-out row adds to the score, (n,)."""
        if scoring == "r2":
            share = self.share[fold.test].sum(axis=1)
            squares = np.square(self.errors(fold.test, latent, sigma)).sum(axis=1)
            return np.asarray((share - squares) / max(share.sum(), np.finfo(np.float64).tiny))
        targets = self.targets[fold.test]
        known = np.where(targets.missing, 0.0, self.weight[fold.test, None])
        predictive = self._predictive(fold.test, latent, sigma)
        log_density = predictive.log_density(targets.low, targets.high)
        return np.asarray((known * log_density).sum(axis=1) / known.sum())

    def r2(self, fold: Fold, squared_errors: FloatArray) -> FloatArray:
        """1 − squared error / variance of the tasks, from sums of squared ``errors``.

        0 if no held-out entry has a value (all are intervals).
        """
        total = float(self.share[fold.test].sum())
        return 1.0 - squared_errors / total if total > 0.0 else np.zeros_like(squared_errors)

    def _predictive(
        self, rows: NDArray[np.intp], latent: FloatArray, sigma: FloatArray
    ) -> Predictive:
        targets = self.targets[rows]
        return Predictive(self.noise, latent, sigma, targets.lower_bounds, targets.upper_bounds)
