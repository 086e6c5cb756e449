"""Progress of the subspace solvers, on one line of stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from deeptobit.arrays import FloatArray
from deeptobit.solvers import Step
from deeptobit.solvers.online import OnlineSolver
from deeptobit.targets import CensoredTargets

_CHUNK_ROWS = 8192


def learn_passes(
    solver: OnlineSolver, matrix: Any, targets: CensoredTargets, weight: FloatArray, n_passes: int
) -> Iterator[int]:
    """Learn all rows ``n_passes`` times, in chunks; yields the number of rows learned so far."""
    n_rows = len(targets)
    for turn in range(n_passes):
        for start in range(0, n_rows, _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
            solver.learn(matrix[rows], targets.low[rows], targets.high[rows], weight[rows])
            yield turn * n_rows + rows.stop


def show_rows(done: int, total: int) -> None:
    """Rows that the online solver has learned."""
    show(f"{done:,} of {total:,} rows ({done / total:.0%})")
    if done == total:
        end_line()


def show_step(step: Step) -> None:
    """A step of the batch solver."""
    show(
        f"{step.n_iter:,} Newton steps, objective {step.objective:.6g}, "
        f"relative gradient norm {step.gradient_norm:.1e}"
    )


def end_line() -> None:
    """Leave the line of progress."""
    print(file=sys.stderr)


def show(text: str) -> None:
    """Write over the line of progress."""
    print(f"\r{text:<70}", end="", file=sys.stderr)
