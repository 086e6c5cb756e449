"""Rows beyond memory: a pass in bounded memory, rounds, workers, predictions.

``DEEPTOBIT_BENCH_ROWS`` replaces the two million rows, ``DEEPTOBIT_BENCH_SEED`` the seed 0 of the
data, and ``DEEPTOBIT_BENCH_DATA`` the folder into which tables are written (once; about 300 MB a
million rows). Processes are timed by the wall clock, for what is measured is how they share a
machine: run it on one that has nothing else to do.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from benchmarks.scale_data import N_TASKS, RANK, rows, source, true_coef
from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.scale import ParquetRows, RowSource
from deeptobit.scale.rounds import ShardedEvaluation, ShardedProblem

N_ROWS = int(os.environ.get("DEEPTOBIT_BENCH_ROWS", "2000000"))
_ROUND_ROWS = 50_000
_REPEATS = 3


def measure() -> Iterator[Number]:
    """Every number of rows beyond memory."""
    yield from _stream()
    with threadpool_limits(1):
        yield from _rounds()
        yield from _predictions()
        yield from _workers()


def _stream() -> Iterator[Number]:
    half, whole, twice = (_pass(n_rows, "files") for n_rows in (N_ROWS // 2, N_ROWS, 2 * N_ROWS))
    memory = _pass(N_ROWS, "memory")
    yield Number(f"one pass over {N_ROWS:,} rows: peak memory, MB", whole["peak"], 600, "at most")
    growth = twice["peak"] / half["peak"]
    yield Number("peak memory with four times the rows, ratio", growth, 1.1, "at most")
    rate = whole["rate"] / memory["rate"]
    yield Number("rows per second over those in memory", rate, 0.5, "at least")


def _pass(n_rows: int, where: str) -> dict[str, float]:
    source(n_rows)  # written before the clock starts
    command = [sys.executable, "-m", "benchmarks.scale_pass", str(n_rows), where]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def _rounds() -> Iterator[Number]:
    """Passes until the objective is near its optimum; that for the moments counts as one."""
    problem, start, ours = watched_fit(source(_ROUND_ROWS))
    theirs = _lbfgs_values(problem, _least_squares(problem, start))
    same = _lbfgs_values(problem, start)
    best = min(*ours, *theirs, *same)
    for values, near, whence in (
        (theirs, 1e-4, "from the SVD of least squares"),
        (same, 1e-4, "from the same start"),
        (same, 1e-8, "from the same start"),
    ):
        rounds, passes = (1 + until_near(found, best, near) for found in (ours, values))
        what = f"rounds to {near:g} of the optimum, L-BFGS needing {passes} {whence}"
        yield Number(what, rounds, passes / 2, "at most")


def _lbfgs_values(problem: ShardedProblem, start: FloatArray) -> list[float]:
    """Objectives at every pass of L-BFGS."""
    values: list[float] = []

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        here = problem.evaluate(point[:, None], None)
        values.append(float(here.value[0]))
        return values[-1], here.gradient[:, 0]

    options: Any = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9}
    minimize(objective, start[:, 0], jac=True, method="L-BFGS-B", options=options)
    return values


def _least_squares(problem: ShardedProblem, start: FloatArray) -> FloatArray:
    """Least squares on recorded values, truncated: the start without its correction."""
    layer = problem.unpack(start)
    observed = (rows(0, _ROUND_ROWS)[1] > 0.0).mean(axis=0)
    U = layer.U * observed[:, None]
    explained = np.square(layer.Z @ U.T).sum(axis=0)
    flat = layer._replace(
        U=U,
        intercept=np.zeros_like(layer.intercept),
        log_sigma=0.5 * np.log(np.maximum(1.0 - explained, 0.01)),
    )
    return problem.pack(problem.balance(flat))


def watched_fit(table: ParquetRows) -> tuple[ShardedProblem, FloatArray, list[float]]:
    """A fit's problem, where it began, and the objective of every round."""
    seen: list[tuple[ShardedProblem, FloatArray, float]] = []
    evaluate = ShardedProblem.evaluate

    def watched(self: ShardedProblem, point: FloatArray, tasks: object = None) -> ShardedEvaluation:
        again = bool(self.last) and np.array_equal(self.last[0].point, point)
        found = evaluate(self, point, tasks)
        if not again:
            seen.append((self, point.copy(), float(found.value[0])))
        return found

    with patch.object(ShardedProblem, "evaluate", watched):
        _layer(tol=1e-9).fit(table)
    return seen[0][0], seen[0][1], [value for _, _, value in seen]


