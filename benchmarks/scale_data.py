"""Large tables in Parquet, written once and kept beside the benchmarks' other files."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from deeptobit.arrays import FloatArray
from deeptobit.scale import ParquetRows

N_FEATURES, N_TASKS, RANK = 50, 20, 5
_ROWS_PER_FILE = 125_000
_SEED = int(os.environ.get("DEEPTOBIT_BENCH_SEED", "0"))
FOLDER = Path(os.environ.get("DEEPTOBIT_BENCH_DATA", tempfile.gettempdir())) / "deeptobit-bench"
FEATURES = [f"x{column}" for column in range(N_FEATURES)]
TARGETS = [f"y{task}" for task in range(N_TASKS)]


def true_coef() -> FloatArray:
    """Coefficients of standard features, (T, D), with scores of variance 4."""
    rng = np.random.default_rng(_SEED)
    coef = rng.normal(size=(N_TASKS, RANK)) @ rng.normal(size=(RANK, N_FEATURES))
    return np.asarray(2.0 * coef / np.linalg.norm(coef, axis=1)[:, None])


def rows(seed: int, n_rows: int) -> tuple[FloatArray, FloatArray]:
    """Gaussian features, and outcomes censored at 0 (half of them) under unit noise."""
    rng = np.random.default_rng([1 + _SEED, seed])
    X = rng.normal(size=(n_rows, N_FEATURES))
    Y = X @ true_coef().T + rng.normal(size=(n_rows, N_TASKS))
    return X, np.maximum(Y, 0.0)


def folder(n_rows: int) -> Path:
    """A folder with so many rows in single precision."""
    path = FOLDER / f"rows-{n_rows}-{_SEED}"
    done = path / "_SUCCESS"
    if done.exists():
        return path
    path.mkdir(parents=True, exist_ok=True)
    for part, start in enumerate(range(0, n_rows, _ROWS_PER_FILE)):
        X, Y = rows(part, min(_ROWS_PER_FILE, n_rows - start))
        frame = pd.DataFrame(np.hstack([X, Y]).astype(np.float32), columns=[*FEATURES, *TARGETS])
        frame.to_parquet(path / f"part-{part:04d}.parquet", index=False)
    done.touch()
    return path


def source(n_rows: int) -> ParquetRows:
    """The rows as a source."""
    return ParquetRows(folder(n_rows), targets=TARGETS, features=FEATURES)
