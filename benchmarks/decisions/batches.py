"""Rows one by one, compiled, against batches: time of one thread, and error over the oracle's."""

from time import thread_time

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian
from deeptobit.metrics import anmse
from deeptobit.online import OnlineSettings, OnlineSolver
from deeptobit.targets import CensoredTargets

_ROWS, _TEST_ROWS = 2000, 1000
_SIZES = ((50, 20, 5), (200, 100, 10), (200, 100, 30), (500, 500, 30), (200, 1000, 10))
_RUNS = 4


class Interpreted(Gaussian):
    """Gaussian noise without compiled code, which learns in batches."""


def measure() -> Table:
    """Least seconds of a few runs, and errors of the clipped scores of new rows."""
    batches = [f"batches of {size}" for size in (16, 64)]
    heads = [f"{learner}: {what}" for learner in ("rows", *batches) for what in ("ms", "error")]
    yield "features", "targets", "rank", *heads
    for n_features, n_tasks, rank in _SIZES:
        shape = _ROWS + _TEST_ROWS, n_features, n_tasks, rank
        X, Y, truth = make_subspace(*shape, sigma=3.0, random_state=0)
        targets = CensoredTargets.from_bounds(Y[:_ROWS], 0.0)
        oracle = float(anmse(Y[_ROWS:], truth.predict(X[_ROWS:])))
        row: list[float] = []
        for size, noise in ((1, Gaussian()), (16, Interpreted()), (64, Interpreted())):
            settings = OnlineSettings(rank, batch_size=size, noise=noise)
            seconds = []
            for _ in range(_RUNS):  # the first compiles
                solver = OnlineSolver(settings, n_features, n_tasks)
                start = thread_time()
                solver.learn(X[:_ROWS], targets.low, targets.high)
                found = solver.result()
                seconds.append(thread_time() - start)
            latent = X[_ROWS:] @ (found.U @ found.V).T + found.intercept
            error = float(anmse(Y[_ROWS:], np.maximum(latent, 0.0)))
            row += [round(1e3 * min(seconds), 1), round(error / oracle, 3)]
        yield n_features, n_tasks, rank, *row