def until_near(values: list[float], best: float, near: float) -> int:
    """How many rounds it took to be near the best value, relative to it."""
    reached = np.asarray(values) - best <= near * abs(best)
    return int(np.argmax(reached)) + 1


def _predictions() -> Iterator[Number]:
    """A network of three layers on a million rows, over the bare products of its layers."""
    X, Y = rows(0, 20_000)
    model = SubspaceNetworkRegressor(RANK, 3, joint_tuning=False).fit(X, Y)
    many = np.tile(X, (max(N_ROWS // 2, 20_000) // len(X), 1))
    predictions, products = [], []
    for _ in range(3):
        start = perf_counter()
        model.predict(many, "clip")
        middle = perf_counter()
        below = np.empty((len(many), N_TASKS))
        for layer in model.layers_:
            _ = many @ layer.coef[:, -many.shape[1] :].T
            if layer.V.shape[1] > many.shape[1]:
                _ = below @ layer.coef[:, :N_TASKS].T
        predictions.append(middle - start)
        products.append(perf_counter() - middle)
    ratio = min(predictions) / min(products)
    yield Number(f"predicting {len(many):,} rows over bare products", ratio, 3, "at most")


def _workers() -> Iterator[Number]:
    _layer().fit(source(N_ROWS // 16))
    alone, seconds = timed_fit(source(N_ROWS))
    one, seconds_of_one = fit_on_workers(1)
    two, seconds_of_two = fit_on_workers(2)
    with _one_core():  # a process reads ahead in a thread, for which it likes to have another core
        _, seconds_on_one_core = timed_fit(source(N_ROWS))
    for whose, theirs in (("", seconds), (" on one core", seconds_on_one_core)):
        what = f"times one process{whose}"
        yield Number(f"2 workers, {what}", theirs / seconds_of_two, 1.5, "at least")
        yield Number(f"1 worker, {what}", theirs / seconds_of_one, 0.85, "at least")
    distance = max(_distance(model, alone) for model in (one, two))
    yield Number("coefficients of workers against one process", distance, 1e-8, "at most")
    n_rows = min(N_ROWS, 500_000)
    X, Y = (np.concatenate(parts) for parts in zip(*_parts(n_rows), strict=True))
    rows_of_both = _layer().fit(source(n_rows))
    memory = _layer(alpha=rows_of_both.alpha_).fit(X, Y)
    errors = [float(np.linalg.norm(model.coef_ - true_coef())) for model in (rows_of_both, memory)]
    yield Number("error of W over the optimum's in memory", errors[0] / errors[1], 1.05, "at most")


def _parts(n_rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    size = 125_000
    for part, start in enumerate(range(0, n_rows, size)):
        yield rows(part, min(size, n_rows - start))


def _layer(**settings: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(RANK, solver="batch", **settings)


def timed_fit(table: RowSource) -> tuple[SubspaceTobitRegressor, float]:
    """A fit, and the seconds of the least of some, which other work disturbs least."""
    seconds = []
    for _ in range(_REPEATS):
        start = perf_counter()
        model = _layer().fit(table)
        seconds.append(perf_counter() - start)
    return model, min(seconds)


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this thread, and those that it starts, on one core (Linux)."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def fit_on_workers(n_workers: int) -> tuple[SubspaceTobitRegressor, float]:
    """The same by workers of one thread each."""
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
        _layer().fit(source(N_ROWS // 16).on_cluster())
        return timed_fit(source(N_ROWS).on_cluster())


def _distance(model: SubspaceTobitRegressor, other: SubspaceTobitRegressor) -> float:
    return float(np.linalg.norm(model.coef_ - other.coef_) / np.linalg.norm(other.coef_))
