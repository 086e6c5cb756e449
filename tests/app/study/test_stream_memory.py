"""Memory does not grow with the rows: measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deeptobit.extras import require

SCRIPT = Path(__file__).with_name("stream_memory.py")
N_FEATURES, N_TASKS, PART = 20, 5, 50_000
STUDY = "".join(f"[targets.y{task}]\nlower = 0\n" for task in range(N_TASKS))


def _write(path: Path, n_rows: int) -> Path:
    arrow, parquet = require("pyarrow", "scale"), require("pyarrow.parquet", "scale")
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(N_FEATURES, N_TASKS))
    writer = None
    for _ in range(n_rows // PART):
        X = rng.normal(size=(PART, N_FEATURES))
        Y = np.maximum(X @ coef + rng.normal(size=(PART, N_TASKS)), 0.0)
        columns = {f"x{k}": x for k, x in enumerate(X.T)} | {f"y{k}": y for k, y in enumerate(Y.T)}
        columns["sex"] = rng.choice(["f", "m"], PART)
        part = arrow.table(columns)
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=PART)
    assert writer is not None
    writer.close()
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f'data.file = "a.parquet"\nmodel.members = ["stack"]\n{STUDY}')
    first = _write(tmp_path / "first.parquet", PART)
    large = _write(tmp_path / "large.parquet", 16 * PART)
    command = [sys.executable, str(SCRIPT), str(study), str(first), str(large)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)]
    found = [tuple(map(int, run.stdout.split("\n")[1].split())) for run in runs]
    assert {n_rows for n_rows, _ in found} == {16 * PART}
    cells = 16 * PART * (8 * (N_FEATURES + N_TASKS) + 64) / 2**20  # in MB, if they were read whole
    assert cells > 200
    assert min(added for _, added in found) < 40  # what memory is given back when varies by 40 MB
