"""Compare methods: the same splits for all, fits to training rows, measures of held-out rows."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from threadpoolctl import threadpool_limits

import deeptobit
from deeptobit.app.study.columns import FEWEST
from deeptobit.app.study.config import EvaluationSettings, versions
from deeptobit.app.study.data import StudyData
from deeptobit.app.study.measures import measure, varies
from deeptobit.app.study.tables import write_whole
from deeptobit.arrays import FloatArray
from deeptobit.auto import make_folds
from deeptobit.extras import require
from deeptobit.likelihood import Predictive
from deeptobit.metrics import some_targets
from deeptobit.targets import CensoredTargets

Rows: TypeAlias = NDArray[np.intp]
Folds: TypeAlias = list[tuple[Rows, Rows]]
Groups: TypeAlias = NDArray[np.generic] | None


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


def draw_splits(n_rows: int, groups: Groups, protocol: Protocol) -> list[Split]:
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
        folds = make_folds(n_rows, random, groups)
        splits += [Split(share, repeat, *fold) for repeat, fold in enumerate(folds)]
    return splits


def inner_folds(
    n_rows: int, groups: Groups = None, n_folds: int = 5, random_state: Any = None
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
    groups: Groups = None

    def features(self, train: Rows) -> FloatArray:
        """Features of all rows, missing ones filled with the mean of the training rows (or 0)."""
        filler = SimpleImputer(keep_empty_features=True).fit(self.X[train])
        return np.asarray(filler.transform(self.X))

    def fingerprint(self) -> str:
        """A digest that changes with any number, bound, name or group."""
        targets = self.targets
        arrays = (self.X, targets.low, targets.high, targets.lower_bounds, targets.upper_bounds)
        groups = None if self.groups is None else list(map(str, self.groups))
        # The order of numbers in memory does not count.
        return str(joblib.hash((*map(np.ascontiguousarray, arrays), targets.names, groups)))


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
    people = cohort.X.index
    groups = None if people.is_unique else people.to_numpy()
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
    reasons = {
        f"fewer than {least} values to train on": train.has_value.sum(axis=0) < least,
        "its values to train on are all the same": ~varied,
        f"fewer than {FEWEST} values to test on": test.has_value.sum(axis=0) < FEWEST,
        "its values to test on are all the same": ~varies(test),
    }
    problems = pd.DataFrame(reasons, index=pd.Index(targets.names))
    wrong = problems.any(axis=1)
    first = problems[wrong].idxmax(axis=1)
    skipped = [Skipped(*split.key, str(name), str(reason)) for name, reason in first.items()]
    return np.flatnonzero(~wrong).tolist(), skipped


# Every method on every split.

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of a comparison.

    Attributes
    ----------
    results : DataFrame
        One row for every share, repeat, method and target. ``crps`` and ``width`` are in units of
        the target, ``scale`` is its standard deviation in the training rows, ``seconds`` and
        ``warnings`` are of the method on all targets of the split.
    skipped : tuple of Skipped
        Targets that were left out of a split, for all methods.
    protocol : Protocol
    """

    results: pd.DataFrame
    skipped: tuple[Skipped, ...]
    protocol: Protocol


def evaluate(
    data: EvaluationData,
    methods: Mapping[str, Any],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    store: "ResultStore | None" = None,
    progress: Progress = lambda done, total, label: None,
) -> Evaluation:
    """Fit every method to every split and measure it on the test rows.

    Parameters
    ----------
    data : EvaluationData
    methods : mapping of str to estimators
        Unfitted; each is tuned by the same folds of the training rows.
    protocol : Protocol
    n_jobs : int, optional
        Fits to run in parallel; the measures do not depend on it.
    store : ResultStore, optional
        Stores results after every fit; fits that it has are not repeated.
    progress : callable, optional
        Called with the number of fits done, their total, and a label of the last one; the first
        call, without a label, counts the fits of ``store``.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.app.study import data_of_cohort, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(120, random_state=0), "simulated")
    >>> short = Protocol(train_shares=(0.6,), repeats=1)
    >>> found = evaluate(data, make_methods(["null", "ridge"]), short)
    >>> found.results.groupby("method")["r2"].mean().round(2).to_dict()
    {'null': -0.03, 'ridge': 0.07}
    """
    jobs: list[Job] = []
    skipped: list[Skipped] = []
    for split in draw_splits(len(data.targets), data.groups, protocol):
        groups = None if data.groups is None else data.groups[split.train]
        folds = inner_folds(len(split.train), groups, protocol.inner_folds, protocol.seed)
        tasks, left_out = find_usable(data.targets, split, folds)
        skipped += left_out
        jobs += [Job(method, split, folds, tasks) for method in methods if tasks]
    if not jobs:
        reason = f"{skipped[0].target!r}: {skipped[0].reason}"
        raise ValueError(f"no split of {data.name} can compare anything ({reason})")
    work = partial(_fit_and_measure, data, methods, protocol)
    results = run_jobs(jobs, work, n_jobs=n_jobs, store=store, progress=progress)
    return Evaluation(results, tuple(skipped), protocol)


