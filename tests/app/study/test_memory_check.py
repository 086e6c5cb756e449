from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import Study, check_memory, read_study
from deeptobit.app.study.memory import MemoryCheck

FRAME = pd.DataFrame(np.zeros((1000, 10)), columns=[f"x{k}" for k in range(10)]).assign(word="a")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "study.toml"
    path.write_text('data.file = "a.parquet"\nmodel.cv = 3\n[targets.x0]\n[targets.x1]')
    return read_study(path)


def _check(study: Study, path: Path, limit: int, n_jobs: int = 1) -> MemoryCheck:
    check = check_memory(study, path, limit, n_jobs)
    assert check is not None
    return check


def test_a_parquet_table_is_known_by_its_cells(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path, index=False)
    reading, fitting = 1000 * (10 * 100 + 180), 1000 * (11 * 40 + 2 * 300)
    needed = reading + fitting
    check = _check(study, path, 2 * needed)
    assert (check.needed, check.enough, check.streamable) == (needed, True, True)
    assert _check(study, path, 1, n_jobs=2).needed == reading + 2 * fitting
    assert _check(study, path, 1, n_jobs=20).needed == reading + 3 * fitting  # there are 3 folds
    check = _check(study, path, 2 * needed - 1)
    assert not check.enough
    assert check.shortage == (
        "a.parquet (1,000 rows × 11 columns) would take about 2 MB, more than half of the 4 MB of "
        "available memory"
    )


def test_a_folder_counts_as_one_table(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "cohort"
    folder.mkdir()
    for name in ("one", "two"):
        FRAME.to_parquet(folder / f"{name}.parquet", index=False)
    assert _check(study, folder, 1).size[:2] == (2000, 11)


def test_a_text_file_is_known_by_its_first_rows(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "my cohort.tsv"
    header, rows = FRAME.to_csv(index=False, sep="\t").split("\n", maxsplit=1)
    path.write_text(f"{header}\n{300 * rows}")
    assert path.stat().st_size > 10 * 2**20
    check = _check(study, path, 10**10)
    assert check.size.n_rows == pytest.approx(300_000, rel=0.01)
    assert (check.size.n_columns, check.enough, check.streamable) == (11, True, False)
    check = _check(study, path, 10**6)
    sentence = str(check.error())
    assert (
        "of available memory, and only Parquet files can be streamed. Convert it once with:"
        in sentence
    )
    parquet = path.with_suffix(".parquet")
    assert f"deeptobit convert '{path}', then fit with --data '{parquet}'; --memory 1" in sentence
    anyway = sentence.split("--memory ")[1].split()[0]
    assert anyway.endswith("GB")
    assert _check(study, path, int(1e9 * float(anyway[:-2]))).enough


def test_a_workbook_is_known_by_its_largest_sheet(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.head(3).to_excel(book, sheet_name="notes", index=False)
        FRAME.head(50).to_excel(book, sheet_name="scores", index=False)
    check = _check(study, path, 10**4)
    assert check.size[:2] == (51, 11)
    assert "Save it as 'CSV UTF-8', and convert that with deeptobit convert" in str(check.error())


def test_what_cannot_be_known_is_left_to_the_reader(study: Study, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert check_memory(study, tmp_path / "a.parquet", None) is None
    for name in ("b.parquet", "b.xlsx", "b.sav"):
        assert check_memory(study, tmp_path / name, 1) is None
        (tmp_path / name).write_text("no")
        assert check_memory(study, tmp_path / name, 1) is None
    for content in ("é,b".encode("latin-1"), b""):
        (tmp_path / "b.csv").write_bytes(content)
        assert _check(study, tmp_path / "b.csv", 1).enough
