from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.scale import csv as _csv
from deeptobit.scale import csv_to_parquet


def _convert(folder: Path, text: str, **options: object) -> pd.DataFrame:
    (folder / "a.csv").write_text(text, encoding="utf-8")
    csv_to_parquet(folder / "a.csv", folder / "a.parquet", **options)  # type: ignore[arg-type]
    assert not (folder / "a.parquet.part").exists()
    return pd.read_parquet(folder / "a.parquet")


def test_numbers_are_numbers_and_all_else_is_text(tmp_path: Path) -> None:
    text = 'id,age,note,score,big\n007,70,"a, ""b""\nc",<0.5,1e300\n012,,,3,-2.5\n'
    frame = _convert(tmp_path, text)
    assert frame["id"].tolist() == ["007", "012"]
    np.testing.assert_array_equal(frame["age"], [70.0, np.nan])
    assert frame["note"][0] == 'a, "b"\nc'
    assert frame["note"].isna()[1]
    assert frame["score"].tolist() == ["<0.5", "3"]
    np.testing.assert_array_equal(frame["big"], [1e300, -2.5])


def test_a_word_in_the_last_row_decides_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv, "_BLOCK_BYTES", 1000)  # many blocks
    rows = [f"{row},{row},{row}" for row in range(1, 2000)]
    frame = _convert(tmp_path, "\n".join(["a,b,c", *rows, "x,007,5"]))
    assert frame["a"].tolist()[-2:] == ["1999", "x"]
    assert frame["b"].tolist()[-2:] == ["1999", "007"]
    assert frame["c"].dtype == np.float64
    assert len(frame) == 2000


def test_decimal_commas_and_blanks(tmp_path: Path) -> None:
    text = "a;b;c;d\n1,5;1.5;1,5;NA\n2;.;1.5;7\n"
    options = {"separator": ";", "decimal_comma": True, "blanks": ["", "NA", "."]}
    frame = _convert(tmp_path, text, **options)
    np.testing.assert_array_equal(frame["a"], [1.5, 2.0])
    np.testing.assert_array_equal(frame["b"], [1.5, np.nan])
    assert frame["c"].tolist() == ["1,5", "1.5"]  # one of both is wrong, and nobody knows which
    np.testing.assert_array_equal(frame["d"], [np.nan, 7.0])
    assert _convert(tmp_path, 'a\n"1,5"\n')["a"].tolist() == ["1,5"]


def test_a_row_that_is_too_short_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a.csv, line 3: 1 cells, but the header names 2"):
        _convert(tmp_path, "a,b\n1,2\n3\n")
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_progress_and_the_number_of_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffa,b\n1,2\n3,4\n", encoding="utf-8")
    told: list[int] = []
    out = tmp_path / "a.parquet"
    assert csv_to_parquet(tmp_path / "a.csv", out, progress=told.append) == 2
    assert told == [2]
    assert pd.read_parquet(out).columns.tolist() == ["a", "b"]
