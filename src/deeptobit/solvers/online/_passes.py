"""Several passes over rows that are all there."""

from collections.abc import Iterator
from typing import Any

from deeptobit.arrays import FloatArray
from deeptobit.solvers.online._solver import OnlineSolver
from deeptobit.targets import CensoredTargets

_CHUNK_ROWS = 8192


def learn_passes(
    solver: OnlineSolver, X: Any, targets: CensoredTargets, weight: FloatArray, n_passes: int
) -> Iterator[int]:
    """Learn all rows ``n_passes`` times, in chunks; yields the number of rows learned so far.

    X is anything whose slices are rows, so that the inputs of a layer need not exist at once.
    """
    n_rows = len(targets)
    for turn in range(n_passes):
        for start in range(0, n_rows, _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
            solver.learn(X[rows], targets.low[rows], targets.high[rows], weight[rows])
            yield turn * n_rows + rows.stop
