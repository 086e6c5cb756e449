"""Rows that train and rows that are held out, and how well the latter are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.arrays import FloatArray
from deeptobit.layer import TargetScaling
from deeptobit.likelihood import Gaussian, Noise, NoiseByTask, Predictive
from deeptobit.targets import CensoredTargets

Scoring = Literal["r2", "log"]


class Fold(NamedTuple):
    """Indices of rows to train on and of rows held out."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def read_folds(cv: Any, n_samples: int, groups: ArrayLike | None, random_state: Any) -> list[Fold]:
    """Folds from a number, a splitter of scikit-learn or an iterable of index pairs.

    A number means shuffled rows, or whole groups where groups are given, so that the visits of one
    person stay together.

    Examples
    --------
    >>> [fold.test.tolist() for fold in read_folds(2, 4, ["a", "b", "a", "b"], None)]
    [[1, 3], [0, 2]]
    """
    labels = None if groups is None else _read_groups(groups, n_samples)
    if isinstance(cv, Integral):
        _check_number(int(cv), n_samples, labels)
        if labels is None:
            cv = KFold(int(cv), shuffle=True, random_state=random_state)
        else:
            cv = GroupKFold(int(cv))
    if hasattr(cv, "split") and not isinstance(cv, str):
        cv = _split(cv, n_samples, labels)
    elif isinstance(cv, str) or not hasattr(cv, "__iter__"):
        raise ValueError(
            f"cv must be a number of folds, a splitter, or pairs of train and test rows; got {cv!r}"
        )
    folds = [Fold(np.arange(n_samples)[train], np.arange(n_samples)[test]) for train, test in cv]
    if not folds:
        raise ValueError("cv has no fold: there is nothing to choose by")
    return folds


def _read_groups(groups: ArrayLike, n_samples: int) -> NDArray[Any]:
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups must hold one label per row, shape ({n_samples},); got shape {labels.shape}"
        )
    return labels


def _check_number(cv: int, n_samples: int, labels: NDArray[Any] | None) -> None:
    """So many folds must be possible."""
    if cv < 2:
        raise ValueError(
            f"cv must be at least 2, one fold to hold out and one to learn from; got {cv}"
        )
    what, number = "rows", n_samples
    if labels is not None:
        what, number = "groups", len(np.unique(labels))
    if cv > number:
        raise ValueError(
            f"cv={cv} needs at least {cv} {what}, and there are {number}; choose a smaller cv"
        )


def _split(cv: Any, n_samples: int, labels: NDArray[Any] | None) -> list[Any]:
    """The pairs of a splitter, whose own errors do not tell where it comes from."""
    try:
        return list(cv.split(np.zeros((n_samples, 1)), None, labels))
    except ValueError as error:
        raise ValueError(
            f"cv={cv!r} cannot split {n_samples} rows "
            f"{'without' if labels is None else 'with'} groups: {error}"
        ) from error


@dataclass(frozen=True)
class HeldOut:
    """The outcomes of all folds, each measured in the scale of its task.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    weight : array of shape (N,)
    folds : list of Fold
    families : tuple of Noise
        What the noise may be.
    """

    targets: CensoredTargets
    weight: FloatArray
    folds: list[Fold]
    families: tuple[Noise, ...]

    @property
    def noise(self) -> Noise:
        """The family that models are fitted and scored with: the first, or Gaussian if by task."""
        first = self.families[0]
        return Gaussian() if isinstance(first, NoiseByTask) else first

    @cached_property
    def scaling(self) -> TargetScaling:
        """Location and scale of every task."""
        return TargetScaling.build(self.targets, self.weight / self.weight.sum(), center=True)

    @cached_property
    def share(self) -> FloatArray:
        """Weight of each entry that has a value; every task has 1 to distribute, (N, T)."""
        share = np.where(self.targets.has_value, self.weight[:, None], 0.0)
        total = share.sum(axis=0)
        return np.asarray(share / np.where(total > 0.0, total, 1.0))

    def errors(self, fold: Fold, latent: FloatArray, sigma: FloatArray) -> FloatArray:
        """Errors of E[y|x] on the rows held out, times the root of their share, (..., n, T)."""
        targets = self.targets[fold.test]
        mean = _predictive(self.noise, latent, sigma, targets).mean()
        share = self.share[fold.test]
        difference = np.where(share > 0.0, targets.values - mean, 0.0)
        return np.asarray(np.sqrt(share) * difference / self.scaling.scale)

    def score(self, fold: Fold, latent: FloatArray, sigma: FloatArray, scoring: Scoring) -> float:
        """How well a fold is predicted; higher is better."""
        if scoring == "r2":
            errors = self.errors(fold, latent, sigma)
            return self.r2(fold, float(np.square(errors).sum()))
        targets = self.targets[fold.test]
        known = np.where(targets.missing, 0.0, self.weight[fold.test, None])
        log_density = _predictive(self.noise, latent, sigma, targets).log_density(
            targets.low, targets.high
        )
        return float((known * log_density).sum() / known.sum())

    def r2(self, fold: Fold, squared_error: float) -> float:
        """1 − squared error over that of the tasks' means, from a sum of squared ``errors``.

        0 where nothing that is held out has a value, as if nothing but intervals is known.
        """
        total = float(self.share[fold.test].sum())
        return 1.0 - squared_error / total if total > 0.0 else 0.0


def check_folds(targets: CensoredTargets, weight: FloatArray, folds: list[Fold]) -> None:
    """Every task needs an entry to learn from in every fold, and an entry held out in some."""
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


def _predictive(
    noise: Noise, latent: FloatArray, sigma: FloatArray, targets: CensoredTargets
) -> Predictive:
    return Predictive(noise, latent, sigma, targets.lower_bounds, targets.upper_bounds)
