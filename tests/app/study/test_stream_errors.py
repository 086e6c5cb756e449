"""What is wrong with a table that is streamed, in the words that users read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.app.study import Study, StudyError, read_study, stream_study

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

NUMBERS = np.random.default_rng(0).normal(size=400)


def study_of(folder: Path) -> Study:
    path = folder / "a.toml"
    path.write_text('[data]\nfile = "a.parquet"\n[targets.y]\n')
    return read_study(path)


def write(folder: Path, *columns: tuple[str, Any]) -> Path:
    names, values = zip(*columns, strict=True)
    parquet.write_table(pyarrow.table(list(values), names=names), folder / "a.parquet")
    return folder / "a.parquet"


def test_columns_have_names_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path, ("x", NUMBERS), ("x", NUMBERS), ("y", NUMBERS))
    with pytest.raises(StudyError, match=r"a.parquet cannot be read as a Parquet file"):
        stream_study(study_of(tmp_path), path)


def test_what_the_estimator_refuses_is_said_with_the_table(tmp_path: Path) -> None:
    path = write(tmp_path, ("x", NUMBERS), ("y", 1e300 * NUMBERS))
    with pytest.raises(StudyError, match=r"a.parquet: the model cannot be fitted: "):
        stream_study(study_of(tmp_path), path)
