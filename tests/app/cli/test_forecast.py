"""``fit``, ``forecast`` and ``init`` on a table of repeated visits."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app

STUDY = """[data]
file = "visits.csv"
group = "subject_id"
time = "months"
[targets.MMSE]
lower = 0
upper = 30
[targets.ADAS]
lower = 0
upper = 70
[model]
kind = "mixed"
random_effects = "intercept"
person_rank = 1
visit_rank = 0
shrinkage = 0
"""


def visits(n_people: int = 40, seed: int = 0) -> pd.DataFrame:
    """Three visits of people, whose scores fall and rise together."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), 3)
    months = np.tile([0.0, 6.0, 12.0], n_people)
    level = rng.normal(size=n_people)[person]
    MMSE = np.clip(26 - 0.2 * months + 3 * level + rng.normal(size=len(person)), 0, 30)
    ADAS = np.clip(12 + 0.3 * months - 5 * level + 2 * rng.normal(size=len(person)), 0, 70)
    names = [f"P-{each:04d}" for each in person]
    columns = {"subject_id": names, "months": months, "age": rng.integers(60, 85, n_people)[person]}
    columns["sex"] = np.where(person % 2, "f", "m")
    return pd.DataFrame({**columns, "MMSE": MMSE.round(), "ADAS": ADAS.round()})


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("visits")
    visits().to_csv(folder / "visits.csv", index=False)
    (folder / "study.toml").write_text(STUDY)
    found = run("fit", folder / "study.toml", "--jobs", 1, "--json")
    assert found.exit_code == 0, found.output
    (folder / "fit.json").write_text(found.stdout)
    return folder


def test_fit_measures_last_visits_against_others(folder: Path) -> None:
    found = json.loads((folder / "fit.json").read_text())
    assert (found["rows"], found["held_out_rows"], found["groups"]) == (120, 40, 40)
    assert not found["streamed"]
    (row,) = found["forecasts"]
    assert (row["ahead"], row["visits"]) == (6.0, 40)
    assert row["model"] < row["last value"]
    assert row["model"] < row["without history"]


def test_the_model_file_has_no_names_of_people(folder: Path) -> None:
    assert b"P-00" not in (folder / "study.deeptobit").read_bytes()


def test_forecast_writes_a_row_per_person_target_and_horizon(folder: Path) -> None:
    visits(3, seed=9)[:7].to_csv(folder / "new.csv", index=False)
    found = run("forecast", folder / "study.deeptobit", folder / "new.csv", "--at", "6,24")
    assert found.exit_code == 0, found.output
    table = pd.read_csv(folder / "new-forecasts.csv")
    assert len(table) == 3 * 2 * 2
    assert table["months"].tolist()[::4][:2] == [18.0, 18.0]
    last = table[table["subject_id"] == "P-0002"]
    assert sorted(set(last["months"])) == [6.0, 24.0]
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()
    assert table["P(upper)"].between(0.0, 1.0).all()
    numbers = (folder / "new-forecasts.csv").read_text().replace("\n", ",").split(",")
    assert max(map(len, numbers)) < 12  # as many digits as matter


def test_forecasts_have_the_dialect_of_the_table(folder: Path) -> None:
    table = visits(2, seed=9).replace({"subject_id": {"P-0000": "=cmd()", "P-0001": "Größe"}})
    table["age"] += 0.5
    text = table.to_csv(index=False, sep=";", decimal=",")
    (folder / "german.csv").write_bytes(text.encode("cp1252"))
    found = run("forecast", folder / "study.deeptobit", folder / "german.csv", "--at", "6")
    assert found.exit_code == 0, found.output
    file = folder / "german-forecasts.csv"
    shown = pd.read_csv(file, sep=";", decimal=",", encoding="cp1252")
    assert shown["subject_id"].tolist() == ["'=cmd()"] * 2 + ["Größe"] * 2
    assert shown["mean"].between(0.0, 70.0).all()


def test_report_and_predict_work_too(folder: Path) -> None:
    found = run("report", folder / "study.deeptobit")
    assert found.exit_code == 0, found.output
    page = (folder / "study.html").read_text(encoding="utf-8")
    assert "mixed Tobit regression" in page
    assert "none is real" in page
    assert "Forecasts by horizon" in page
    assert "months ahead" in page
    found = run("predict", folder / "study.deeptobit", folder / "visits.csv")
    assert found.exit_code == 0, found.output


def test_the_patient_page_asks_for_past_visits(folder: Path) -> None:
    found = run("open", folder / "study.deeptobit", "--no-show")
    assert found.exit_code == 0, found.output
    page = (folder / "study-patient.html").read_text(encoding="utf-8")
    assert "months of the forecast" in page
    assert "P-00" not in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('group = "subject_id"\n', ""), "is for people with several visits"),
        (('time = "months"', 'time = "monat"'), "the time 'monat' must be a feature"),
        (("visit_rank = 0", "visit_rank = 5"), "visit_rank must be 'auto' or 0, 1 or 2"),
    ],
)
def test_studies_that_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    table = visits(12)
    if not change[1]:
        table = table.drop(columns="subject_id")
    table.to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "study.toml").write_text(STUDY.replace(*change))
    found = run("fit", tmp_path / "study.toml", "--jobs", 1)
    assert found.exit_code == 1
    assert message in " ".join(found.output.split())


def test_forecasts_that_are_refused(folder: Path) -> None:
    words = "forecast", folder / "study.deeptobit", folder / "visits.csv"
    found = run(*words, "--at", "soon")
    assert found.exit_code == 2
    found = run(*words, "--at", "-6")
    assert found.exit_code == 1
    assert "--at takes positive numbers" in found.output


def test_months_are_the_time_rather_than_the_number_of_the_visit(tmp_path: Path) -> None:
    table = visits()
    table.insert(1, "visit", table.groupby("subject_id").cumcount() + 1)
    table.to_csv(tmp_path / "visits.csv", index=False)
    assert run("init", tmp_path / "visits.csv").exit_code == 0
    study = (tmp_path / "visits.toml").read_text()
    assert 'time = "months"' in study
    found = run("check", tmp_path / "visits.toml", "--json").stdout
    assert '"fix": "[features] exclude = [\\"visit\\"]"' in found  # time stays a feature


def test_init_proposes_people_time_and_a_mixed_model(tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    found = run("init", tmp_path / "visits.csv", "--json")
    assert found.exit_code == 0, found.output
    proposal = json.loads(found.stdout)
    assert (proposal["group"], proposal["time"]) == ("subject_id", "months")
    text = Path(proposal["study"]).read_text()
    assert 'kind = "mixed"' in text
    assert 'time = "months"' in text
