"""Measure the alternatives to a default: ``python -m benchmarks.decisions NAME ...``."""

import sys
from collections.abc import Callable

from threadpoolctl import threadpool_limits

from benchmarks.decisions import (
    alpha,
    continuing,
    cv_depth,
    depth,
    intervals,
    joint,
    kept_rows,
    memory,
    noise,
    online_turns,
    prior,
    race_on_help,
    rare_tasks,
    secants,
    sigma,
    sigma_floor,
    sparsity,
    tuning_share,
    tuning_steps,
    whole_scores,
)
from benchmarks.decisions.table import Table, show

DECISIONS: dict[str, Callable[[], Table]] = {
    "alpha": alpha.measure,
    "continuing": continuing.measure,
    "cv_depth": cv_depth.measure,
    "depth": depth.measure,
    "intervals": intervals.measure,
    "joint": joint.measure,
    "kept_rows": kept_rows.measure,
    "memory": memory.measure,
    "noise": noise.measure,
    "online_turns": online_turns.measure,
    "prior": prior.measure,
    "race_on_help": race_on_help.measure,
    "rare_tasks": rare_tasks.measure,
    "secants": secants.measure,
    "sigma": sigma.measure,
    "sigma_floor": sigma_floor.measure,
    "sparsity": sparsity.measure,
    "tuning_share": tuning_share.measure,
    "tuning_steps": tuning_steps.measure,
    "whole_scores": whole_scores.measure,
}


def main(names: list[str]) -> int:
    """Print one table per name; all of them without names."""
    unknown = [name for name in names if name not in DECISIONS]
    if unknown:
        print(f"unknown decision(s) {unknown}; there are {list(DECISIONS)}", file=sys.stderr)
        return 2
    for name in names or DECISIONS:
        print(f"\n{name}\n")
        with threadpool_limits(1):
            show(DECISIONS[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
