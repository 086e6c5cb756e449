"""Long runs: a stream of ten million rows, 500 fits of every estimator, a million rows in memory.

Every measurement has a process of its own: ``python -m benchmarks.long NAME`` prints one of them.
``DEEPTOBIT_BENCH_FITS`` and ``DEEPTOBIT_BENCH_STREAM`` replace the 500 fits and the ten million
rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np

from benchmarks.report import Number
from benchmarks.scale_data import RANK, rows
from benchmarks.scale_pass import forget_peak, resident
from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit

N_FITS = int(os.environ.get("DEEPTOBIT_BENCH_FITS", "500"))
N_STREAMED = int(os.environ.get("DEEPTOBIT_BENCH_STREAM", "10000000"))
_CHUNK = 10_000
_STEPS: dict[str, Any] = {"alpha": 0.01, "step_size_V": 1e-3, "step_size_U": 1e-3, "sigma": 1.0}
FITTED: dict[str, Callable[[], Any]] = {
    "TobitRegressor": TobitRegressor,
    "SubspaceTobitRegressor": lambda: SubspaceTobitRegressor(2),
    "SubspaceTobitRegressor, online": lambda: SubspaceTobitRegressor(
        2, solver="online", random_state=0
    ),
    "SubspaceNetworkRegressor": lambda: SubspaceNetworkRegressor(2, 2),
    "SubspaceNetworkCV": lambda: SubspaceNetworkCV(ranks=[1, 2], max_layers=1, cv=2),
    "AutoTobitRegressor": lambda: AutoTobitRegressor(random_state=0, cv=2),
    "MixedTobitRegressor": MixedTobitRegressor,
    "PublishedSubspaceTobit": lambda: PublishedSubspaceTobit(2, **_STEPS),
    "PublishedSubspaceNetwork": lambda: PublishedSubspaceNetwork(2, 2, **_STEPS),
}
STREAMED: dict[str, Callable[[], Any]] = {
    "SubspaceTobitRegressor": lambda: SubspaceTobitRegressor(RANK, solver="online", random_state=0),
    "SubspaceNetworkRegressor": lambda: SubspaceNetworkRegressor(
        RANK, 2, solver="online", random_state=0
    ),
}
IN_MEMORY: dict[str, Callable[[], Any]] = {
    "TobitRegressor": TobitRegressor,
    "SubspaceTobitRegressor": lambda: SubspaceTobitRegressor(3, random_state=0),
}


def measure() -> Iterator[Number]:
    """Growth of resident memory in megabytes; seconds of the processor and peak memory."""
    for name in STREAMED:
        (growth,) = _apart("stream", name)
        what = f"{name}, a stream of {N_STREAMED:,} rows: growth after the first tenth, MB"
        yield Number(what, growth, 5.0, "at most")
    for name in FITTED:
        (growth,) = _apart("fits", name)
        what = f"{name}, {N_FITS} fits: growth after the first fifth, MB"
        yield Number(what, growth, 5.0, "at most")
    for name in IN_MEMORY:
        seconds, peak = _apart("memory", name)
        yield Number(f"{name}, 1e6 × 50 × 5: seconds of the processor", seconds, 11.5, "at most")
        yield Number(f"{name}, 1e6 × 50 × 5: peak memory, GB", peak, 1.3, "at most")


def _apart(kind: str, name: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.long", kind, name]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(value) for value in run.stdout.split()]


def stream(name: str) -> tuple[float]:
    """Megabytes that the process grows by from the first tenth of the rows to the last row."""
    model = STREAMED[name]()
    n_chunks = N_STREAMED // _CHUNK
    for chunk in range(n_chunks):
        X, Y = rows(chunk, _CHUNK)
        model.partial_fit(X, Y)
        if chunk + 1 == max(n_chunks // 10, 1):
            early = resident()
    return (resident() - early,)


def fits(name: str) -> tuple[float]:
    """Megabytes that the process grows by from the first fifth of the fits to the last."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = np.maximum(X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3)), 0.0)
    visits = {"groups": np.repeat(np.arange(20), 3), "time": np.tile([0.0, 1.0, 2.0], 20)}
    more = visits if name == "MixedTobitRegressor" else {}
    for fit in range(N_FITS):
        FITTED[name]().fit(X, Y, **more)
        if fit + 1 == max(N_FITS // 5, 1):
            early = resident()
    return (resident() - early,)


def memory(name: str) -> tuple[float, float]:
    """Seconds of the processor and peak memory in gigabytes, X and Y included."""
    X, Y = draw(1_000_000, 50, 5)
    IN_MEMORY[name]().fit(X[:2000], Y[:2000])  # compiles
    forget_peak()
    started = process_time()
    IN_MEMORY[name]().fit(X, Y)
    return process_time() - started, resident(peak=True) / 1000.0


def draw(n_rows: int, n_features: int, n_tasks: int) -> tuple[FloatArray, FloatArray]:
    """Three directions, as much noise as signal, a floor at 0."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(n_features, 3)) @ rng.normal(size=(3, n_tasks)) / np.sqrt(3 * n_features)
    X = rng.normal(size=(n_rows, n_features))
    Y = X @ W
    Y += rng.normal(size=Y.shape)
    return X, np.maximum(Y, 0.0, out=Y)


_KINDS: dict[str, Callable[[str], tuple[float, ...]]] = {
    "stream": stream,
    "fits": fits,
    "memory": memory,
}

if __name__ == "__main__":
    print(*_KINDS[sys.argv[1]](sys.argv[2]))
