"""All methods on all splits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from deeptobit.baselines import Folds, inner_folds
from deeptobit.experiments._evaluation_data import EvaluationData
from deeptobit.experiments._measures import measure
from deeptobit.experiments._splits import Protocol, Split, draw_splits
from deeptobit.experiments._store import ResultStore
from deeptobit.experiments._usable import Skipped, find_usable
from deeptobit.metrics._selection import some_targets

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], None]
_KEY = ["share", "repeat", "method"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a comparison found.

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


class Job(NamedTuple):
    """One method on one split."""

    method: str
    split: Split
    folds: Folds
    tasks: list[int]

    @property
    def key(self) -> tuple[float, int, str]:
        """How its rows are found among the results."""
        return (*self.split.key, self.method)

    def __str__(self) -> str:
        """For people who wait."""
        return f"{self.method}, {self.split.share:.0%} to train on, repeat {self.split.repeat + 1}"


def evaluate(
    data: EvaluationData,
    methods: Mapping[str, Any],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    store: ResultStore | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Fit every method to every split and measure it on the rows left out.

    Parameters
    ----------
    data : EvaluationData
    methods : mapping of str to estimators
        Unfitted; each gets the same folds of the training rows to be tuned by.
    protocol : Protocol
    n_jobs : int, optional
        Methods and splits side by side; the measures do not depend on it.
    store : ResultStore, optional
        Keeps what is done, and knows what was done before.
    progress : callable, optional
        Called with how many fits are done, how many there are, and what was done last; at first
        with what ``store`` brought.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.experiments import data_of_cohort, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(120, random_state=0), "simulated")
    >>> short = Protocol(train_shares=(0.6,), repeats=1)
    >>> found = evaluate(data, make_methods(["null", "ridge"]), short)
    >>> found.results.groupby("method")["r2"].mean().round(2).to_dict()
    {'null': -0.03, 'ridge': 0.07}
    """
    jobs, skipped = _plan(data, methods, protocol)
    tell = progress or _silent
    done = [] if store is None else store.read()
    seen = {key for frame in done for key in frame[_KEY].itertuples(index=False, name=None)}
    left = [job for job in jobs if job.key not in seen]
    tell(len(jobs) - len(left), len(jobs), "")
    for count, (job, frame) in enumerate(_run(data, methods, protocol, left, n_jobs), start=1):
        done.append(frame)
        if store is not None:
            store.write(_in_order(done, jobs, data.targets.names))
        tell(len(jobs) - len(left) + count, len(jobs), str(job))
    return Evaluation(_in_order(done, jobs, data.targets.names), skipped, protocol)


def _silent(done: int, total: int, label: str) -> None:
    """Nobody watches."""


def _plan(
    data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> tuple[list[Job], tuple[Skipped, ...]]:
    """What there is to do, and what cannot be compared."""
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
    return jobs, tuple(skipped)


def _run(
    data: EvaluationData,
    methods: Mapping[str, Any],
    protocol: Protocol,
    jobs: list[Job],
    n_jobs: int | None,
) -> Iterator[tuple[Job, pd.DataFrame]]:
    """Jobs and their rows, as they come to an end."""
    work = (delayed(_do)(data, methods[job.method], job, protocol) for job in jobs)
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")(work)


def _do(
    data: EvaluationData, method: Any, job: Job, protocol: Protocol
) -> tuple[Job, pd.DataFrame]:
    import pandas as pd

    split, X = job.split, data.features(job.split.train)
    targets = some_targets(data.targets, job.tasks)
    train = targets[split.train]
    # What one method warns of would fill the terminal a hundred times: it is counted.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = perf_counter()
        model = clone(method).set_params(cv=job.folds).fit(X[split.train], train)
        seconds = perf_counter() - started
        measured = measure(model, X[split.test], targets[split.test], protocol.coverage)
    where = {"share": split.share, "repeat": split.repeat, "method": job.method}
    sizes = {"n_train": len(split.train), "n_test": len(split.test)}
    cost = {"seconds": seconds, "warnings": len(caught), "seed": protocol.seed}
    scale = np.nanstd(train.values, axis=0)
    rows = {**where, "target": targets.names, **sizes, **measured, "scale": scale, **cost}
    return job, pd.DataFrame(rows)


def _in_order(frames: list[pd.DataFrame], jobs: list[Job], names: tuple[str, ...]) -> pd.DataFrame:
    """One table, in the same order whatever came first."""
    import pandas as pd

    place = {job.key: position for position, job in enumerate(jobs)}
    task = {name: position for position, name in enumerate(names)}
    table = pd.concat(frames, ignore_index=True)
    keys = [place[key] for key in table[_KEY].itertuples(index=False, name=None)]
    tasks = [task[name] for name in table["target"]]
    return table.iloc[np.lexsort([tasks, keys])].reset_index(drop=True)
