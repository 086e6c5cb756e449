"""Engines for tables: what each takes to summarise, split and stream a table of four gigabytes.

DuckDB is not among the packages for development: ``pip install duckdb`` first.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from pandas.util import hash_array

from benchmarks.decisions.table import Table
from deeptobit.extras import require

N_FEATURES, BLOCK = 60, 100_000
SIZES = {"small, 1,000 rows": 1_000, "4 GB": 8_000_000}
BATCH = 16_384
STEPS = ("summarise", "split", "stream")


def measure() -> Table:
    """Processor seconds and peak megabytes of every engine, in a process each."""
    yield "table", "file", "step", "engine", "seconds", "peak MB"
    with TemporaryDirectory() as folder:
        for title, n_rows in SIZES.items():
            paths = write_tables(Path(folder), n_rows)
            for path in paths:
                for step in STEPS:
                    for engine in ENGINES:
                        yield title, path.suffix[1:], step, engine, *_run(engine, step, path)


def write_tables(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """The same table as CSV and as Parquet: a label of 20 rows each, and numbers."""
    arrow, csv = require("pyarrow", "app"), require("pyarrow.csv", "app")
    parquet = require("pyarrow.parquet", "app")
    paths = folder / "table.csv", folder / "table.parquet"
    rng, writers = np.random.default_rng(0), list[Any]()
    for first in range(0, n_rows, BLOCK):
        size = min(BLOCK, n_rows - first)
        labels = [f"S{row // 20:07d}" for row in range(first, first + size)]
        numbers = rng.normal(size=(N_FEATURES, size)).round(4)
        names = [f"x{column}" for column in range(N_FEATURES)]
        batch = arrow.record_batch([labels, *numbers], names=["person", *names])
        writers = writers or [
            csv.CSVWriter(paths[0], batch.schema),
            parquet.ParquetWriter(paths[1], batch.schema),
        ]
        for writer in writers:
            writer.write_batch(batch)
    for writer in writers:
        writer.close()
    return paths


# Every engine yields batches of some columns, in the order of the file.


def _dataset(path: Path, columns: list[str] | None) -> Iterator[Any]:
    dataset = require("pyarrow.dataset", "app")
    table = dataset.dataset(path, format=path.suffix[1:])
    options = {"batch_size": BATCH, "use_threads": False, "batch_readahead": 1}
    yield from table.to_batches(columns=columns, fragment_readahead=0, **options)


def _readers(path: Path, columns: list[str] | None) -> Iterator[Any]:
    """The readers of CSV and Parquet in pyarrow, as :mod:`deeptobit.scale` calls them."""
    if path.suffix == ".parquet":
        parquet = require("pyarrow.parquet", "app")
        file = parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False)
        yield from file.iter_batches(BATCH, columns=columns, use_threads=False)
        return
    csv = require("pyarrow.csv", "app")
    reading = csv.ReadOptions(block_size=2**24, use_threads=False)
    yield from csv.open_csv(path, reading, None, csv.ConvertOptions(include_columns=columns))


def _duckdb(path: Path, columns: list[str] | None) -> Iterator[Any]:
    chosen = "*" if columns is None else ", ".join(columns)
    link = require("duckdb", "dev").connect(config={"threads": 1})
    yield from link.sql(f"SELECT {chosen} FROM '{path}'").to_arrow_reader(BATCH)


def _polars(path: Path, columns: list[str] | None) -> Iterator[Any]:
    polars = require("polars", "dev")
    scan = polars.scan_csv if path.suffix == ".csv" else polars.scan_parquet
    table = scan(path) if columns is None else scan(path).select(columns)
    for frame in table.collect_batches(chunk_size=BATCH, maintain_order=True):
        yield from frame.to_arrow().to_batches()


ENGINES: dict[str, Callable[[Path, list[str] | None], Iterator[Any]]] = {
    "pyarrow": _readers,
    "pyarrow.dataset": _dataset,
    "duckdb": _duckdb,
    "polars": _polars,
}


def summarise(engine: str, path: Path) -> None:
    """Count, sum and extremes of every number, by the engine's own means where it has any."""
    names = [f"x{column}" for column in range(N_FEATURES)]
    if engine == "duckdb":
        parts = [f"count({n}), sum({n}), min({n}), max({n})" for n in names]
        link = require("duckdb", "dev").connect(config={"threads": 1})
        link.sql(f"SELECT {', '.join(parts)} FROM '{path}'").fetchall()
    elif engine == "polars":
        polars = require("polars", "dev")
        scan = polars.scan_csv if path.suffix == ".csv" else polars.scan_parquet
        of = polars.col(names)
        parts = [of.count().name.suffix("_n"), of.sum(), of.min().name.suffix("_l")]
        parts.append(of.max().name.suffix("_h"))
        scan(path).select(parts).collect(engine="streaming")
    else:
        compute = require("pyarrow.compute", "app")
        for batch in ENGINES[engine](path, names):
            for column in batch.columns:
                compute.sum(column)
                compute.min_max(column)


def split(engine: str, path: Path) -> None:
    """Rows in a tenth of the groups, by a hash of the group that does not depend on the engine."""
    count = 0
    for batch in ENGINES[engine](path, ["person"]):
        keys = batch.column(0).to_numpy(zero_copy_only=False)
        count += int((hash_array(keys.astype(object)) < 2**64 // 10).sum())


def stream(engine: str, path: Path) -> None:
    """A matrix of doubles from every batch, as a pass of a fit reads it."""
    names = [f"x{column}" for column in range(N_FEATURES)]
    total = np.zeros(N_FEATURES)
    for batch in ENGINES[engine](path, names):
        total += np.column_stack([column.to_numpy() for column in batch.columns]).sum(axis=0)


def _run(engine: str, step: str, path: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.decisions.engines", engine, step, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = map(float, run.stdout.split())
    return seconds, peak


if __name__ == "__main__":
    started = process_time()
    {"summarise": summarise, "split": split, "stream": stream}[sys.argv[2]](
        sys.argv[1], Path(sys.argv[3])
    )
    print(process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
