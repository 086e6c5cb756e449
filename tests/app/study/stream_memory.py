"""Stream the Parquet files that are named, and print how much memory each takes at its peak."""

import sys
from pathlib import Path

from deeptobit.app.study import read_study, stream_study


def resident(line: str) -> int:
    """Resident memory now (VmRSS), or its peak since it was last forgotten (VmHWM), in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(found.split()[1]) // 1024 for found in lines if found.startswith(line))


if __name__ == "__main__":
    study = read_study(sys.argv[1])
    for table in map(Path, sys.argv[2:]):
        Path("/proc/self/clear_refs").write_text("5")  # peaks count from here
        before = resident("VmRSS:")
        fitted = stream_study(study, table)
        print(fitted.n_rows, resident("VmHWM:") - before)
