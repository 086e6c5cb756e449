import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deeptobit.cli._app import app
from tests.study.messy import N_ROWS, write_messy_csv
from tests.study.problems import TABLE, TARGET, write_study


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_from_a_messy_table_to_a_checked_study(tmp_path: Path) -> None:
    data = write_messy_csv(tmp_path / "kohorte.csv")
    code, shown, _ = _run("init", data)
    assert code == 0
    said = " ".join(shown.split())
    assert f"from {N_ROWS} rows and 12 columns of kohorte.csv:" in said
    assert "targets MMSE (0 – 30), ADAS13 (0 – 85), Tau (0.4 – open)" in said
    assert "id Proband group site; its rows stay together" in said
    assert "left out Visite (dates), Notiz (free text or an identifier), Gerät (the same" in said
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
    assert "warning MMSE: only 1 values lie between its bounds" in shown
    assert _run("check", study, "--strict")[0] == 3


def test_another_table_may_take_the_place_of_the_studys_own(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    study = write_study(tmp_path / "inside")
    (tmp_path / "new.csv").write_text(TABLE + "e,2,81,m,[bold]\n")
    code, _, error = _run("check", study, "--data", tmp_path / "new.csv")
    assert code == 1
    assert "found '[bold]' (new.csv, line 6)" in error
