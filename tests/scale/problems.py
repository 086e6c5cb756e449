"""A cohort with every kind of entry, in memory and in Parquet files."""

from pathlib import Path

import numpy as np
import pandas as pd

from deeptobit.arrays import FloatArray
from deeptobit.scale import ParquetRows

N_ROWS, N_FEATURES, N_TASKS, RANK = 3000, 6, 4, 2
FEATURES = [f"x{column}" for column in range(N_FEATURES)]
TARGETS = [f"score{task}" for task in range(N_TASKS)]
UPPER = {"score0": 3.0, "score1": np.inf, "score2": np.inf, "score3": np.inf}


def cohort(seed: int = 0, n_rows: int = N_ROWS) -> pd.DataFrame:
    """Skewed and correlated features far from 0; outcomes from 0 on, some missing, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)) @ rng.normal(size=(N_FEATURES, N_FEATURES))
    X[:, 0] = np.exp(X[:, 0] / X[:, 0].std())
    X[:, 1] = X[:, 1] > 0.5
    coef = rng.normal(size=(N_FEATURES, RANK)) @ rng.normal(size=(RANK, N_TASKS))
    Y = (X - X.mean(axis=0)) / X.std(axis=0) @ coef + rng.normal(size=(n_rows, N_TASKS)) + 0.5
    Y = np.clip(Y, 0.0, [UPPER[name] for name in TARGETS])
    Y[rng.uniform(size=Y.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X + 100.0, columns=FEATURES).join(pd.DataFrame(Y, columns=TARGETS))
    return frame.assign(weight=rng.integers(0, 3, size=n_rows).astype(float))


def write(folder: Path, frame: pd.DataFrame, n_files: int = 3, row_group: int = 400) -> Path:
    """The frame as a folder of Parquet files."""
    folder.mkdir(exist_ok=True)
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        path = folder / f"part-{part}.parquet"
        frame.iloc[rows].to_parquet(path, index=False, row_group_size=row_group)
    return folder


def source(folder: Path, batch_rows: int = 1000, *, weight: str | None = None) -> ParquetRows:
    """The folder's rows."""
    return ParquetRows(
        folder, targets=TARGETS, features=FEATURES, weight=weight, batch_rows=batch_rows
    )


def arrays(frame: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """X and Y."""
    return frame[FEATURES].to_numpy(), frame[TARGETS].to_numpy()
