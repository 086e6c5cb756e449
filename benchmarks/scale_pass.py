"""One pass over a table in a process of its own: ``python -m benchmarks.scale_pass ROWS WHERE``.

Prints rows per second and the peak of resident memory above that after the imports, in megabytes.
A first pass over few rows compiles before either is measured.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.scale_data import FEATURES, RANK, TARGETS, rows, source
from deeptobit import SubspaceTobitRegressor
from deeptobit.scale import ParquetRows


def resident(peak: bool = False) -> float:
    """Resident memory now, or its peak since it was last forgotten, in megabytes (Linux)."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith(wanted))


def forget_peak() -> None:
    """Peaks count from here; a child process begins with its parent's."""
    Path("/proc/self/clear_refs").write_text("5")


def main(n_rows: int, where: str) -> None:
    """Learn online from the files, or from the same rows in memory."""
    model = SubspaceTobitRegressor(RANK, solver="online", random_state=0)
    model.fit(*rows(0, 2000))
    table = source(n_rows)
    forget_peak()
    before = resident()
    X: pd.DataFrame | ParquetRows = table
    y = None
    if where == "memory":
        frame = pd.concat([pd.read_parquet(shard.path) for shard in table.shards])
        X, y = frame[FEATURES], frame[TARGETS]
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    found = {"rate": n_rows / seconds, "peak": resident(peak=True) - before}
    print(json.dumps(found))


if __name__ == "__main__":
    with threadpool_limits(1):
        main(int(sys.argv[1]), sys.argv[2])
