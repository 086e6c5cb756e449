"""Whether the layers of a network should take a chosen alpha, as one layer does."""

from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.decisions.data import draw
from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.estimators import network as estimator

SEEDS = range(3)
N_ROWS, N_LAYERS, RANK = (300, 1000), (1, 3), 10


def measure() -> Table:
    """ANMSE of tuned networks, by which layers have the share of alpha that one layer chose."""
    columns = [(n, depth) for depth in N_LAYERS for n in N_ROWS]
    yield "chosen for", *(f"{n} rows, {depth} layers" for n, depth in columns)
    for name in ("no layer", "the first layer", "all layers"):
        errors = ([_error(n, seed, depth, name) for seed in SEEDS] for n, depth in columns)
        yield name, *(float(np.mean(each)) for each in errors)


def _error(n_rows: int, seed: int, n_layers: int, chosen_for: str) -> float:
    rows = draw("three layers, with skip", n_rows, seed)
    model = SubspaceNetworkRegressor(RANK, n_layers, joint_tuning=True)
    one = SubspaceTobitRegressor(RANK).fit(rows.X, rows.Y)
    share = one.alpha_ / one.history_["alphas"][0]["alpha"]
    rule = estimator._alphas

    def alphas(*settings: Any) -> tuple[float, ...]:
        first, *others = rule(*settings)
        if chosen_for == "all layers":
            others = [share * each for each in others]
        return (first if chosen_for == "no layer" else share * first, *others)

    with patch.object(estimator, "_alphas", alphas):
        return rows.error(model.fit(rows.X, rows.Y))
