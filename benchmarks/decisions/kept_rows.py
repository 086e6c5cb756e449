"""What workers gain by keeping the rows that they read (five minutes on two idle cores)."""

from unittest.mock import patch

from benchmarks.decisions.table import Table
from benchmarks.scale import N_ROWS, fit_on_workers, timed_fit
from benchmarks.scale_data import source
from deeptobit.scale import RowSource
from deeptobit.scale.cluster import ParquetPartitions


def measure() -> Table:
    """Seconds of a fit to its optimum, and how many times as fast as one process that is."""
    yield "who", "rows", "seconds", "times one process"
    timed_fit(source(N_ROWS // 16))
    _, alone = timed_fit(source(N_ROWS))
    yield "one process", "read in every round", round(alone, 1), 1.0
    for n_workers in (1, 2):
        for rows, keep in (("kept", True), ("read in every round", False)):
            seconds = _seconds(n_workers, keep=keep)
            yield f"{n_workers} worker(s)", rows, round(seconds, 1), round(alone / seconds, 2)


def _seconds(n_workers: int, *, keep: bool) -> float:
    if keep:
        return fit_on_workers(n_workers)[1]
    with patch.object(ParquetPartitions, "cached", RowSource.cached):
        return fit_on_workers(n_workers)[1]
