"""Compare methods: fit each to the same training rows, and measure it on held-out rows."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from deeptobit import __version__
from deeptobit.app.study import splits
from deeptobit.app.study.config import versions
from deeptobit.app.study.measures import measure
from deeptobit.app.study.splits import EvaluationData, Job, Protocol
from deeptobit.app.study.tables import write_whole
from deeptobit.extras import require
from deeptobit.likelihood import Predictive
from deeptobit.metrics import some_targets

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
    skipped: tuple[splits.Skipped, ...]
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
    skipped: list[splits.Skipped] = []
    for split in splits.draw_splits(len(data.targets), data.groups, protocol):
        groups = None if data.groups is None else data.groups[split.train]
        folds = splits.inner_folds(len(split.train), groups, protocol.inner_folds, protocol.seed)
        tasks, left_out = splits.find_usable(data.targets, split, folds)
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
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
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
    return pd.DataFrame(
        {**where, **sizes, "entries": (~test.missing).sum(axis=0), **measured, **cost}
    )


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
    frames = [] if store is None else store.read()
    place = {job.key: position for position, job in enumerate(jobs)}

    def joined() -> pd.DataFrame:
        """One table; the rows of a job are in order already, and a stable sort keeps that."""
        table = pd.concat(frames, ignore_index=True)
        order = np.argsort([place[key] for key in _keys(table)], kind="stable")
        return table.iloc[order].reset_index(drop=True)

    done = {key for frame in frames for key in _keys(frame)}
    left = [job for job in jobs if job.key not in done]
    before = len(jobs) - len(left)
    progress(before, len(jobs), "")
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    fits = parallel(delayed(work)(job) for job in left)
    for count, frame in enumerate(fits, start=before + 1):
        frames.append(frame)
        if store is not None:
            store.write(joined())
        progress(count, len(jobs), str(jobs[place[_keys(frame)[0]]]))
    return joined()


def _keys(frame: pd.DataFrame) -> list[tuple[float, int, str]]:
    return list(frame[["share", "repeat", "method"]].itertuples(index=False, name=None))


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
        json.dumps({"deeptobit": {"version": __version__}, "data": about, **settings})
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


def _check_same(
    found: Mapping[str, Any], wanted: Mapping[str, dict[str, Any]], folder: Path
) -> None:
    """Raise an error that names the first setting that differs."""
    for group, here in wanted.items():
        there = found[group] if isinstance(found.get(group), dict) else {}
        for name in here | there:
            if here.get(name) != there.get(name):
                what = f"{group} {name} ({there.get(name)} there, {here.get(name)} here)"
                what = "data" if name == "fingerprint" else what
                raise ValueError(f"{folder} has results of other {what}; name another folder")
