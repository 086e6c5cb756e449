"""Tasks of which the first rows show nothing, beside tasks that could be learned."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.online import OnlineSettings, OnlineSolver

SEEDS = range(6)
N_ROWS, N_FEATURES, N_TASKS, RANK = 3000, 40, 20, 4


def measure() -> Table:
    """Relative error of W of the other tasks, without and with four rare ones."""
    yield "seed", "error without rare tasks", "error with them"
    with threadpool_limits(1):
        for seed in SEEDS:
            X, Y, truth = make_subspace(
                N_ROWS, N_FEATURES, N_TASKS, RANK, sigma=1.0, latent_sd=2.0, random_state=seed
            )
            layer = truth.layers[-1]
            W = layer.U @ layer.V
            beside = np.hstack([Y, rare_outcomes(seed)])
            yield seed, *(_error(X, outcomes, W) for outcomes in (Y, beside))


def rare_outcomes(seed: int) -> FloatArray:
    """At the bound but for twelve large values, none of them among the first 600 rows."""
    rng = np.random.default_rng(seed)
    outcomes = np.zeros((N_ROWS, 4))
    for task, size in enumerate((1e2, 1e3, 1e4, 1e5)):
        rows = rng.choice(np.arange(600, N_ROWS), 12, replace=False)
        outcomes[rows, task] = size * rng.exponential(size=12)
    return outcomes


def _error(X: FloatArray, Y: FloatArray, W: FloatArray) -> float:
    solver = OnlineSolver(OnlineSettings(rank=RANK), N_FEATURES, Y.shape[1])
    solver.learn(X, np.where(Y > 0.0, Y, -np.inf), Y)
    found = solver.result()
    return float(np.linalg.norm((found.U @ found.V)[: len(W)] - W) / np.linalg.norm(W))
