import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from tests.app.study.messy import N_ROWS, write_messy_csv
from tests.app.study.problems import TABLE, TARGET, write_study


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_from_a_messy_table_to_a_checked_study(tmp_path: Path) -> None:
    data = write_messy_csv(tmp_path / "kohorte.csv")
    code, shown, _ = _run("init", data)
    assert code == 0
    said = " ".join(shown.split())
    assert f"from {N_ROWS} rows and 12 columns of kohorte.csv:" in said
    assert "targets MMSE, ADAS13 and Tau id Proband group site time none" in said
    assert "excluded Visite, Notiz and Gerät" in said
    text = (tmp_path / "kohorte.toml").read_text(encoding="utf-8")
    assert '"Visite",  # dates' in text
    code, shown, _ = _run("check", tmp_path / "kohorte.toml", "--strict")
    assert code == 0, shown
    assert "0 – 30" in shown
    assert "0.4 – open" in shown
    assert "Nothing stands in the way of a model." in shown
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["kohorte.csv", "kohorte.toml"]


def test_json(tmp_path: Path) -> None:
    data = write_messy_csv(tmp_path / "kohorte.csv")
    code, shown, _ = _run("init", data, "--json")
    assert code == 0
    assert json.loads(shown)["targets"] == ["MMSE", "ADAS13", "Tau"]
    code, shown, _ = _run("check", tmp_path / "kohorte.toml", "--json")
    report = json.loads(shown)
    assert code == 0
    assert (report["rows"], report["groups"], report["findings"]) == (N_ROWS, 12, [])
    assert [target["upper"] for target in report["targets"]] == [30, 85, None]


def test_a_study_file_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    data = write_messy_csv(tmp_path / "a.csv")
    (tmp_path / "a.toml").write_text("mine")
    code, _, error = _run("init", data)
    assert code == 1
    assert "a.toml exists; --force replaces it" in error
    assert (tmp_path / "a.toml").read_text() == "mine"
    assert _run("init", data, "--force")[0] == 0
    assert (tmp_path / "a.toml").read_text(encoding="utf-8").startswith("# Written by")


def test_a_study_file_lies_above_its_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = write_messy_csv(tmp_path / "data" / "a.csv")
    study = tmp_path / "study.toml"
    assert _run("init", data, "--out", study)[0] == 0
    assert 'file = "data/a.csv"' in study.read_text(encoding="utf-8")
    assert _run("check", study)[0] == 0
    (tmp_path / "beside").mkdir()
    code, _, error = _run("init", data, "--out", tmp_path / "beside" / "study.toml")
    assert code == 1
    assert "the study file must lie in the folder of a.csv or above it" in error
    assert "no such folder" in _run("init", data, "--out", tmp_path / "none" / "study.toml")[2]


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("init",), " is a folder, but not of Parquet files of one table; name a file"),
        (("check",), ": there is no such study file; 'deeptobit init DATA' writes one"),
        (("fit",), ": there is no such study file; 'deeptobit init DATA' writes one"),
        (("convert",), " is a folder, but not of Parquet files of one table; name a file"),
        (("report",), " is not a file"),
        (("export",), " is not a file"),
    ],
)
def test_a_folder_without_a_name(
    command: tuple[str, ...],
    sentence: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (inside / "x.csv").write_text(TABLE)
    monkeypatch.chdir(inside)
    assert _run(*command, name) == (1, "", f"deeptobit: {name}{sentence}\n")


@pytest.mark.parametrize("command", ["check", "fit", "evaluate"])
def test_a_table_is_no_study(command: str, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(TABLE)
    code, _, error = _run(command, table)
    assert code == 1
    sentence = f"visits.csv is a table, not a study file; 'deeptobit init {table}' writes one for"
    assert error.startswith(f"deeptobit: {sentence}")


def test_what_the_system_says_comes_without_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("report", "export"):
        file = tmp_path / "none.deeptobit"
        assert _run(command, file) == (1, "", f"deeptobit: {file}: there is no such file\n")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", "a.csv")

    monkeypatch.setattr("deeptobit.app.study.read_study", refuse)
    assert _run("check", tmp_path / "a.toml") == (1, "", "deeptobit: a.csv: Permission denied\n")


def test_a_bound_in_quotes_is_a_column(tmp_path: Path) -> None:
    study = write_study(tmp_path, TARGET.replace("30", '"30"'))
    sentence = "there is no column '30' in a.csv; a number is written without quotes: upper = 30"
    assert sentence in _run("check", study)[2]


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    study = write_study(tmp_path, TARGET + "[modle]\n")
    code, shown, error = _run("check", study)
    assert (code, shown) == (1, "")
    assert error.startswith("deeptobit: study.toml, line 7: unknown section 'modle'")
    assert error.count("\n") == 1
    code, shown, _ = _run("check", study, "--json")
    assert code == 1
    assert "did you mean 'model'" in json.loads(shown)["error"]


@pytest.mark.parametrize("content", ["", "id,x\n", "x,x\n1,2\n"])
def test_a_hostile_table_writes_no_study(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    code, _, error = _run("init", tmp_path / "a.csv")
    assert code == 1
    assert error.count("\n") == 1
    assert not (tmp_path / "a.toml").exists()


def test_warnings_count_when_strict(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    code, shown, _ = _run("check", study)
    assert code == 0
    assert "warning target:MMSE only 1 values lie between its bounds" in shown
    assert _run("check", study, "--strict")[0] == 3


def test_another_table_may_take_the_place_of_the_studys_own(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    study = write_study(tmp_path / "inside")
    (tmp_path / "new.csv").write_text(TABLE + "e,2,81,m,[bold]\n")
    code, shown, _ = _run("check", study, "--data", tmp_path / "new.csv")
    assert code == 1
    assert "error word:[bold] stands among the numbers of 'MMSE'" in shown
    assert "new.csv, line 6" in shown
    (tmp_path / "new.csv").write_text("id,age\na,70\nb,71\n")
    error = _run("check", study, "--data", tmp_path / "new.csv")[2]
    assert "there is no column 'MMSE' in new.csv" in error
