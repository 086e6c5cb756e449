from pathlib import Path

import pandas as pd
import pytest

from deeptobit.app.study import StudyError, build_data, convert_table, read_data, read_table
from tests.app.study.cohorts import read_cohort, write_cohort


def test_a_study_of_the_parquet_file_is_that_of_the_csv_file(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=20))
    parquet = tmp_path / "cohort.parquet"
    assert convert_table(tmp_path / "cohort.csv", parquet) == 40
    again = build_data(study, read_data(study, parquet))
    pd.testing.assert_frame_equal(again.X, data.X)
    assert list(again.X.index) == list(data.X.index)
    assert again.encoder == data.encoder


def test_separators_are_found_out(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tage\n007\t70,5\n")
    convert_table(tmp_path / "a.tsv", tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert (table.text("id").tolist(), table.numbers("age").tolist()) == (["007"], [70.5])
    with pytest.raises(StudyError, match=r"only text files can be converted .*; save it as 'CSV"):
        convert_table(tmp_path / "a.parquet", tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", None, "there is no such file"),
        ("a.csv", "", "a.csv is empty: the first row must name the columns"),
        ("a.csv", "a,b\n1,2\n3\n", "a.csv, line 3: 1 cells, but the header names 2 columns"),
    ],
)
def test_what_cannot_be_converted_gets_a_sentence(
    name: str, content: str | None, sentence: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StudyError, match=sentence):
        convert_table(tmp_path / name, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_encoding_and_header_are_found_as_a_fit_finds_them(tmp_path: Path) -> None:
    text = "Export der Klinik;;\nName;Größe;MMSE\nMüller;1,5;29\nWeiß;2;30\n"
    (tmp_path / "a.csv").write_bytes(text.encode("windows-1252"))
    assert convert_table(tmp_path / "a.csv", tmp_path / "a.parquet") == 2
    table = read_table(tmp_path / "a.parquet")
    assert table.text("Name").tolist() == ["Müller", "Weiß"]
    assert table.numbers("Größe").tolist() == [1.5, 2.0]