def _fit_and_measure(
    data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol, job: Job
) -> pd.DataFrame:
    """Measures of one method on one split, a row per target."""
    split, X = job.split, data.features(job.split.train)
    targets = some_targets(data.targets, job.tasks)
    train, test = targets[split.train], targets[split.test]
    # Warnings are counted: a hundred fits would repeat the same ones.
    with threadpool_limits(1), warnings.catch_warnings(record=True, action="always") as caught:
        model = clone(methods[job.method])
        if "cv" in model.get_params(deep=False):
            model.set_params(cv=job.folds)
        started = perf_counter()
        model.fit(X[split.train], train)
        seconds = perf_counter() - started
        latent = model.predict(X[split.test], kind="latent")
        bounds = test.lower_bounds, test.upper_bounds
        predictive = Predictive(model.noise_, latent, model.sigma_, *bounds)
        point = None if model.prediction == "mean" else np.clip(latent, *bounds)
        measured = measure(test, predictive, protocol.coverage, point=point)
    where = {"share": split.share, "repeat": split.repeat, "method": job.method}
    sizes = {"target": targets.names, "n_train": len(train), "n_test": len(test)}
    measured |= {"centred_anmse": 1.0 - measured["r2"], "scale": np.nanstd(train.values, axis=0)}
    cost = {"seconds": seconds, "warnings": len(caught), "seed": protocol.seed}
    entries = {"entries": (~test.missing).sum(axis=0)}
    return pd.DataFrame(where | sizes | entries | measured | cost)


# Fits in parallel, continued where an earlier run stopped.


def run_jobs(
    jobs: Sequence[Job],
    work: Callable[[Job], pd.DataFrame],
    *,
    n_jobs: int | None = None,
    store: "ResultStore | None" = None,
    progress: Progress = lambda done, total, label: None,
) -> pd.DataFrame:
    """The rows of all jobs in their order; those that ``store`` has are not computed again.

    ``work`` returns the rows of a job, with columns ``share``, ``repeat`` and ``method``. The other
    parameters are those of :func:`evaluate`.
    """
    found = {} if store is None else _by_job(*store.read())
    by_key = {job.key: job for job in jobs}

    def joined() -> pd.DataFrame:
        return pd.concat([found[key] for key in by_key if key in found], ignore_index=True)

    left = [job for key, job in by_key.items() if key not in found]
    before = len(jobs) - len(left)
    progress(before, len(jobs), "")
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    fits = parallel(delayed(work)(job) for job in left)
    for count, frame in enumerate(fits, start=before + 1):
        found |= _by_job(frame)
        if store is not None:
            store.write(joined())
        progress(count, len(jobs), str(by_key[list(found)[-1]]))
    return joined()


def _by_job(*tables: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """The rows of every job, by its key."""
    keys = ["share", "repeat", "method"]
    return {key: rows for table in tables for key, rows in table.groupby(keys, sort=False)}


# Results in a folder, which a later run continues only with the same data and settings.

SETTINGS, RESULTS = "settings.json", "results.parquet"


@dataclass(frozen=True)
class ResultStore:
    """A folder with ``settings.json`` and ``results.parquet``; see :func:`open_store`."""

    folder: Path

    def read(self) -> list[pd.DataFrame]:
        """Results of earlier runs: one table, or none."""
        path = self.folder / RESULTS
        try:
            return [pd.read_parquet(path)] if path.exists() else []
        except (ValueError, OSError):
            raise ValueError(f"{path} is damaged; delete it to start again") from None

    def write(self, results: pd.DataFrame) -> None:
        """Replace the table, completely or not at all."""
        write_whole(self.folder / RESULTS, results.to_parquet(index=False))


def open_store(
    folder: Path, data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> ResultStore:
    """A new folder, or one with results of the same comparison.

    Raises
    ------
    ValueError
        If the folder has results of other data or settings, or other files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.app.study import data_of_cohort, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(50, random_state=0), "simulated")
    >>> with TemporaryDirectory() as folder:
    ...     _ = open_store(Path(folder), data, make_methods(["null"]), Protocol())
    ...     open_store(Path(folder), data, make_methods(["null"]), Protocol(seed=1))
    Traceback (most recent call last):
        ...
    ValueError: ... has results of other protocol seed (0 there, 1 here); name another folder
    """
    described = {name: " ".join(repr(model).split()) for name, model in methods.items()}
    return open_results(folder, data, {"protocol": asdict(protocol), "methods": described})


def open_results(
    folder: Path, data: EvaluationData, settings: Mapping[str, Mapping[str, Any]]
) -> ResultStore:
    """As :func:`open_store`, for any settings that the results depend on, by group and name."""
    require("pyarrow", "app")
    path = folder / SETTINGS
    about = {"name": data.name, "fingerprint": data.fingerprint()}
    wanted: dict[str, dict[str, Any]] = json.loads(
        json.dumps({"deeptobit": {"version": deeptobit.__version__}, "data": about, **settings})
    )
    if path.exists():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise ValueError(f"{path} is damaged; name another folder") from None
        _check_same(found, wanted, folder)
        return ResultStore(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} has other contents; name a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**wanted, "versions": versions()}, indent=2, ensure_ascii=False)
    write_whole(path, text + "\n")
    return ResultStore(folder)


def _check_same(found: Any, wanted: dict[str, dict[str, Any]], folder: Path) -> None:
    """Raise an error that names the first setting that differs."""
    for group, here in wanted.items():
        there = found[group] if isinstance(found.get(group), dict) else {}
        for name in here | there:
            if here.get(name) != there.get(name):
                what = f"{group} {name} ({there.get(name)} there, {here.get(name)} here)"
                what = "data" if name == "fingerprint" else what
                raise ValueError(f"{folder} has results of other {what}; name another folder")
