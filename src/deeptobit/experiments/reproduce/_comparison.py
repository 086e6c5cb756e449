"""Methods on the same random splits, side by side, continued where a run was stopped."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from deeptobit import __version__
from deeptobit.baselines import inner_folds
from deeptobit.experiments._evaluation_data import EvaluationData
from deeptobit.experiments._splits import Protocol, Split, draw_splits
from deeptobit.experiments._store import ResultStore, open_results, versions
from deeptobit.experiments._usable import find_usable
from deeptobit.experiments.reproduce._choosing import Choice, assess
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._method import Method
from deeptobit.experiments.reproduce._problem import Problem, Rows
from deeptobit.metrics._selection import some_targets

if TYPE_CHECKING:
    import pandas as pd

_JOB = ["share", "repeat", "method"]
_FOLDS = 5  # one of them validates: a fifth of the training rows


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was compared, and how it is to be split.

    Parameters
    ----------
    name : str
        Of the section.
    data : EvaluationData
    methods : mapping of str to Method
    protocol : Protocol
        Shares, repeats and seed of the splits.
    choice : {"honest", "paper"}
        Who chooses among the members of a grid: validation rows, or the test rows.
    """

    name: str
    data: EvaluationData
    methods: Mapping[str, Method]
    protocol: Protocol
    choice: Choice

    def settings(self) -> dict[str, Any]:
        """What must be the same for a run to be continued."""
        settings = {
            "deeptobit": __version__,
            "data": {"name": self.data.name, "fingerprint": self.data.fingerprint()},
            "protocol": asdict(self.protocol) | {"choice": self.choice},
            "methods": {name: method.settings() for name, method in self.methods.items()},
        }
        restored: dict[str, Any] = json.loads(json.dumps(settings))
        return restored


class Job(NamedTuple):
    """One method on one split."""

    method: str
    split: Split
    fold: tuple[Rows, Rows]
    tasks: list[int]

    @property
    def key(self) -> tuple[float, int, str]:
        """How its rows are found among the results."""
        return (*self.split.key, self.method)

    def __str__(self) -> str:
        """For people who wait."""
        return f"{self.method}, {self.split.share:.0%} to train on, repeat {self.split.repeat + 1}"


def compare(comparison: Comparison, context: Context) -> pd.DataFrame:
    """Fit every method to every split.

    Returns
    -------
    DataFrame
        One line per share, repeat and row of the table: ``anmse`` and ``centred_anmse`` on the test
        rows, ``settings`` of the chosen estimator with what it chose for itself, ``seconds`` and
        ``warnings`` of its method with the whole grid, ``seed`` and ``versions``. It does not
        depend on ``context.n_jobs``.
    """
    jobs = _plan(comparison)
    store = _open(comparison, context)
    done = [] if store is None else store.read()
    seen = {key for frame in done for key in frame[_JOB].itertuples(index=False, name=None)}
    left = [job for job in jobs if job.key not in seen]
    if seen:
        label = f"{comparison.name}: continued where it stopped"
        context.progress(len(jobs) - len(left), len(jobs), label)
    for count, (job, frame) in enumerate(_run(comparison, left, context.n_jobs), start=1):
        done.append(frame)
        if store is not None:
            store.write(_in_order(done, jobs))
        context.progress(len(jobs) - len(left) + count, len(jobs), f"{comparison.name}: {job}")
    return _in_order(done, jobs)


def _open(comparison: Comparison, context: Context) -> ResultStore | None:
    """The folder of these settings and no others, so that scales may share a store."""
    parts, settings = context.folder(comparison.name), comparison.settings()
    if parts is None:
        return None
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return open_results(parts / digest[:12], settings)


def _plan(comparison: Comparison) -> list[Job]:
    """Every method on every split; each split has one validation fold and one list of tasks."""
    data, protocol = comparison.data, comparison.protocol
    jobs = []
    for split in draw_splits(len(data.targets), data.groups, protocol):
        groups = None if data.groups is None else data.groups[split.train]
        seed = protocol.seed + split.repeat
        to_fit, to_judge = inner_folds(len(split.train), groups, _FOLDS, seed)[0]
        tasks, _ = find_usable(data.targets, split, [(to_fit, to_judge)])
        fold = (split.train[to_fit], split.train[to_judge])
        jobs += [Job(name, split, fold, tasks) for name in comparison.methods]
    return jobs


def _run(
    comparison: Comparison, jobs: list[Job], n_jobs: int
) -> Iterator[tuple[Job, pd.DataFrame]]:
    """Jobs and their rows, as they come to an end."""
    work = (
        delayed(_do)(
            comparison.data,
            comparison.methods[job.method],
            job,
            comparison.choice,
            comparison.protocol.seed,
        )
        for job in jobs
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")(work)


def _do(
    data: EvaluationData, method: Method, job: Job, choice: Choice, seed: int
) -> tuple[Job, pd.DataFrame]:
    import pandas as pd

    split = job.split
    problem = Problem(
        data.features(split.train),
        some_targets(data.targets, job.tasks),
        split.train,
        split.test,
        job.fold,
    )
    started = perf_counter()
    # What one method warns of would fill the terminal a hundred times: it is counted.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = assess(method, problem, choice)
    cost = {"seconds": perf_counter() - started, "warnings": len(caught), "seed": seed}
    where = {"share": split.share, "repeat": split.repeat, "method": job.method}
    sizes = {"n_train": len(split.train), "n_test": len(split.test), "n_tasks": len(job.tasks)}
    used = json.dumps({"deeptobit": __version__} | versions())
    rows = [
        {
            **where,
            "row": row,
            "anmse": outcome.anmse,
            "centred_anmse": outcome.centred_anmse,
            **sizes,
            "settings": outcome.choice,
            **cost,
            "versions": used,
        }
        for row, outcome in outcomes.items()
    ]
    return job, pd.DataFrame(rows)


def _in_order(frames: list[pd.DataFrame], jobs: list[Job]) -> pd.DataFrame:
    """One table, in the same order whatever came first."""
    import pandas as pd

    table = pd.concat(frames, ignore_index=True)
    place = {job.key: position for position, job in enumerate(jobs)}
    keys = [place[key] for key in table[_JOB].itertuples(index=False, name=None)]
    # The rows of one method are in order already, and a stable sort leaves them so.
    return table.iloc[np.argsort(keys, kind="stable")].reset_index(drop=True)
