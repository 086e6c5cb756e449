"""Data of a comparison, and its splits into training and test rows, the same for every method."""

import hashlib
from dataclasses import dataclass, replace
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

import deeptobit
from deeptobit.app.study.columns import FEWEST
from deeptobit.app.study.config import EvaluationSettings
from deeptobit.app.study.data import StudyData
from deeptobit.app.study.measures import varies
from deeptobit.arrays import FloatArray
from deeptobit.auto import make_folds
from deeptobit.targets import CensoredTargets

Rows: TypeAlias = NDArray[np.intp]
Folds: TypeAlias = list[tuple[Rows, Rows]]


@dataclass(frozen=True)
class Protocol(EvaluationSettings):
    """How methods are compared; the fields are those of ``[evaluation]`` in a study file.

    Attributes
    ----------
    method : {"splits", "folds"}
        Repeated random splits at every share, or every row held out once.
    train_shares : tuple of float
        Shares of the rows, or of the groups, to train on.
    repeats : int
        Splits for every share.
    folds : int
    coverage : float
        Of the prediction intervals.
    seed : int
        Of the splits, and of the folds by which methods are tuned.
    inner_folds : int
        Folds of the training rows by which methods are tuned.
    """

    repeats: int = 10
    inner_folds: int = 5

    def __post_init__(self) -> None:
        """Check shares and repeats."""
        shares = list(self.train_shares)
        if not shares or not all(0.0 < share < 1.0 for share in shares):
            raise ValueError(f"train shares must lie between 0 and 1; got {shares}")
        if len(set(shares)) < len(shares):
            raise ValueError(f"train shares must differ; got {shares}")
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1; got {self.repeats}")


class Split(NamedTuple):
    """Indices of rows to train on and of rows to test on."""

    share: float
    repeat: int
    train: Rows
    test: Rows

    @property
    def key(self) -> tuple[float, int]:
        """Share and repeat, which identify the split."""
        return self.share, self.repeat


def draw_splits(n_rows: int, groups: NDArray[np.generic] | None, protocol: Protocol) -> list[Split]:
    """Splits of rows, or of whole groups where there are any.

    Examples
    --------
    >>> splits = draw_splits(10, None, Protocol(train_shares=(0.4, 0.8), repeats=2))
    >>> [(split.share, split.repeat, len(split.train), len(split.test)) for split in splits]
    [(0.4, 0, 4, 6), (0.4, 1, 4, 6), (0.8, 0, 8, 2), (0.8, 1, 8, 2)]
    >>> whole = draw_splits(4, np.array(["a", "b", "a", "c"]), Protocol("folds", folds=3))
    >>> [split.test.tolist() for split in whole]
    [[0, 2], [3], [1]]
    """
    n_units, units = (n_rows, "rows") if groups is None else (len(set(groups)), "groups")
    if protocol.method == "folds":
        if n_units < max(protocol.folds, 3):
            raise ValueError(f"{protocol.folds} folds need as many {units}, and three at least")
        share = 1.0 - 1.0 / protocol.folds
        folds = make_folds(n_rows, protocol.folds, groups, protocol.seed)
        return [Split(share, repeat, *fold) for repeat, fold in enumerate(folds)]
    splits = []
    for share in protocol.train_shares:
        if share * n_units < 2 or (1.0 - share) * n_units < 1:
            raise ValueError(
                f"{n_units} {units} are too few to train on {share:.0%} of them and test on others"
            )
        kind = ShuffleSplit if groups is None else GroupShuffleSplit
        random = kind(protocol.repeats, train_size=share, random_state=protocol.seed)
        for repeat, (train, test) in enumerate(random.split(np.zeros((n_rows, 1)), None, groups)):
            splits.append(Split(share, repeat, train, test))
    return splits


def inner_folds(
    n_rows: int,
    groups: NDArray[np.generic] | None = None,
    n_folds: int = 5,
    random_state: Any = None,
) -> Folds:
    """Folds of training rows that tune a method: shuffled rows, or whole groups.

    There are at most ``n_folds``, and no more than there are rows or groups.

    Examples
    --------
    >>> [test.tolist() for _, test in inner_folds(4, np.array(["a", "b", "a", "b"]))]
    [[1, 3], [0, 2]]
    """
    n_units = n_rows if groups is None else len(set(groups))
    return list(make_folds(n_rows, min(n_folds, n_units), groups, random_state))


class Job(NamedTuple):
    """One method on one split: the folds of its training rows, and the tasks that it has."""

    method: str
    split: Split
    folds: Folds
    tasks: list[int]

    @property
    def key(self) -> tuple[float, int, str]:
        """Share, repeat and method, which identify its rows among the results."""
        return (*self.split.key, self.method)

    def __str__(self) -> str:
        """Label of a progress bar."""
        return f"{self.method}, {self.split.share:.0%} to train on, repeat {self.split.repeat + 1}"


# The data that methods are compared on, from a study or a cohort.


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Features, outcomes and groups of all rows.

    Attributes
    ----------
    name : str
        What the data are called.
    X : array of shape (N, D)
        NaN where missing; :meth:`features` fills in means of training rows.
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

    def features(self, train: Rows) -> FloatArray:
        """Features of all rows, missing ones filled with the mean of the training rows (or 0)."""
        filler = SimpleImputer(keep_empty_features=True).fit(self.X[train])
        return np.asarray(filler.transform(self.X))

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
    """The data of a study; missing features are left for every split to fill in."""
    columns = [replace(column, means=(nan,) * len(column.means)) for column in data.encoder.columns]
    X = replace(data.encoder, columns=tuple(columns)).matrix(data.table)
    return EvaluationData(name, X, data.targets, data.groups)


def data_of_cohort(cohort: "deeptobit.datasets.Cohort", name: str) -> EvaluationData:
    """The data of a cohort; several rows of a person form a group.

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> data = data_of_cohort(make_clinical_cohort(50, random_state=0), "simulated")
    >>> data.X.shape, data.targets.shape, data.groups is None
    ((50, 138), (50, 30), True)
    """
    targets = CensoredTargets.from_bounds(cohort.Y, cohort.lower, cohort.upper)
    groups = cohort.groups if len(set(cohort.groups)) < len(cohort.groups) else None
    return EvaluationData(name, cohort.X.to_numpy(dtype=np.float64), targets, groups)


# Targets that can be fitted and measured in a split.


class Skipped(NamedTuple):
    """A target that is left out of a split, for all methods, and why."""

    share: float
    repeat: int
    target: str
    reason: str


def find_usable(
    targets: CensoredTargets, split: Split, folds: Folds
) -> tuple[list[int], list[Skipped]]:
    """Tasks that can be compared in a split, and those that cannot.

    A target needs two recorded values per fold, values that vary in the training rows of every
    fold, and values that vary in the test rows. With fewer than five test values, measures would
    reveal them.
    """
    train, test = targets[split.train], targets[split.test]
    least = 2 * len(folds)
    varied = np.all([varies(train[rows]) for rows, _ in folds], axis=0)
    problems = {
        f"fewer than {least} values to train on": train.has_value.sum(axis=0) < least,
        "its values to train on are all the same": ~varied,
        f"fewer than {FEWEST} values to test on": test.has_value.sum(axis=0) < FEWEST,
        "its values to test on are all the same": ~varies(test),
    }
    usable, skipped = [], []
    for task, name in enumerate(targets.names):
        reason = next((reason for reason, there in problems.items() if there[task]), None)
        if reason is None:
            usable.append(task)
        else:
            skipped.append(Skipped(*split.key, name, reason))
    return usable, skipped
