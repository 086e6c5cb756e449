"""From a CSV file to a report on the command line, as someone with a table would go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.report import Number

N_ROWS, N_FEATURES, N_TARGETS, RANK = 1_000, 300, 30, 4
STEPS = (
    ("init", "cohort.csv"),
    ("check", "cohort.toml"),
    ("fit", "cohort.toml", "--jobs", "2"),
    ("report", "cohort.deeptobit"),
)


def measure() -> Iterator[Number]:
    """Seconds of a new user: the help, then the way from a table to a page."""
    with TemporaryDirectory() as folder:
        _deeptobit("--help", folder=folder)  # the first start compiles Python's files
        seconds = min(_deeptobit("--help", folder=folder) for _ in range(3))
        yield Number("seconds of deeptobit --help", seconds, 0.5, "at most")
        write_table(Path(folder, "cohort.csv"))
        seconds = sum(_deeptobit(*step, folder=folder) for step in STEPS)
        size = f"{N_ROWS} × {N_FEATURES} × {N_TARGETS}"
        yield Number(f"CSV to report, seconds for {size}", seconds, 120.0, "at most")


def write_table(path: Path) -> None:
    """Scores from 0 to 30 that share four directions of the features, a tenth of them missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    U = rng.normal(size=(N_FEATURES, RANK)) / np.sqrt(N_FEATURES)
    latent = X @ U @ rng.normal(size=(RANK, N_TARGETS)) + 0.7 * rng.normal(size=(N_ROWS, N_TARGETS))
    scores = pd.DataFrame(np.clip(np.round(15.0 + 6.0 * latent), 0, 30)).add_prefix("mmse_m")
    features = pd.DataFrame(X.round(3)).add_prefix("feature_")
    ids = pd.Series([f"S{row:04d}" for row in range(N_ROWS)], name="subject_id")
    missing = rng.random(scores.shape) < 0.1
    pd.concat([ids, features, scores.mask(missing)], axis=1).to_csv(path, index=False)


def _deeptobit(*arguments: str, folder: str) -> float:
    """Wall seconds of one command in a process of its own."""
    command = [sys.executable, "-m", "deeptobit", *arguments]
    started = perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return perf_counter() - started
