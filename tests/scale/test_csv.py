from pathlib import Path

import pytest

from deeptobit.scale import TextTable
from deeptobit.scale import csv as _csv


@pytest.mark.parametrize("note", ["plain", '"a, ""b""\nc"'], ids=["plain", "quoted"])
def test_many_blocks_are_one_table_and_every_row_knows_its_line(
    note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv, "_BLOCK_BYTES", 1000)
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
