"""How many of the grown layers to keep: all, or as many as a criterion says."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from unittest.mock import patch

import numpy as np

from benchmarks.decisions.data import Rows, draw, pure_noise
from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor
from deeptobit.network.grow import paying_depth

_GROW = import_module("deeptobit.network.grow")  # the room exports a function of this name
SEEDS = range(3)
PROBLEMS: dict[str, Callable[[int], Rows]] = {
    **{
        f"{truth}, {n} rows": partial(draw, truth, n)
        for truth in ("three layers, no skip", "one layer")
        for n in (1000, 300, 100)
    },
    "noise, 300 × 20 × 10": partial(pure_noise, 300, 20, 10),
    "noise, 60 × 40 × 5": partial(pure_noise, 60, 40, 5),
}


def measure() -> Table:
    """Held-out log score of four grown layers less that of one: above 0 is worse."""
    yield "data", "all four", "Akaike (taken)", "Schwarz", "a tenth held out"
    for name, make in PROBLEMS.items():
        data = [make(seed) for seed in SEEDS]
        one = [_loss(rows, 1) for rows in data]
        losses = []
        for rule in (_all, paying_depth, _schwarz):
            with patch.object(_GROW, "paying_depth", rule):
                losses.append([_loss(rows, 4) for rows in data])
        losses.append([_loss(rows, 4, early_stopping=True) for rows in data])
        yield name, *(float(np.subtract(loss, one).mean()) for loss in losses)


def _all(nlls: Sequence[float], n_rows: float, n_per_layer: int) -> int:
    return len(nlls)


def _schwarz(nlls: Sequence[float], n_rows: float, n_per_layer: int) -> int:
    price = 0.5 * np.log(n_rows) * n_per_layer
    return int(np.argmin([n_rows * nll + depth * price for depth, nll in enumerate(nlls)])) + 1


def _loss(rows: Rows, n_layers: int, *, early_stopping: bool = False) -> float:
    model = SubspaceNetworkRegressor(
        10, n_layers, joint_tuning=False, early_stopping=early_stopping, random_state=0
    )
    return -float(model.fit(rows.X, rows.Y).score_log(rows.X_test, rows.Y_test))
