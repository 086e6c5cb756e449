from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.scale import TextTable, csv, csv_to_parquet


@pytest.mark.parametrize("note", ["plain", '"a, ""b""\nc"'], ids=["plain", "quoted"])
def test_many_blocks_are_one_table_and_every_row_knows_its_line(
    note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv, "_BLOCK_BYTES", 1000)
    path, lines_per_row = tmp_path / "a.csv", 1 + note.count("\n")
    rows = [f"{row},{note}" for row in range(2000)]
    path.write_text("\n".join(["number,note", *rows]) + "\n")
    table = TextTable(path)
    frames = list(table.frames(None, 300))
    assert table.n_rows == 2000
    assert len(frames) > 10
    numbers = [cell for frame in frames for cell in frame.cells["number"].to_pylist()]
    assert numbers == [str(row) for row in range(2000)]
    cell = note.strip('"').replace('""', '"')
    assert {each for frame in frames for each in frame.cells["note"].to_pylist()} == {cell}
    lines = [line for frame in frames for line in frame.lines.tolist()]
    assert lines == [1 + lines_per_row * row for row in range(1, 2001)]


def test_a_row_that_is_too_short_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"a.csv, line 3: 1 cells, but the header names 2"):
        list(TextTable(tmp_path / "a.csv").frames(None, 100))


def _convert(folder: Path, text: str, **options: object) -> pd.DataFrame:
    (folder / "a.csv").write_text(text, encoding="utf-8")
    decimal_comma = bool(options.pop("decimal_comma", False))
    table = TextTable(folder / "a.csv", **options)  # type: ignore[arg-type]
    csv_to_parquet(table, folder / "a.parquet", decimal_comma=decimal_comma)
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
    monkeypatch.setattr(csv, "_BLOCK_BYTES", 1000)  # many blocks
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
