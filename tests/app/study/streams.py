"""The cohort of visits as Parquet, and its rows in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import Study, StudyData, stream
from deeptobit.app.study.data import read_groups
from deeptobit.app.study.stream import GroupCount, HeldOutRows, hash_uniform
from deeptobit.arrays import BoolArray
from tests.app.study.cohorts import read_cohort, write_cohort


def write_parquet(
    folder: Path, *, n_files: int = 1, **options: object
) -> tuple[Study, StudyData, Path]:
    """A study, its table in memory, and the same table as a Parquet file or a folder of them."""
    study, data = read_cohort(write_cohort(folder, **options))  # type: ignore[arg-type]
    frame = pd.read_csv(folder / "cohort.csv", dtype={"visit": str, "person": str})
    if n_files == 1:
        path = folder / "cohort.parquet"
        frame.to_parquet(path)
        return study, data, path
    path = folder / "cohort"
    path.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(path / f"part-{part}.parquet", index=False)
    return study, data, path


def held_out(study: Study, data: StudyData) -> BoolArray:
    """Which rows of the table are held out."""
    labels = read_groups(study, data.table)
    groups = None
    if labels is not None:
        groups = GroupCount(np.unique(hash_uniform(labels, study.model.seed)))
    rows = HeldOutRows.choose(study, len(data.table), groups)
    return rows.among(data.table, np.arange(len(data.table)))


@contextmanager
def chunks_of(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables are read so many rows at a time."""
    with monkeypatch.context() as patch:
        patch.setattr(stream, "_MOST_ROWS", n_rows)
        patch.setattr(stream, "_FEWEST_ROWS", n_rows)
        yield
