"""What is wrong with Parquet files and the roles of their columns, in the words that users read."""

from pathlib import Path

import pandas as pd
import pytest

from deeptobit.scale import ParquetRows

TABLE = pd.DataFrame({"age": [60.0, 70.0], "MMSE": [30.0, 28.0]})


def test_blocks_have_rows(tmp_path: Path) -> None:
    TABLE.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="batch_rows must be at least 1; got 0"):
        ParquetRows(tmp_path, targets=["MMSE"], batch_rows=0)


def test_files_have_rows_and_features(tmp_path: Path) -> None:
    TABLE[:0].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="the Parquet files hold no rows"):
        ParquetRows(tmp_path, targets=["MMSE"])
    with pytest.raises(ValueError, match="there is no column left to predict from; name some"):
        ParquetRows(tmp_path, targets=["age", "MMSE"])


def test_folders_that_are_named_by_words_are_no_feature(tmp_path: Path) -> None:
    TABLE.assign(site=["A", "B"]).to_parquet(tmp_path / "data", partition_cols=["site"])
    assert ParquetRows(tmp_path / "data", targets=["MMSE"]).features == ("age",)
    with pytest.raises(ValueError, match="is partitioned by site, whose values are not numbers"):
        ParquetRows(tmp_path / "data", targets=["MMSE"], features=["age", "site"])
