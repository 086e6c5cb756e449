from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import StudyError, read_table
from deeptobit.exceptions import MissingExtraError


def _write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(separator: str, tmp_path: Path) -> None:
    rows = [["id", "note", "score"], ["007", '"a, b; c"', "1.5"], ["008", "", "NA"]]
    table = read_table(_write(tmp_path, "\n".join(separator.join(row) for row in rows)))
    assert table.columns == ["id", "note", "score"]
    assert table.text("id").tolist() == ["007", "008"]
    assert table.text("note").tolist() == ["a, b; c", None]
    np.testing.assert_array_equal(table.numbers("score"), [1.5, np.nan])


def test_decimal_commas_a_bom_and_names_in_any_alphabet(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, "\ufeffid;Größe µm;名前\r\n1;1,5;a\r\n2;-2,5e1;b\r\n"))
    assert table.columns == ["id", "Größe µm", "名前"]
    np.testing.assert_array_equal(table.numbers("Größe µm"), [1.5, -25.0])


def test_a_comma_is_no_decimal_point_where_it_separates(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, 'id,score\n1,"1,234"\n2,5\n'))
    with pytest.raises(StudyError, match=r"a.csv, line 2: column 'score' .* found '1,234' \(1 su"):
        table.numbers("score")


def test_points_and_commas_in_one_column_are_not_guessed_at(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, "id;score\n1;1.234\n2;0,5\n"))
    with pytest.raises(StudyError, match=r"line 2: .* found '1\.234'"):
        table.numbers("score")


def test_huge_integers_keep_their_digits_as_text(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, "id,x\n12345678901234567890,1\n12345678901234567891,2\n"))
    assert table.text("id").is_unique


def test_codes_for_missing(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, "x,y\n-4,1\n3,999\n"), missing=["-4", "999"])
    np.testing.assert_array_equal(table.numbers("x"), [np.nan, 3.0])
    np.testing.assert_array_equal(table.numbers("y"), [1.0, np.nan])


def test_a_nameless_column_is_named_and_an_empty_one_dropped(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, ",age,\n1,70,\n2,71,\n"))
    assert table.columns == ["column_1", "age"]


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    table = read_table(_write(tmp_path, "id,score\n\n1,2\n\n2,x\n"))
    with pytest.raises(StudyError, match=r"line 5: .* numbers; found 'x' \(1 such cells\)"):
        table.numbers("score")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "a.csv is empty: the first row must name the columns"),
        ("\n\n", "a.csv is empty"),
        ("id,age\n", "a.csv has a header but no row of data"),
        ("id,age,age\n1,2,3\n", "columns B and C are both called 'age' and differ"),
        ("id,age\n1,2\n1,2,3\n", "a.csv, line 3: 3 cells, but the header names 2 columns"),
        (b"id,caf\xe9\n1,\x00\n", "a.csv, line 1: not UTF-8 text .byte 0xe9"),
    ],
)
def test_hostile_files_get_a_sentence(content: str | bytes, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=sentence):
        read_table(_write(tmp_path, content))


def test_unknown_kinds_and_absent_files(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(StudyError, match=r"cannot read files of kind '\.sas'; known are \.csv"):
        read_table(_write(tmp_path, "x", "a.sas"))
    with pytest.raises(StudyError, match=r"a\.csv has no sheets"):
        read_table(_write(tmp_path, "x\n1\n"), sheet="one")
    kinds = {"xlsx": "an Excel", "xls": "an Excel", "ods": "an OpenDocument", "sav": "an SPSS"}
    kinds |= {"dta": "a Stata", "parquet": "a Parquet", "arrow": "an Arrow"}
    for suffix, kind in kinds.items():
        with pytest.raises(StudyError, match=f"cannot be read as {kind} file"):
            read_table(_write(tmp_path, "x", f"a.{suffix}"))


def _frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": ["007", "008", "009"],
            "age": [70.5, np.nan, -4.0],
            "visits": [1, 2, 3],
            "sex": ["f", None, "m"],
            "seen": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
        }
    )


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_excel_and_parquet_read_like_csv(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    write: Any = _frame().to_excel if kind == "xlsx" else _frame().to_parquet
    write(path, index=False)
    table = read_table(path, missing=["-4"])
    assert table.text("id").tolist() == ["007", "008", "009"]
    assert table.text("sex").tolist() == ["f", None, "m"]
    np.testing.assert_array_equal(table.numbers("age"), [70.5, np.nan, np.nan])
    np.testing.assert_array_equal(table.numbers("visits"), [1, 2, 3])
    assert table.text("seen").iloc[0].startswith("2020-01-01")
    assert table.lines.tolist() == [2, 3, 4]


def test_a_sheet_is_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="first", index=False)
        pd.DataFrame({"y": [2]}).to_excel(book, sheet_name="second", index=False)
    assert read_table(path).columns == ["x"]
    assert read_table(path, sheet="second").columns == ["y"]
    with pytest.raises(StudyError, match=r"a.xlsx has no sheet 'third'; it has 'first'"):
        read_table(path, sheet="third")


@pytest.mark.parametrize(
    ("kind", "engine"), [("xlsx", "python_calamine"), ("sav", "pyreadstat"), ("parquet", "pyarrow")]
)
def test_an_engine_that_is_not_installed_is_named(
    kind: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, engine, None)
    with pytest.raises(
        MissingExtraError, match=f"{engine} is not installed; .*extra .app.: pip install"
    ):
        read_table(_write(tmp_path, "x", f"a.{kind}"))


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="id"))
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").columns == ["x", "id"]
    frame.assign(id=[3, 4]).to_parquet(tmp_path / "b.parquet")
    assert read_table(tmp_path / "b.parquet").text("id").tolist() == ["3", "4"]


def test_whole_numbers_beside_blanks_are_text_without_a_point(tmp_path: Path) -> None:
    pd.DataFrame({"id": [7.0, np.nan, 8.5]}).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").text("id").tolist() == ["7", None, "8.5"]


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml"])
def test_an_excel_file_with_entities_is_refused_in_one_sentence(part: str, tmp_path: Path) -> None:
    pd.DataFrame({"age": [70.0]}).to_excel(tmp_path / "a.xlsx", index=False)
    with ZipFile(tmp_path / "a.xlsx") as sound, ZipFile(tmp_path / "b.xlsx", "w") as changed:
        for name in sound.namelist():
            content = sound.read(name)
            if name == part:
                entity = b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>&c;'
                content = content.replace(b"?>", b"?>" + entity, 1) if b"?>" in content else entity
            changed.writestr(name, content)
    with pytest.raises(StudyError, match=r"b\.xlsx cannot be read as an Excel file; save it again"):
        read_table(tmp_path / "b.xlsx")
