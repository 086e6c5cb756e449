"""What reading a table whole and fitting it take in memory, beside what `deeptobit fit` reckons."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.decisions.table import Table
from benchmarks.scale_pass import forget_peak, resident
from deeptobit.app.study import build_data, check_memory, make_model, read_data, read_study

READ = (("parquet", 40_000, 20), ("csv", 40_000, 20), ("xlsx", 10_000, 20), ("csv", 4_000, 300))
FITTED = ((20, 5), (20, 20), (80, 5))  # features and targets
ROWS = 20_000


def measure() -> Table:
    """Bytes a row at the peak of reading, and of fitting one model in one process."""
    yield "step", "table", "bytes a row", "reckoned"
    with TemporaryDirectory() as folder:
        for kind, n_rows, n_features in READ:
            path = _write(Path(folder), kind, n_rows, n_features, 5)
            check = check_memory(read_study(path.with_suffix(".toml")), path, limit=1)
            reckoned = check.reading / n_rows
            title = f"{kind}, {n_features + 5} columns"
            yield "reading", title, _peak("read", path) / n_rows, reckoned
        for n_features, n_tasks in FITTED:
            path = _write(Path(folder), "parquet", ROWS, n_features, n_tasks)
            check = check_memory(read_study(path.with_suffix(".toml")), path, limit=1)
            reckoned = (check.needed - check.reading) / ROWS
            title = f"{n_features} features, {n_tasks} targets"
            yield "fitting", title, _peak("fit", path) / ROWS, reckoned


def _write(folder: Path, kind: str, n_rows: int, n_features: int, n_tasks: int) -> Path:
    """A table of four decimals, and its study."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    Y = X @ rng.normal(size=(n_features, n_tasks)) + rng.normal(size=(n_rows, n_tasks))
    columns = [f"x{k}" for k in range(n_features)] + [f"y{k}" for k in range(n_tasks)]
    frame = pd.DataFrame(np.hstack([X, np.maximum(Y, 0.0)]).round(4), columns=columns)
    path = folder / f"a.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_excel(path, index=False)
    targets = "".join(f"[targets.y{task}]\nlower = 0\n" for task in range(n_tasks))
    study = f'data.file = "{path.name}"\n{targets}'
    path.with_suffix(".toml").write_text(study)
    return path


def _peak(step: str, table: Path) -> float:
    """Bytes that a step takes in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.decisions.memory", step, str(table)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(run.stdout) * 2**20


def main(step: str, table: Path) -> None:
    """Print the megabytes of a step."""
    study = read_study(table.with_suffix(".toml"))
    pd.DataFrame([[0]]).to_excel(table.with_name("warm.xlsx"))  # what it imports is no table
    if step == "fit":
        data = build_data(study, read_data(study))
        make_model(study).fit(data.X.head(200), data.targets[:200])  # compiles
    forget_peak()
    before = resident()
    if step == "fit":
        make_model(study).fit(data.X, data.targets)
    else:
        build_data(study, read_data(study))
    print(resident(peak=True) - before)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
