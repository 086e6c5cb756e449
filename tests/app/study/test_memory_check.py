from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import Study, check_memory, read_study
from deeptobit.app.study.stream import MemoryCheck

FRAME = pd.DataFrame(np.zeros((1000, 10)), columns=[f"x{k}" for k in range(10)]).assign(word="a")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "study.toml"
    path.write_text('data.file = "a.parquet"\nmodel.cv = 3\n[targets.x0]\n[targets.x1]')
    return read_study(path)


def _check(study: Study, path: Path, limit: int, n_jobs: int = 1) -> MemoryCheck:
    return check_memory(study, path, limit, n_jobs)


def test_a_parquet_table_is_known_by_its_cells(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path, index=False)
    reading, fitting = 1000 * (10 * 100 + 180), 1000 * (11 * 40 + 2 * 300)
    needed = reading + fitting
    check = _check(study, path, 2 * needed)
    assert (check.needed, check.enough) == (needed, True)
    assert _check(study, path, 1, n_jobs=2).needed == reading + 2 * fitting
    assert _check(study, path, 1, n_jobs=20).needed == reading + 3 * fitting  # there are 3 folds
    check = _check(study, path, 2 * needed - 1)
    assert not check.enough
    assert check.shortage == (
        "a.parquet (1,000 rows × 11 columns) would take about 2.2 MB, more than half of the 4.4 MB "
        "of available memory"
    )


def test_a_folder_counts_as_one_table(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "cohort"
    folder.mkdir()
    for name in ("one", "two"):
        FRAME.to_parquet(folder / f"{name}.parquet", index=False)
    check = _check(study, folder, 1)
    assert (check.n_rows, check.n_columns) == (2000, 11)


def test_a_text_file_is_known_by_its_lines(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "my cohort.tsv"
    header, rows = FRAME.to_csv(index=False, sep="\t").split("\n", maxsplit=1)
    path.write_text(f"{header}\n{30 * rows}")
    check = _check(study, path, 10**10)
    assert (check.n_rows, check.n_columns, check.enough) == (30_000, 11, True)
    assert not _check(study, path, 10**6).enough


def test_a_workbook_is_known_by_the_sheet_of_the_study(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.head(3).to_excel(book, sheet_name="notes", index=False)
        FRAME.head(50).to_excel(book, sheet_name="scores", index=False)
    assert _check(study, path, 10**4).n_rows == 3
    scores = replace(study, data=replace(study.data, sheet="scores"))
    assert _check(scores, path, 10**4).n_rows == 50
