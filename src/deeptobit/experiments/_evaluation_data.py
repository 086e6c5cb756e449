"""A study or a cohort, as methods are compared on it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.datasets import Cohort
from deeptobit.study import StudyData
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Features, outcomes and groups of all rows.

    Attributes
    ----------
    name : str
        What the data are called.
    X : array of shape (N, D)
        NaN where the mean of the training rows stands in for what is missing.
    targets : CensoredTargets of shape (N, T)
    groups : array of shape (N,) or None
        Rows with the same label are never split between training and test rows.

    Examples
    --------
    >>> targets = CensoredTargets.from_bounds([0.0, 1.0, 2.0], lower=0)
    >>> data = EvaluationData("three", np.array([[1.0], [3.0], [np.nan]]), targets)
    >>> data.features(np.array([0, 2])).ravel()
    array([1., 3., 1.])
    """

    name: str
    X: FloatArray
    targets: CensoredTargets
    groups: NDArray[np.generic] | None = None

    def features(self, train: NDArray[np.intp]) -> FloatArray:
        """Features of all rows; gaps hold the mean of the training rows (0 if these have none)."""
        known = ~np.isnan(self.X[train])
        sums = np.where(known, self.X[train], 0.0).sum(axis=0)
        return np.where(np.isnan(self.X), sums / np.maximum(known.sum(axis=0), 1), self.X)

    def fingerprint(self) -> str:
        """A digest that changes with any number, bound, name or group."""
        targets = self.targets
        arrays = (self.X, targets.low, targets.high, targets.lower_bounds, targets.upper_bounds)
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        groups = None if self.groups is None else [str(label) for label in self.groups]
        digest.update(repr((targets.names, groups)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def data_of_study(data: StudyData, name: str) -> EvaluationData:
    """A study, whose missing features are filled anew in every split."""
    columns = (
        replace(column, means=tuple(nan for _ in column.means)) for column in data.encoder.columns
    )
    blank = replace(data.encoder, columns=tuple(columns))
    X = blank.encode(data.table).to_numpy(dtype=np.float64)
    return EvaluationData(name, X, data.targets, data.groups)


def data_of_cohort(cohort: Cohort, name: str) -> EvaluationData:
    """A cohort; people with several rows stay together.

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> data = data_of_cohort(make_clinical_cohort(50, random_state=0), "simulated")
    >>> data.X.shape, data.targets.shape, data.groups is None
    ((50, 138), (50, 30), True)
    """
    targets = CensoredTargets.from_bounds(cohort.Y, cohort.lower, cohort.upper)
    groups = cohort.groups
    repeated = len(set(groups)) < len(groups)
    X = cohort.X.to_numpy(dtype=np.float64)
    return EvaluationData(name, X, targets, groups if repeated else None)
