"""What went wrong in clinics, through the command line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import read_table
from tests.doctor.faults import BY_NAME, STUDY, Fault, clean, write_fault

FITTED = Fault("nothing", ())


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def _names(*arguments: object) -> tuple[int, dict[str, Any]]:
    code, shown, _ = _run(*arguments, "--json")
    return code, {one["name"]: one for one in json.loads(shown)["findings"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = write_fault(FITTED, tmp_path_factory.mktemp("model"))
    code, shown, error = _run("fit", study, "--jobs", 1)
    assert code == 0, shown + error
    return study.with_suffix(".deeptobit")


def _new(folder: Path, **cells: float) -> Path:
    table = clean(7).head(5).drop(columns=["MMSE", "ADAS13"]).astype(object)
    for name, cell in cells.items():
        table[name] = [cell if row == 2 else old for row, old in enumerate(table[name])]
    table.to_csv(folder / "new.csv", index=False)
    return folder / "new.csv"


def test_a_person_outside_the_data_is_marked(model: Path, tmp_path: Path) -> None:
    new = _new(tmp_path, hippocampus=6800, age=720)
    code, shown, error = _run("predict", model, new)
    assert code == 0, error
    said = " ".join(shown.split())
    assert "line 4: hippocampus 6800, training " in said
    assert "mm³ instead of ml?" in said
    assert "line 4: age 720, training " in said
    found = pd.read_csv(tmp_path / "new-predictions.csv", keep_default_na=False)
    assert found["outside_the_data"].tolist() == ["", "", "age, hippocampus", "", ""]
    assert (found["MMSE low"] <= found["MMSE"]).all()
    assert (found["MMSE"] <= found["MMSE high"]).all()


def test_a_leak_is_refused_unless_it_is_accepted(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["a copy of a target"], tmp_path)
    code, found = _names("check", study)
    assert code == 1
    assert found["leak:total"]["fix"] == '[features] exclude = ["total"]'
    assert found["leak:total"]["consequence"]
    code, _, error = _run("fit", study, "--jobs", 1)
    assert code == 1
    assert "leak:total is certainly wrong" in error
    assert "--accept leak:total" in error
    code, shown, _ = _run("fit", study, "--jobs", 1, "--accept", "leak:total")
    assert code == 0
    assert "leak:total" in shown


def test_fixes_keep_the_comments(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["a copy of a target"], tmp_path)
    study.write_text(study.read_text().replace("[features]", "[features]  # ask Jane"))
    data = (tmp_path / "cohort.csv").read_bytes()
    code, shown, _ = _run("check", study, "--fix", "leak:total")
    assert code == 0, shown
    text = study.read_text()
    assert "# ask Jane" in text
    assert tomllib.loads(text)["features"]["exclude"] == ["total"]
    assert "leak:total" in text
    assert (tmp_path / "cohort.csv").read_bytes() == data
    code, _, error = _run("check", study, "--fix", "leak:totl")
    assert code == 1
    assert "there is no finding 'leak:totl'" in error


def test_one_command_mends_what_others_hide(tmp_path: Path) -> None:
    fault = BY_NAME["codes hidden by a typing error & a copy of a target"]
    study = write_fault(fault, tmp_path)
    code, shown, _ = _run("check", study, "--fix", "all", "--json")
    assert code == 0, shown
    fixed = json.loads(shown)["fixed"]
    assert "leak:total" in fixed
    assert len(set(fixed)) == len(fixed)
    assert _run("check", study, "--fix", "all")[0] == 0


def test_people_are_told_beside_what_cannot_be_read(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["people twice without an id"], tmp_path)
    code, found = _names("check", study)
    assert code == 1
    assert {"people:subject", "useless:subject"} <= set(found)
    assert _run("check", study, "--fix", "all")[0] == 0
    assert tomllib.loads(study.read_text())["data"]["group"] == "subject"


def test_all_findings_of_a_name_are_mended(tmp_path: Path) -> None:
    study = write_fault(FITTED, tmp_path)
    study.write_text(study.read_text().replace("lower = 0\nupper = 30\n", ""))
    code, shown, _ = _run("check", study, "--fix", "bound:MMSE")
    assert code == 0, shown
    written = tomllib.loads(study.read_text())
    assert written["targets"]["MMSE"] == {"lower": 0, "upper": 30}


def test_init_decides_and_says_so(tmp_path: Path) -> None:
    write_fault(BY_NAME["codes hidden by a typing error & a copy of a target"], tmp_path)
    (tmp_path / "cohort.toml").unlink()
    code, shown, _ = _run("init", tmp_path / "cohort.csv")
    assert code == 0
    assert shown.count("decided outside:MMSE") == 1
    text = (tmp_path / "cohort.toml").read_text()
    written = tomllib.loads(text)
    assert written["data"]["missing"] == [-4, 99]
    assert written["columns"]["MMSE"]["missing"] == [31]
    assert written["features"]["exclude"] == ["total"]
    assert "# leak:total" in text
    assert _names("check", tmp_path / "cohort.toml")[0] == 0


@pytest.mark.parametrize(
    ("fault", "written"),
    [("Excel with a title", 3), ("a title", 3), ("Excel with merged names", 2)],
)
def test_the_header_is_found_or_named(fault: str, written: int, tmp_path: Path) -> None:
    study = write_fault(BY_NAME[fault], tmp_path)
    code, found = _names("check", study)
    assert code == 0
    assert f"row {written} of" in found["read:header"]["message"]
    study.write_text(study.read_text().replace("[data]", f"[data]\nheader = {written}"))
    assert _names("check", study)[0] == 0
    study.write_text(study.read_text().replace(f"header = {written}", "header = 2000"))
    assert "header = 2000: this row of" in _run("check", study)[2]


@pytest.mark.parametrize(
    ("fault", "exit_code", "name", "said"),
    [
        ("a near copy", 1, "leak:retest", "nearly a copy of the target 'ADAS13'"),
        ("items of a sum", 1, "leak:ADAS13", "is it their sum or mean?"),
        ("age 720", 0, "outlier:age", "720 (cohort.csv, line 88); all others are from "),
        ("education 99 once", 0, "outlier:education", "99 (cohort.csv, line 88); all others "),
        ("a row of means", 0, "read:line 162", "('Mean') holds no person, and is left out"),
        ("two rows of names", 0, "read:row 2", "holds no person, and is left out"),
        ("a row of units", 0, "read:row 2", "holds no person, and is left out"),
        ("German Excel", 0, "read:encoding", "was read as Windows-1252"),
        ("a name twice, same cells", 0, "read:bmi", "columns F and L of cohort.csv are the same"),
        ("upper bound forgotten", 0, "bound:MMSE", "[targets.MMSE] upper = 30"),
        ("a constant target", 0, "constant:flat", "the same value in every row; leave it out"),
        ("ranks beyond the targets", 0, "rank:ranks", "go up to 7, but targets and features allow"),
    ],
)
def test_check_names_what_is_wrong(
    fault: str, exit_code: int, name: str, said: str, tmp_path: Path
) -> None:
    study = write_fault(BY_NAME[fault], tmp_path)
    code, found = _names("check", study)
    assert code == exit_code
    assert said in " ".join(found[name].values())
    if exit_code:
        code, _, error = _run("fit", study, "--jobs", 1)
        assert code == 1
        assert f"{name} is certainly wrong" in error


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("a name twice", "columns F and L are both called 'bmi' and differ; rename one of them"),
        ("no names", "and no names of columns; add a row of names, or if there is one say in"),
        ("no header", "which row has the names, as [data] header = 3"),
    ],
)
@pytest.mark.parametrize("command", ["init", "check", "fit"])
def test_a_header_that_cannot_be_used_is_refused(
    command: str, fault: str, said: str, tmp_path: Path
) -> None:
    study = write_fault(BY_NAME[fault], tmp_path)
    file = study.with_suffix(".csv") if command == "init" else study
    code, _, error = _run(command, file, *(["--out", tmp_path / "new.toml"] * (command == "init")))
    assert code == 1
    assert said in error


def test_a_new_table_may_have_its_names_in_another_row(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["a title"], tmp_path)
    study.write_text(study.read_text().replace("[data]", "[data]\nheader = 3"))
    assert _run("fit", study, "--jobs", 1)[0] == 0
    new = _new(tmp_path)
    code, _, error = _run("predict", study.with_suffix(".deeptobit"), new)
    assert code == 0, error
    assert len(pd.read_csv(tmp_path / "new-predictions.csv")) == 5


def test_unicode_text_of_excel_is_read(tmp_path: Path) -> None:
    text = clean().to_csv(index=False, sep="\t", lineterminator="\r\n")
    (tmp_path / "cohort.txt").write_text(f"Größe\r\n\r\n{text}\r\n", "utf-16", newline="")
    table = read_table(tmp_path / "cohort.txt")
    assert table.columns == list(clean().columns)
    assert table.lines.tolist() == [*range(4, 4 + len(clean()))]
    np.testing.assert_array_equal(table.numbers("age"), clean()["age"])


def test_a_cover_page_is_not_the_table(tmp_path: Path) -> None:
    study = write_fault(FITTED, tmp_path)
    with pd.ExcelWriter(tmp_path / "cohort.xlsx", engine="openpyxl") as book:
        pd.DataFrame({"Export of 3 May": ["by the office"]}).to_excel(
            book, sheet_name="about", index=False
        )
        clean().to_excel(book, sheet_name="data", index=False)
    with pd.ExcelWriter(tmp_path / "small.xlsx", engine="openpyxl") as book:
        clean().head(3).to_excel(book, sheet_name="few", index=False)
        clean().to_excel(book, sheet_name="data", index=False)
    assert len(read_table(tmp_path / "small.xlsx")) == 3  # a short first sheet is a table
    code, found = _names("check", study, "--data", tmp_path / "cohort.xlsx")
    assert code == 0
    assert found["read:sheet"]["fix"] == '[data] sheet = "data"'


def test_cells_of_codes_are_compared_as_numbers(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["code -4.0 in a target"], tmp_path)
    assert "code:-4" in _names("check", study)[1]
    study.write_text(study.read_text().replace("[data]", "[data]\nmissing = [-4]"))
    assert _names("check", study) == (0, {})


def test_all_values_beyond_bounds_are_in_one_list(tmp_path: Path) -> None:
    table = clean()
    table.loc[[3, 9], "MMSE"] = [31, 45]
    table.loc[5, "ADAS13"] = 93.0
    table.loc[10:15, "MMSE"] = -4
    study = write_fault(FITTED, tmp_path)
    table.to_csv(tmp_path / "cohort.csv", index=False)
    code, found = _names("check", study)
    assert code == 1
    assert found.keys() == {"code:-4", "outside:MMSE", "outside:ADAS13"}
    assert "31 (cohort.csv, line 5)" in found["outside:MMSE"]["evidence"]
    clipped = study.read_text().replace("upper = 30", 'upper = 30\noutside = "clip"')
    study.write_text(clipped)
    code, found = _names("check", study)
    assert code == 1  # a repeated code is never clipped
    assert "code:-4" in found
    assert "outside:MMSE" not in found


def test_an_outlier_is_told_with_row_value_and_range(tmp_path: Path) -> None:
    table = clean()
    table.loc[[4, 6], "education"] = [99, 12]
    table.loc[8, "age"] = 720
    study = write_fault(FITTED, tmp_path)
    table.to_csv(tmp_path / "cohort.csv", index=False)
    code, found = _names("check", study)
    assert code == 0
    assert found["outlier:age"]["evidence"].startswith("720 (cohort.csv, line 10); all others are ")
    assert found["outlier:education"]["fix"] == "[columns.education] missing = [99]"
    assert _run("check", study, "--strict")[0] == 3


def test_a_forgotten_bound_is_found_and_set(tmp_path: Path) -> None:
    study = write_fault(BY_NAME["upper bound forgotten"], tmp_path)
    assert _names("check", study)[1]["bound:MMSE"]["fix"] == "[targets.MMSE] upper = 30"
    code, _, _ = _run("check", study, "--fix", "all")
    assert code == 0
    assert tomllib.loads(study.read_text())["targets"]["MMSE"] == {"lower": 0, "upper": 30}


def test_a_study_file_or_table_in_place_of_a_model(tmp_path: Path) -> None:
    study = write_fault(FITTED, tmp_path)
    code, _, error = _run("report", study)
    assert code == 1
    assert f"'deeptobit fit {study}' writes {study.with_suffix('.deeptobit')}" in error
    assert "is a table, not a model" in _run("report", tmp_path / "cohort.csv")[2]


def test_ctrl_c_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    study = write_fault(FITTED, tmp_path)
    monkeypatch.setattr("deeptobit.app.study.read_study", interrupt)
    assert _run("check", study) == (130, "", "deeptobit: Stopped, nothing written\n")


def test_predictions_keep_the_table_and_its_dialect(model: Path, tmp_path: Path) -> None:
    table = clean(7).head(6)
    table["subject"] = ["=cmd()", "+1", "@SUM", "-x", "Größe", "007"]
    text = table.to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "new.csv").write_bytes(text.encode("cp1252"))
    code, _, error = _run("predict", model, tmp_path / "new.csv", "--format", "csv,xlsx,parquet")
    assert code == 0, error
    shown = (tmp_path / "new-predictions.csv").read_bytes().decode("cp1252")
    found = pd.read_csv(
        tmp_path / "new-predictions.csv", sep=";", decimal=",", encoding="cp1252", dtype=str
    )
    assert found["subject"].tolist() == ["'=cmd()", "'+1", "'@SUM", "'-x", "Größe", "007"]
    assert list(found.columns[:9]) == list(table.columns[:9])
    assert {"MMSE (given)", "MMSE", "MMSE low", "ADAS13 P(upper)"} <= {*found.columns}
    assert "e-" not in shown
    assert max(len(cell) for cell in found["MMSE low"]) <= 6
    book = pd.read_excel(tmp_path / "new-predictions.xlsx", engine="openpyxl")
    assert book["subject"][0] == "=cmd()"  # text, which Excel does not run
    typed = pd.read_parquet(tmp_path / "new-predictions.parquet")
    assert typed["MMSE"].between(0, 30).all()
    arguments = [model, tmp_path / "new.csv", "--only", "id", "--raw", "--force"]
    assert _run("predict", *arguments)[0] == 0
    raw = pd.read_csv(tmp_path / "new-predictions.csv", sep=";", encoding="cp1252", dtype=str)
    assert raw.columns[:2].tolist() == ["subject", "MMSE"]
    assert raw["subject"][0] == "=cmd()"


@pytest.mark.parametrize(
    "model", ["seed = 100000000000000000000000000", 'kind = "network"\nranks = []']
)
@pytest.mark.parametrize("command", ["check", "fit"])
def test_check_refuses_what_fit_refuses(command: str, model: str, tmp_path: Path) -> None:
    study = write_fault(FITTED, tmp_path)
    text = STUDY.format(file="cohort.csv").partition("[model]")[0]
    study.write_text(f"{text}[model]\n{model}\n")
    code, _, error = _run(command, study)
    assert code == 1
    assert "[model] " in error


def test_sites_and_visits_are_noted(tmp_path: Path) -> None:
    table = clean()
    table["subject"] = [f"P{row // 4:03d}" for row in range(len(table))]
    table["visit"] = np.arange(len(table)) % 4
    table["site"] = [f"site {row % 3}" for row in range(len(table))]
    study = write_fault(FITTED, tmp_path)
    table.to_csv(tmp_path / "cohort.csv", index=False)
    code, _, _ = _run("check", study, "--fix", "id:subject")
    assert code == 0
    assert tomllib.loads(study.read_text())["data"]["group"] == "subject"
    _, found = _names("check", study)
    assert found.keys() == {"time:visit"}
