"""Progress of the subspace solvers, on one line of stderr."""

from __future__ import annotations

import sys

from deeptobit.solvers import Step


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
