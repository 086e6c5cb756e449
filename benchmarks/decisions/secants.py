"""How many earlier rounds should correct the curvature across the subspace (ten minutes)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.decisions.table import Table
from benchmarks.scale import until_near, watched_fit
from deeptobit.arrays import FloatArray
from deeptobit.scale import ParquetRows, state

_ROWS, _FEATURES, _TASKS, _RANK = 20_000, 30, 10, 5
_PAIRS = (1, 2, 4, 8)
_CASES = (  # features, and the share of entries at the floor
    ("Gaussian", 0.5),
    ("Gaussian", 0.9),
    ("log-normal", 0.5),
    ("log-normal", 0.9),
    ("rare and binary", 0.5),
)
_SEEDS = (0, 1, 2)


def measure() -> Table:
    """Rounds to 1e-4 and to 1e-8 of the optimum, means over seeds."""
    heads = [f"{pairs} secant(s)" for pairs in _PAIRS]
    yield "features", "at the floor", "to", "none", *heads
    with TemporaryDirectory() as folder:
        for kind, floor in _CASES:
            values = [_values_by_pairs(kind, floor, seed, Path(folder)) for seed in _SEEDS]
            for near in (1e-4, 1e-8):
                rounds = np.mean([_rounds(found, near) for found in values], axis=0)
                yield kind, f"{100 * floor:g} %", f"{near:g}", *rounds.round(1)


def _rounds(values: list[list[float]], near: float) -> list[int]:
    best = min(min(found) for found in values)
    return [until_near(found, best, near) for found in values]


def _values_by_pairs(kind: str, floor: float, seed: int, folder: Path) -> list[list[float]]:
    """Objectives of all rounds, with no secant and with some."""
    table = _write(kind, floor, seed, folder)
    with patch.object(state.Secants, "correct", lambda *_: np.zeros_like):
        found = [watched_fit(table)[2]]
    for pairs in _PAIRS:
        with patch.object(state, "_PAIRS", pairs):
            found.append(watched_fit(table)[2])
    return found


def _write(kind: str, floor: float, seed: int, folder: Path) -> ParquetRows:
    rng = np.random.default_rng(seed)
    X = _features(kind, rng)
    coef = rng.normal(size=(_FEATURES, _RANK)) @ rng.normal(size=(_RANK, _TASKS))
    scores = X @ coef
    Y = 2.0 * scores / scores.std(axis=0) + rng.normal(size=scores.shape)
    Y = np.maximum(Y - np.quantile(Y, floor, axis=0), 0.0)
    features = [f"x{column}" for column in range(_FEATURES)]
    targets = [f"y{task}" for task in range(_TASKS)]
    path = folder / f"{kind}-{floor}-{seed}.parquet"
    pd.DataFrame(np.hstack([X, Y]), columns=[*features, *targets]).to_parquet(path, index=False)
    return ParquetRows(path, targets=targets, features=features)


def _features(kind: str, rng: np.random.Generator) -> FloatArray:
    size = _ROWS, _FEATURES
    if kind == "Gaussian":
        return rng.normal(size=size)
    if kind == "log-normal":
        return rng.lognormal(size=size)
    return (rng.random(size) < 0.03).astype(np.float64)
