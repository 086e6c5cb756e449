"""Whether to tune all layers together: never, always, or where the likelihood pays for it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.decisions.data import Rows, draw, pure_noise
from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor
from deeptobit.arrays import FloatArray
from deeptobit.network import JointTuning

SEEDS = range(3)
PROBLEMS: dict[str, Callable[[int], Rows]] = {
    **{
        f"three layers, {n} rows": partial(draw, "three layers, with skip", n)
        for n in (4000, 1000, 300, 100)
    },
    **{f"one layer, {n} rows": partial(draw, "one layer", n) for n in (2000, 300, 100)},
    "noise, 300 × 20 × 10": partial(pure_noise, 300, 20, 10),
    "noise, 60 × 40 × 5": partial(pure_noise, 60, 40, 5),
}


def measure() -> Table:
    """Three layers against one: ratio of ANMSE / excess of log score / 90 % intervals hold."""
    yield "data", "grown only", "always tuned", "tuned if it pays", "kept"
    for name, make in PROBLEMS.items():
        data = [make(seed) for seed in SEEDS]
        one = np.array([_fit(rows, 1, False) for rows in data])
        found = {
            tuning: np.array([_fit(rows, 3, tuning) for rows in data])
            for tuning in (False, True, "auto")
        }
        cells = [_compared(scores, one) for scores in found.values()]
        yield name, *cells, f"{int(found['auto'][:, 3].sum())} of {len(SEEDS)}"


def _compared(three: FloatArray, one: FloatArray) -> str:
    ratio = float((three[:, 0] / one[:, 0]).mean())
    excess = float((three[:, 1] - one[:, 1]).mean())
    return f"{ratio:.3f} / {excess:+.3f} / {float(three[:, 2].mean()):.1%}"


def _fit(rows: Rows, n_layers: int, tuning: JointTuning) -> tuple[float, float, float, bool]:
    """ANMSE, negative log score per entry, coverage, and whether tuning was kept."""
    model = SubspaceNetworkRegressor(10, n_layers, joint_tuning=tuning).fit(rows.X, rows.Y)
    loss = -float(model.score_log(rows.X_test, rows.Y_test))
    low, high = model.predict_interval(rows.X_test, 0.9)
    inside = float(((rows.Y_test >= low) & (rows.Y_test <= high)).mean())
    return rows.error(model), loss, inside, bool(model.history_["tuning"]["kept"])
