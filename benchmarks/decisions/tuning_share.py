"""The share of each layer's penalty while all three layers are tuned together."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.decisions.data import draw
from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor
from deeptobit.estimators import network as estimator
from deeptobit.network import NetworkProblem

SEEDS = range(3)
N_ROWS = (300, 1000, 4000)


def measure() -> Table:
    """ANMSE of tuned networks over that of one layer, by share and rows."""
    yield "share", *(f"{n} rows" for n in N_ROWS)
    one = {n: [_error(n, seed, 1) for seed in SEEDS] for n in N_ROWS}
    for share in (1.0, 0.5, 1 / 3, 0.2, 0.1, 0.05):
        with patch.object(estimator, "NetworkProblem", _with_share(share)):
            yield (
                share,
                *(
                    float(np.mean([_error(n, seed, 3) / one[n][seed] for seed in SEEDS]))
                    for n in N_ROWS
                ),
            )


def _with_share(share: float) -> Callable[..., NetworkProblem]:
    def pose(**settings: Any) -> NetworkProblem:
        return NetworkProblem(**{**settings, "tuning_share": share})

    return pose


def _error(n_rows: int, seed: int, n_layers: int) -> float:
    rows = draw("three layers, with skip", n_rows, seed)
    model = SubspaceNetworkRegressor(10, n_layers, joint_tuning=True)
    return rows.error(model.fit(rows.X, rows.Y))
