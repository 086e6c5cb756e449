"""Rows that are held out of a stream are of use if something is known of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import StudyError, read_study, stream_study
from deeptobit.app.study.chunks import Chunk
from deeptobit.app.study.stream import HeldRows
from deeptobit.app.study.tables import Table


def test_rows_that_are_held_out_need_outcomes(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[data]\nfile = "a.parquet"\n[targets.y]\n')
    study = read_study(tmp_path / "a.toml")
    x = np.random.default_rng(0).normal(size=400)
    frame = pd.DataFrame({"x": x, "y": np.maximum(x, 0.0)})
    table = Table(frame, "a.parquet", np.arange(400))
    apart = HeldRows.of(study, 400, None).among(Chunk(table, np.arange(400)))
    frame.loc[apart, "y"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match="no row that is held out has a target; add rows"):
        stream_study(study, tmp_path / "a.parquet")
