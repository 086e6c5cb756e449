"""When joint tuning should end: what further steps bring on held-out rows."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from benchmarks.decisions.data import Rows, draw
from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor
from deeptobit.network import joint

SEEDS = range(2)
N_ROWS = (300, 1000, 4000)
RULES: dict[str, dict[str, float]] = {
    **{f"{n} steps": {"MAX_STEPS": n, "_SETTLED": 0.0} for n in (30, 100, 250, 500)},
    "settled at 1e-2, at most 250": {"_SETTLED": 1e-2},
    "settled at 1e-3, at most 250 (taken)": {},
}


def measure() -> Table:
    """ANMSE of three tuned layers over that of one, by rule and rows."""
    yield "rule", *(f"{n} rows" for n in N_ROWS)
    data = {n: [draw("three layers, with skip", n, seed) for seed in SEEDS] for n in N_ROWS}
    one = {n: [_error(rows, 1) for rows in data[n]] for n in N_ROWS}
    for rule, constants in RULES.items():
        with ExitStack() as patches:
            for name, value in constants.items():
                patches.enter_context(patch.object(joint, name, value))
            found = {n: [_error(rows, 3) for rows in data[n]] for n in N_ROWS}
        yield rule, *(float(np.divide(found[n], one[n]).mean()) for n in N_ROWS)


def _error(rows: Rows, n_layers: int) -> float:
    model = SubspaceNetworkRegressor(10, n_layers, joint_tuning=True)
    return rows.error(model.fit(rows.X, rows.Y))
