"""Run all benchmarks: ``python -m benchmarks [name ...]``."""

import sys
from collections.abc import Callable, Iterator

from benchmarks import (
    algorithm1,
    cohort,
    default,
    inference,
    long,
    network,
    online,
    scale,
    scale_cost,
    subspace,
    table,
    tobit,
    visits,
)
from benchmarks.report import Number

BENCHMARKS: dict[str, Callable[[], Iterator[Number]]] = {
    "tobit": tobit.measure,
    "subspace": subspace.measure,
    "online": online.measure,
    "algorithm1": algorithm1.measure,
    "network": network.measure,
    "cohort": cohort.measure,
    "default": default.measure,
    "inference": inference.measure,
    "table": table.measure,
    "pages": table.pages,
    "scale": scale.measure,
    "cost": scale_cost.measure,
    "visits": visits.measure,
    "long": long.measure,
}


def main(names: list[str]) -> int:
    """Print every number as it is measured; the exit code tells whether all were reached."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark(s) {unknown}; there are {list(BENCHMARKS)}", file=sys.stderr)
        return 2
    reached = True
    for name in names or BENCHMARKS:
        for number in BENCHMARKS[name]():
            print(f"{name}: {number}", flush=True)
            reached &= number.reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
