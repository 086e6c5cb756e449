"""Which depth AutoTobitRegressor takes where, and what it would have been worth."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.cohort import COHORTS, Split
from benchmarks.cohort import draw as draw_cohort
from benchmarks.decisions.data import draw
from benchmarks.decisions.help_split import draw_help
from benchmarks.decisions.table import Table
from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray

SEEDS = range(100, 102)


class Bounded(NamedTuple):
    """Rows to train on, rows to be judged by, and the bounds of the outcomes."""

    X: FloatArray
    Y: FloatArray
    X_test: FloatArray
    Y_test: FloatArray
    lower: float | FloatArray
    upper: FloatArray | None


def measure() -> Table:
    """R² on held-out folds of one layer and of two; layers taken; R² and coverage of new rows."""
    yield "data", "one layer, folds", "two layers, folds", "took two", "new rows", "90 % hold"
    for name, make in DATA.items():
        fits = np.array([_fit(make(seed)) for seed in SEEDS])
        one, two, taken, score, held = fits.mean(axis=0).tolist()
        yield name, one, two, f"{round(taken * len(SEEDS))} of {len(SEEDS)}", score, held


def _fit(data: Bounded) -> tuple[float, float, float, float, float]:
    model = AutoTobitRegressor(lower=data.lower, upper=data.upper, noise="gaussian", random_state=0)
    model.fit(data.X, data.Y)
    one, *_, two = model.members_["score"].tolist()  # the stack, members, two layers
    low, high = model.predict_interval(data.X_test)
    Y = np.asarray(data.Y_test)
    held = float(((low <= Y) & (high >= Y))[~np.isnan(Y)].mean())
    score = float(model.score(data.X_test, data.Y_test))
    return one, two, float(model.n_layers_ > 1), score, held


def _of(split: Split) -> Bounded:
    return Bounded(split.X, split.Y, split.X_test, split.Y_test, split.lower, split.upper)


def _layers(truth: str, n_rows: int, seed: int) -> Bounded:
    return Bounded(*draw(truth, n_rows, seed), lower=0.0, upper=None)


DATA: dict[str, Callable[[int], Bounded]] = {
    "three layers, 200 rows": partial(_layers, "three layers, with skip", 200),
    "three layers, 1000 rows": partial(_layers, "three layers, with skip", 1000),
    "one layer, 1000 rows": partial(_layers, "one layer", 1000),
    "cohort": lambda seed: _of(draw_cohort(seed, COHORTS["linear"])),
    "non-linear cohort": lambda seed: _of(draw_cohort(seed, COHORTS["non-linear"])),
    "HELP": lambda seed: _of(draw_help(seed)),
}
