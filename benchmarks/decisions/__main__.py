"""Measure the alternatives to a default: ``python -m benchmarks.decisions NAME ...``."""

import sys
from importlib import import_module

from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import show

DECISIONS = (
    "alpha",
    "batches",
    "components",
    "continuing",
    "cv_depth",
    "depth",
    "doctor",
    "engines",
    "few_missing",
    "interrupt",
    "intervals",
    "joint",
    "kept_rows",
    "memory",
    "network_alpha",
    "noise",
    "online_turns",
    "prior",
    "race_on_help",
    "rare_tasks",
    "secants",
    "sigma",
    "sigma_floor",
    "sparsity",
    "stability",
    "tree_probe",
    "trees",
    "tuning_share",
    "tuning_steps",
    "whole_scores",
)


def main(names: list[str]) -> int:
    """Print one table per name; all of them without names."""
    unknown = [name for name in names if name not in DECISIONS]
    if unknown:
        print(f"unknown decision(s) {unknown}; there are {list(DECISIONS)}", file=sys.stderr)
        return 2
    for name in names or DECISIONS:
        # One by one: some need packages that the environment of another has not.
        measure = import_module(f"benchmarks.decisions.{name}").measure
        print(f"\n{name}\n")
        with threadpool_limits(1):
            show(measure())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
