"""What is missing or wrong in a folder of ADNI's files is said, with what to do."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deeptobit.datasets import load_adni
from tests.datasets.adni_folder import write_folder

pytestmark = pytest.mark.filterwarnings("ignore:1 of .* scans:UserWarning")
SCANS = "UCSFFSX_11_02_15_20Mar2024.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def load(folder: Path, **settings: Any) -> None:
    load_adni(folder, scores=folder / "scores.csv", **settings)


def test_every_missing_file_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_adni(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("download them from ida.loni.usc.edu (ADNI > Download > Study Data):")
    assert [line.split("*")[0].strip() for line in lines[1:]] == [
        "UCSFFSX",
        "ADASSCORES",
        "NEUROBAT",
        "ADNIMERGE",
        "NPIQ",
    ]
    assert "Imaging > MR Image Analysis > UCSF - Cross-Sectional FreeSurfer" in lines[1]


def test_only_what_is_missing_is_named(folder: Path) -> None:
    (folder / "NEUROBAT.csv").unlink()
    place = "Assessments > Neuropsychological > Neuropsychological Battery"
    with pytest.raises(FileNotFoundError, match=re.escape(f"NEUROBAT*.csv: {place}")) as caught:
        load(folder)
    assert "ADASSCORES" not in str(caught.value)


def test_a_table_that_nobody_knows_is_to_be_searched(folder: Path) -> None:
    (folder / "scores.csv").write_text("table,column,visit,lower,upper\nNOVEL,A,bl,0,1\n")
    with pytest.raises(FileNotFoundError, match=r"NOVEL\*.csv: search the page for it"):
        load(folder)


def test_two_downloads_of_one_table(folder: Path) -> None:
    (folder / "NEUROBAT_20Mar2024.csv").touch()
    with pytest.raises(ValueError, match=r"NEUROBAT.csv, NEUROBAT_20Mar2024.csv; keep the one"):
        load(folder)


def test_two_downloads_of_one_table_with_and_without_the_prefix(folder: Path) -> None:
    (folder / "ALL_SUBJECTS_neurobat_20Mar2024.csv").touch()
    with pytest.raises(ValueError, match=r"ALL_SUBJECTS_neurobat_20Mar2024.csv, NEUROBAT.csv"):
        load(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"qc": "Pass"}, "qc must be 'pass' or 'any', got 'Pass'"),
        ({"missing": "indicator"}, "missing must be 'drop' or 'keep', got 'indicator'"),
    ],
)
def test_an_unknown_setting(folder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(folder, **settings)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        load_adni(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "column"),
    [
        (SCANS, "ST130SA"),
        (SCANS, "ST27SA"),
        (SCANS, "RID"),
        ("NEUROBAT.csv", "AVTOT1"),
        ("ADASSCORES_20Mar2024.csv", "VISCODE"),
    ],
)
def test_a_missing_column_is_named_with_its_file(folder: Path, file: str, column: str) -> None:
    table = pd.read_csv(folder / file, dtype=str, encoding="latin-1")
    table.drop(columns=column).to_csv(folder / file, index=False)
    with pytest.raises(ValueError, match=rf"{file} has no column {column}; download the table"):
        load(folder)


def test_an_empty_file(folder: Path) -> None:
    (folder / "NEUROBAT.csv").write_text("")
    with pytest.raises(ValueError, match=r"NEUROBAT.csv is not a table; download it again"):
        load(folder)


def test_a_visit_without_scans(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no scan at visit 'm99'; it has bl \(4\), m06 \(2\)"):
        load(folder, visit="m99")


def test_a_measurement_that_no_scan_has(folder: Path) -> None:
    path = folder / SCANS
    pd.read_csv(path, dtype=str).assign(ST14SA="").to_csv(path, index=False)
    expected = "has all 138 measurements; lh_caudalanteriorcingulate_area is missing in 4 of 4"
    with pytest.raises(ValueError, match=expected):
        load(folder)


def test_files_of_different_people(folder: Path) -> None:
    for name in ("ADASSCORES_20Mar2024.csv", "NEUROBAT.csv", "adnimerge_20Mar2024.CSV"):
        header = (folder / name).read_bytes().splitlines()[0]
        (folder / name).write_bytes(header + b"\n")
    with pytest.raises(ValueError, match=r"none of the 3 people with a scan .* same phase"):
        load(folder)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("table,column,visit,lower\nMMSE,MMSCORE,bl,0\n", "must have the columns .* lacks upper"),
        ("table,column,visit,lower,upper\n", "scores is empty"),
        (
            "table,column,visit,lower,upper\nMMSE,A,bl,0,1\nFAQ,A,sc,0,1\n",
            "scores names A_bl twice; a column and visit counts once",
        ),
    ],
)
def test_a_wrong_table_of_scores(folder: Path, scores: str, message: str) -> None:
    (folder / "scores.csv").write_text(scores)
    with pytest.raises(ValueError, match=message):
        load(folder)
