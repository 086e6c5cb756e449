"""What AutoTobitRegressor costs: time over a ridge regression, and memory over its data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from sklearn.linear_model import RidgeCV

from benchmarks.report import Number
from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray

ALPHAS = np.logspace(-3.0, 3.0, 10)
RANK = 5
RATIOS = {(1_000, 100, 20): 120.0, (10_000, 100, 20): 50.0, (50_000, 100, 20): 30.0}
LARGE = 100_000, 500, 20
REPEATS = 3


def measure() -> Iterator[Number]:
    """Median time over that of RidgeCV with ten alphas; then a large table in its own process."""
    AutoTobitRegressor(cv=2, random_state=0).fit(*draw(100, 5, 3))  # compiles
    for shape, wanted in RATIOS.items():
        X, Y = draw(*shape)
        ridge, ours = (
            float(np.median([_seconds(model, X, Y) for _ in range(REPEATS)]))
            for model in (RidgeCV(ALPHAS), AutoTobitRegressor(random_state=0))
        )
        name = " × ".join(f"{size:,}" for size in shape)
        yield Number(f"{name}: time over RidgeCV", ours / ridge, wanted, "at most")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.default"], check=True, capture_output=True, text=True
    )
    seconds, memory = map(float, done.stdout.split())
    name = " × ".join(f"{size:,}" for size in LARGE)
    yield Number(f"{name}: seconds", seconds, 180.0, "at most")
    yield Number(f"{name}: peak memory over X and Y", memory, 4.0, "at most")


def draw(n_rows: int, n_features: int, n_tasks: int) -> tuple[FloatArray, FloatArray]:
    """One linear layer with a floor at 0, and as much noise as signal."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(RANK, n_features)) / np.sqrt(n_features * RANK)
    X = rng.normal(size=(n_rows, n_features))
    latent = X @ V.T @ rng.normal(size=(RANK, n_tasks))
    return X, np.maximum(latent + rng.normal(size=latent.shape), 0.0)


def _seconds(model: RidgeCV | AutoTobitRegressor, X: FloatArray, Y: FloatArray) -> float:
    started = perf_counter()
    model.fit(X, Y)
    return perf_counter() - started


def _fit_large() -> None:
    """Print seconds, and the peak memory of the process in units of X and Y."""
    import resource

    AutoTobitRegressor(cv=2, random_state=0).fit(*draw(100, 5, 3))
    X, Y = draw(*LARGE)
    seconds = _seconds(AutoTobitRegressor(random_state=0), X, Y)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(seconds, peak / (X.nbytes + Y.nbytes))


if __name__ == "__main__":
    _fit_large()
