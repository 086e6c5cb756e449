"""All methods on all splits."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from deeptobit import __version__
from deeptobit.app.study.measures import measure
from deeptobit.app.study.output import write_whole
from deeptobit.app.study.splits import (
    EvaluationData,
    Protocol,
    Skipped,
    Split,
    draw_splits,
    find_usable,
)
from deeptobit.arrays import FloatArray
from deeptobit.estimators import AutoTobitRegressor
from deeptobit.extras import require
from deeptobit.likelihood import Predictive
from deeptobit.metrics import some_targets
from deeptobit.targets import CensoredTargets
from paper.baselines.base import Folds, inner_folds
from paper.baselines.leastsquares import (
    ForestBaseline,
    LassoBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
)
from paper.baselines.tobit import InterceptOnly, RidgeTobit

if TYPE_CHECKING:
    import pandas as pd


# Results in a folder: whole or not at all, and continued only with the same data and settings.

SETTINGS, RESULTS = "settings.json", "results.parquet"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class ResultStore:
    """A folder with ``settings.json`` and ``results.parquet``; see :func:`open_store`."""

    folder: Path

    def read(self) -> list[pd.DataFrame]:
        """What was done before: one table, or none."""
        import pandas as pd

        path = self.folder / RESULTS
        if not path.exists():
            return []
        try:
            return [pd.read_parquet(path)]
        except (ValueError, OSError):
            raise ValueError(f"{path} is damaged; delete it to start anew") from None

    def write(self, results: pd.DataFrame) -> None:
        """Replace the table."""
        buffer = BytesIO()
        results.to_parquet(buffer, index=False)
        write_whole(self.folder / RESULTS, buffer.getvalue())


def open_store(
    folder: Path, data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> ResultStore:
    """A new folder, or one that the same comparison has left.

    Raises
    ------
    ValueError
        If the folder holds results of other data or settings, or other files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.experiments import data_of_cohort, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(50, random_state=0), "simulated")
    >>> with TemporaryDirectory() as folder:
    ...     _ = open_store(Path(folder), data, make_methods(["null"]), Protocol())
    ...     open_store(Path(folder), data, make_methods(["null"]), Protocol(seed=1))
    Traceback (most recent call last):
        ...
    ValueError: ... holds results of other protocol seed (0 there, 1 here); name another folder
    """
    return open_results(folder, _settings(data, methods, protocol))


def open_results(folder: Path, settings: Mapping[str, Any]) -> ResultStore:
    """A new folder, or one that a run with the same settings has left.

    Parameters
    ----------
    folder : Path
    settings : mapping
        Whatever the results depend on, as JSON has it.

    Raises
    ------
    ValueError
        If the folder holds results with other settings, or other files.
    """
    require("pyarrow", "app")
    path = folder / SETTINGS
    if path.exists():
        _check_same(_read(path), settings, folder)
        return ResultStore(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} holds other things; name a new folder or an empty one")
    folder.mkdir(parents=True, exist_ok=True)
    about = {"versions": versions()}
    write_whole(path, json.dumps({**settings, **about}, indent=2, ensure_ascii=False) + "\n")
    return ResultStore(folder)


def versions() -> dict[str, str]:
    """The packages that results depend on, as they are installed."""
    deep = ("torch",) if find_spec("torch") else ()
    return {package: version(package) for package in (*_PACKAGES, *deep)}


def _settings(
    data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> dict[str, Any]:
    """What must be the same for a run to be continued, as JSON has it."""
    settings = {
        "deeptobit": __version__,
        "data": {"name": data.name, "fingerprint": data.fingerprint()},
        "protocol": asdict(protocol),
        "methods": {name: " ".join(repr(model).split()) for name, model in methods.items()},
    }
    restored: dict[str, Any] = json.loads(json.dumps(settings))
    return restored


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged; name another folder")
    return found


def _check_same(found: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    for name, value in wanted.items():
        before = found.get(name)
        if before == value:
            continue
        what = name
        if isinstance(value, dict) and isinstance(before, dict):
            part = next(key for key in (value | before) if value.get(key) != before.get(key))
            what, before, value = f"{name} {part}", before.get(part), value.get(part)
        shown = "" if "fingerprint" in what else f" ({before} there, {value} here)"
        what = "data" if "fingerprint" in what else what
        raise ValueError(f"{folder} holds results of other {what}{shown}; name another folder")


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
        model = clone(method)
        if "cv" in model.get_params(deep=False):
            model.set_params(cv=job.folds)
        model.fit(X[split.train], train)
        seconds = perf_counter() - started
        measured = _measure(model, X[split.test], targets[split.test], protocol.coverage)
    where = {"share": split.share, "repeat": split.repeat, "method": job.method}
    sizes = {"n_train": len(split.train), "n_test": len(split.test)}
    cost = {"seconds": seconds, "warnings": len(caught), "seed": protocol.seed}
    scale = np.nanstd(train.values, axis=0)
    rows = {**where, "target": targets.names, **sizes, **measured, "scale": scale, **cost}
    return job, pd.DataFrame(rows)


def _measure(
    model: Any, X: FloatArray, targets: CensoredTargets, coverage: float
) -> dict[str, FloatArray]:
    """All measures of a fitted estimator; the point prediction is what it predicts by default."""
    latent = model.predict(X, kind="latent")
    bounds = targets.lower_bounds, targets.upper_bounds
    predictive = Predictive(model.noise_, latent, model.sigma_, *bounds)
    point = None if model.prediction == "mean" else np.clip(latent, *bounds)
    measured = measure(targets, predictive, coverage, point=point)
    known = {"entries": (~targets.missing).sum(axis=0)}
    return {**known, **measured, "centred_anmse": 1.0 - measured["r2"]}


def _in_order(frames: list[pd.DataFrame], jobs: list[Job], names: tuple[str, ...]) -> pd.DataFrame:
    """One table, in the same order whatever came first."""
    import pandas as pd

    place = {job.key: position for position, job in enumerate(jobs)}
    task = {name: position for position, name in enumerate(names)}
    table = pd.concat(frames, ignore_index=True)
    keys = [place[key] for key in table[_KEY].itertuples(index=False, name=None)]
    tasks = [task[name] for name in table["target"]]
    return table.iloc[np.lexsort([tasks, keys])].reset_index(drop=True)


# The methods that are compared, by the names people type.

FLAGSHIP = "network"
_BASELINES = {
    "null": InterceptOnly,
    "ridge": RidgeBaseline,
    "lasso": LassoBaseline,
    "mt-lasso": MultiTaskLassoBaseline,
    "forest": ForestBaseline,
    "tobit": RidgeTobit,
}
METHODS: Mapping[str, str] = {
    "null": "intercepts only, censored",
    "ridge": "ridge regression, clipped",
    "lasso": "lasso, clipped",
    "mt-lasso": "multi-task lasso (ℓ2,1), clipped",
    "forest": "random forest, clipped",
    "tobit": "Tobit with a ridge, task by task",
    FLAGSHIP: "Subspace Network of deeptobit",
}


def make_methods(
    names: Iterable[str] | None = None, *, network: Any = None, seed: int = 0
) -> dict[str, Any]:
    """Unfitted estimators by name, in the order of ``METHODS``.

    Parameters
    ----------
    names : iterable of str, optional
        Some of ``METHODS``; all by default.
    network : estimator, optional
        In place of :class:`AutoTobitRegressor` with default settings.
    seed : int
        Of methods that draw random numbers.

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
    wanted = list(METHODS if names is None else names)
    for name in wanted:
        if name not in METHODS:
            close = get_close_matches(name, METHODS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"there is no method {name!r} (known are {', '.join(METHODS)}){hint}")
    if not wanted:
        raise ValueError(f"there is no method to compare; known are {', '.join(METHODS)}")
    made: dict[str, Any] = {
        name: kind(random_state=seed) for name, kind in _BASELINES.items() if name in wanted
    }
    if FLAGSHIP in wanted:
        made[FLAGSHIP] = network or AutoTobitRegressor(random_state=seed)
    return made
