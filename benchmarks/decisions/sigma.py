"""Noise scales by likelihood or, as in the paper, from residuals before censoring."""

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit import SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace

SEEDS = range(3)
SIZES = ((300, 20, 10, 3), (4000, 50, 30, 5))
N_TEST = 2000


def measure() -> Table:
    """Three layers on data of one, a signal of sd 3 and noise of sd 1, by where the floor lies."""
    yield "rows", "at the floor", "sigma", "σ over the truth", "log score", "R²"
    for sizes in SIZES:
        for floor in (-3.0, 0.0, 3.0):
            for kind in ("mle", "calibrate"):
                runs = [_run(sizes, floor, kind, seed) for seed in SEEDS]
                share, *scores = np.mean(runs, axis=0).tolist()
                yield sizes[0], f"{share:.0%}", f'"{kind}"', *scores


def _run(sizes: tuple[int, int, int, int], floor: float, kind: str, seed: int) -> list[float]:
    n_rows, *shape = sizes
    X, Y, _ = make_subspace(
        N_TEST + n_rows, *shape, sigma=1.0, latent_sd=3.0, lower=floor, random_state=seed
    )
    model = SubspaceNetworkRegressor(shape[-1], 3, sigma=kind, lower=floor)
    model.fit(X[N_TEST:], Y[N_TEST:])
    X_test, Y_test = X[:N_TEST], Y[:N_TEST]
    return [
        float((Y_test == floor).mean()),
        float(model.sigma_.mean()),
        float(model.score_log(X_test, Y_test)),
        float(model.score(X_test, Y_test)),
    ]
