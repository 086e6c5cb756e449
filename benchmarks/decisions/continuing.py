"""Going on with partial_fit after fit, against a fit to all rows."""

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit import SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse

SEEDS = range(3)
N_TRAIN = 4000


def measure() -> Table:
    """ANMSE over the oracle's and σ over the truth, on the paper's generator."""
    yield "rows fitted", "then", "ANMSE over the oracle's", "σ over the truth"
    for n_fitted in (300, 500, 1000):
        yield n_fitted, "", *_mean(n_fitted, n_streamed=0)
        yield n_fitted, f"{N_TRAIN - n_fitted} streamed", *_mean(n_fitted, N_TRAIN - n_fitted)
    yield N_TRAIN, "", *_mean(N_TRAIN, n_streamed=0)


def _mean(n_fitted: int, n_streamed: int) -> tuple[float, float]:
    error, sigma = np.mean([_run(n_fitted, n_streamed, seed) for seed in SEEDS], axis=0).tolist()
    return error, sigma


def _run(n_fitted: int, n_streamed: int, seed: int) -> tuple[float, float]:
    X, Y, truth = make_subspace(5000, 200, 100, 10, sigma=3.0, random_state=seed)
    model = SubspaceTobitRegressor(10, solver="batch").fit(X[:n_fitted], Y[:n_fitted])
    if n_streamed:
        new = slice(n_fitted, n_fitted + n_streamed)
        model.partial_fit(X[new], Y[new])
    X_test, Y_test = X[N_TRAIN:], Y[N_TRAIN:]
    error = anmse(Y_test, model.predict(X_test, kind="clip"))
    return float(error / anmse(Y_test, truth.predict(X_test))), float(model.sigma_.mean() / 3.0)
