"""The loader of checkpoints, with which a fit to rows beyond memory is taken up again."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.estimators.checkpoint import Checkpoint
from deeptobit.exceptions import ModelFileError
from deeptobit.scale import ParquetRows, Progress
from deeptobit.scale import online as _online
from fuzz.state_files import mutate_state_file
from fuzz.target import Target

FIT = {"class": '"of any kind"', "features": '["x0", "x1"]', "targets": '["y0", "y1"]'}


def _read(path: Path) -> None:
    """Read the progress of a fit to two features and two targets."""
    Checkpoint(path, FIT).read()


@cache
def _seeds() -> dict[str, bytes]:
    """Progress of both solvers, at the beginning, on the way and at the end."""
    with TemporaryDirectory() as folder:
        rows = _rows(Path(folder, "rows.parquet"))
        found: list[Progress] = []
        with (
            patch.object(Checkpoint, "write", lambda self, progress: found.append(progress)),
            patch.object(_online, "_SECONDS_BETWEEN", -1.0),
        ):
            for solver in ("batch", "online"):
                for model in (
                    SubspaceTobitRegressor(1, upper=2.0, solver=solver),
                    SubspaceNetworkRegressor(1, 2, upper=2.0, solver=solver),
                ):
                    model.fit(rows, checkpoint=Path(folder, "fit"))
        found.append(Progress())
        seeds = {}
        for number, progress in enumerate(found[:2] + found[2::4]):
            path = Path(folder, "checkpoint")
            Checkpoint(path, FIT).write(progress)
            seeds[f"progress {number}"] = path.read_bytes()
        return seeds


def _rows(path: Path) -> ParquetRows:
    index = np.arange(1.0, 81.0)
    frame = pd.DataFrame({"x0": np.sin(index), "x1": np.cos(1.7 * index)})
    noise = 0.3 * np.sin(7.3 * index)
    frame["y0"] = np.clip(1.0 + frame.x0 + noise, 0.0, 2.0)
    frame["y1"] = np.clip(0.5 - frame.x1 + noise, 0.0, 2.0)
    frame.to_parquet(path, index=False, row_group_size=20)
    return ParquetRows(path, targets=["y0", "y1"], features=["x0", "x1"], batch_rows=20)


TARGET = Target("checkpoints", "a.checkpoint", _read, ModelFileError, _seeds, mutate_state_file)
