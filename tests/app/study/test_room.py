from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import Room, Study, look_for_room, read_study

FRAME = pd.DataFrame(np.zeros((1000, 10)), columns=[f"x{k}" for k in range(10)]).assign(word="a")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "study.toml"
    path.write_text('data.file = "a.parquet"\nmodel.cv = 3\n[targets.x0]\n[targets.x1]')
    return read_study(path)


def _room(study: Study, path: Path, free: int, n_jobs: int = 1) -> Room:
    room = look_for_room(study, path, free, n_jobs)
    assert room is not None
    return room


def test_a_parquet_table_is_known_by_its_cells(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path, index=False)
    reading, fitting = 1000 * (10 * 100 + 180), 1000 * (11 * 40 + 2 * 300)
    needed = reading + fitting
    room = _room(study, path, 2 * needed)
    assert (room.needed, room.enough, room.streamable) == (needed, True, True)
    assert _room(study, path, 1, n_jobs=2).needed == reading + 2 * fitting
    assert _room(study, path, 1, n_jobs=20).needed == reading + 3 * fitting  # there are 3 folds
    room = _room(study, path, 2 * needed - 1)
    assert not room.enough
    assert room.shortage == (
        "a.parquet (1,000 rows × 11 columns) would take about 2 MB, more than half of the 4 MB of "
        "memory there is"
    )


def test_a_folder_counts_as_one_table(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "cohort"
    folder.mkdir()
    for name in ("one", "two"):
        FRAME.to_parquet(folder / f"{name}.parquet", index=False)
    assert _room(study, folder, 1).size[:2] == (2000, 11)


def test_a_text_file_is_known_by_its_first_rows(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "my cohort.tsv"
    FRAME.sample(300_000, replace=True, random_state=0).to_csv(path, index=False, sep="\t")
    assert path.stat().st_size > 10 * 2**20
    room = _room(study, path, 10**10)
    assert room.size.n_rows == pytest.approx(300_000, rel=0.01)
    assert (room.size.n_columns, room.enough, room.streamable) == (11, True, False)
    room = _room(study, path, 10**6)
    sentence = str(room.error())
    assert "of memory there is, and only Parquet is streamed. Convert it once with:" in sentence
    parquet = path.with_suffix(".parquet")
    assert f"deeptobit convert '{path}', then fit with --data '{parquet}'; --memory 1" in sentence
    anyway = sentence.split("--memory ")[1].split()[0]
    assert anyway.endswith("GB")
    assert _room(study, path, int(1e9 * float(anyway[:-2]))).enough


def test_a_workbook_is_known_by_its_largest_sheet(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.head(3).to_excel(book, sheet_name="notes", index=False)
        FRAME.head(50).to_excel(book, sheet_name="scores", index=False)
    room = _room(study, path, 10**4)
    assert room.size[:2] == (51, 11)
    assert "Save it as 'CSV UTF-8', and convert that with deeptobit convert" in str(room.error())


def test_what_cannot_be_known_is_left_to_the_reader(study: Study, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert look_for_room(study, tmp_path / "a.parquet", None) is None
    for name in ("b.parquet", "b.xlsx", "b.sav"):
        assert look_for_room(study, tmp_path / name, 1) is None
        (tmp_path / name).write_text("no")
        assert look_for_room(study, tmp_path / name, 1) is None
    for content in ("é,b".encode("latin-1"), b""):
        (tmp_path / "b.csv").write_bytes(content)
        assert _room(study, tmp_path / "b.csv", 1).enough
