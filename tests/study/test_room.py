from pathlib import Path

import numpy as np
import pandas as pd

from deeptobit.study import look_for_room


def _parquet(folder: Path) -> Path:
    frame = pd.DataFrame(np.zeros((1000, 10)), columns=[f"x{k}" for k in range(10)])
    frame.assign(word="a").to_parquet(folder / "a.parquet", index=False)
    return folder / "a.parquet"


def test_a_parquet_table_is_known_by_its_cells(tmp_path: Path) -> None:
    path = _parquet(tmp_path)
    needed = 6 * 1000 * (10 * 8 + 64)
    room = look_for_room(path, 2 * needed)
    assert room is not None
    assert (room.needed, room.enough, room.streamable) == (needed, True, True)
    room = look_for_room(path, 2 * needed - 1)
    assert room is not None
    assert not room.enough
    assert room.shortage == (
        "a.parquet (1,000 rows × 11 columns) would take about 864 kB, more than half of the 2 MB "
        "of memory there is"
    )


def test_a_folder_counts_as_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "cohort"
    folder.mkdir()
    for name in ("one", "two"):
        _parquet(tmp_path).rename(folder / f"{name}.parquet")
    room = look_for_room(folder, 10**6)
    assert room is not None
    assert room.size == "2,000 rows × 11 columns"


def test_other_files_are_to_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "my cohort.csv"
    path.write_text("x\n" * 10_000)
    room = look_for_room(path, 10**9)
    assert room is not None
    assert (room.enough, room.streamable) == (True, False)
    room = look_for_room(path, 10**5)
    assert room is not None
    assert not room.enough
    sentence = str(room.error())
    assert "only Parquet is streamed" in sentence
    assert f"deeptobit convert '{path}', then fit with --data '{path.with_suffix('.parquet')}'" in (
        sentence
    )
    assert "--memory 616kB reads it anyway" in sentence
    assert look_for_room(path, 616_000).enough  # type: ignore[union-attr]
    book = tmp_path / "book.xlsx"
    book.write_bytes(bytes(10_000))
    room = look_for_room(book, 10**5)
    assert room is not None
    assert "Save it as 'CSV UTF-8', and convert that with deeptobit convert" in str(room.error())


def test_what_cannot_be_known_is_left_to_the_reader(tmp_path: Path) -> None:
    assert look_for_room(_parquet(tmp_path), None) is None
    assert look_for_room(tmp_path / "none.parquet", 1) is None
    (tmp_path / "broken.parquet").write_text("no")
    assert look_for_room(tmp_path / "broken.parquet", 1) is None
    (tmp_path / "a.sav").write_text("no")
    assert look_for_room(tmp_path / "a.sav", 1) is None
