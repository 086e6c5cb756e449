from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.scale import ParquetTable


def _frame(n_rows: int = 10) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": np.arange(n_rows, dtype=float),
            "word": [f"w{row}" for row in range(n_rows)],
            "when": pd.to_datetime(["2020-01-01"] * n_rows),
        }
    )


def _write(folder: Path) -> Path:
    folder.mkdir()
    _frame().iloc[:6].to_parquet(folder / "1.parquet", index=False)
    _frame().iloc[6:].to_parquet(folder / "2.parquet", index=False)
    return folder


@pytest.mark.parametrize("batch_rows", [1, 4, 100])
def test_every_row_comes_once_and_in_order(batch_rows: int, tmp_path: Path) -> None:
    table = ParquetTable(_write(tmp_path / "data"))
    frames = list(table.frames(["word", "x"], batch_rows))
    cells = pd.concat([frame.cells.to_pandas() for frame in frames], ignore_index=True)
    pd.testing.assert_frame_equal(cells, _frame()[["word", "x"]])
    assert max(len(frame.cells) for frame in frames) <= batch_rows
    assert [frame.row for frame in frames] == np.cumsum([0, *(len(f.cells) for f in frames)])[
        :-1
    ].tolist()
    second = next(frame for frame in frames if frame.row == 6)
    assert (second.where, second.lines[0]) == ("2.parquet", 2)


def test_what_the_metadata_tell(tmp_path: Path) -> None:
    table = ParquetTable(_write(tmp_path / "data"))
    assert (table.n_rows, table.columns) == (10, ["x", "word", "when"])
    assert table.n_words == 1


def test_an_index_without_a_name_is_no_column(tmp_path: Path) -> None:
    _frame().set_index(np.arange(10) * 2).to_parquet(tmp_path / "a.parquet")
    assert ParquetTable(tmp_path / "a.parquet").columns == ["x", "word", "when"]


def test_keys_of_a_partitioned_data_set_are_columns(tmp_path: Path) -> None:
    frame = _frame().assign(site=np.arange(10) % 2)
    frame.to_parquet(tmp_path / "data", partition_cols=["site"], index=False)
    table = ParquetTable(tmp_path / "data")
    assert table.columns[-1] == "site"
    cells = pd.concat([part.cells.to_pandas() for part in table.frames(["site", "x"], 3)])
    np.testing.assert_array_equal(cells["site"], np.repeat([0, 1], 5))
    np.testing.assert_array_equal(cells["x"], [*range(0, 10, 2), *range(1, 10, 2)])


def test_columns_whose_names_begin_alike(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0], "x.1": [2.0]}).to_parquet(tmp_path / "a.parquet")
    (frame,) = ParquetTable(tmp_path / "a.parquet").frames(["x"], 5)
    assert frame.cells.schema.names == ["x"]


def test_what_is_wrong_is_said_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        ParquetTable(tmp_path / "none")
    folder = _write(tmp_path / "data")
    _frame().drop(columns="x").to_parquet(folder / "3.parquet", index=False)
    with pytest.raises(ValueError, match=r"3.parquet has no column 'x'; it has 'word', 'when'"):
        list(ParquetTable(folder).frames(["x"], 5))
    (folder / "3.parquet").write_bytes(b"PAR1 and then nothing PAR1")
    with pytest.raises(ValueError, match=r"3.parquet cannot be read as Parquet"):
        ParquetTable(folder)
