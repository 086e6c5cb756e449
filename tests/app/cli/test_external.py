"""A model on the table of another site, and how many people a study needs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import deeptobit.app.study as studies
from deeptobit.app.cli.app import app


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def _table(n: int, seed: int, level: float = 0.0, age: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    volume = rng.normal(size=n)
    score = 15 + level + 3 * volume + rng.normal(size=n)
    columns = {"age": (70 + age + 5 * rng.normal(size=n)).round(1), "volume": volume.round(3)}
    return pd.DataFrame(columns | {"MMSE": np.clip(score.round(), 0, 30)})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fitted model, and a table of another site: 4 points higher, people older."""
    folder = tmp_path_factory.mktemp("site")
    _table(150, 0).to_csv(folder / "a.csv", index=False)
    study = 'data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}\nmodel.cv = 2\n'
    (folder / "a.toml").write_text(study + 'model.members = ["stack"]\n')
    assert _run("fit", folder / "a.toml", "--jobs", 1)[0] == 0
    _table(150, 1, level=4.0, age=10.0).to_csv(folder / "b.csv", index=False)
    return folder


def test_another_site_shows_bias_and_drift_and_is_put_right(site: Path) -> None:
    new = site / "b.deeptobit"
    arguments = ("evaluate", "--model", site / "a.deeptobit", site / "b.csv")
    code, shown, error = _run(*arguments, "--recalibrate", new)
    assert (code, error) == (0, "")
    assert "points below the recorded values" in " ".join(shown.split())
    code, shown, _ = _run(*arguments, "--json")
    found = json.loads(shown)
    assert found["targets"][0]["bias"] == pytest.approx(-4.0, abs=0.5)
    assert found["targets"][0]["level"] == pytest.approx(4.0, abs=0.5)
    assert found["targets"][0]["slope"] == pytest.approx(1.0, abs=0.15)
    drift = {row["feature"]: row["shift"] for row in found["features"]}
    assert drift["age"] == pytest.approx(2.0, abs=0.4)
    assert abs(drift["volume"]) < 0.4
    fitted = studies.load_fitted(new)
    assert "150 rows of another table" in fitted.facts["recalibrated"]
    assert any("was recalibrated" in finding.message for finding in fitted.findings)
    table = studies.read_data(fitted.study, site / "b.csv")
    assert abs(studies.validate(fitted, table).measures["bias"].iloc[0]) < 0.2
    assert studies.validate(fitted, table).measures["r2"].iloc[0] > 0.8


def test_wrong_use_is_one_sentence(site: Path) -> None:
    code, _, error = _run("evaluate", "--model", site / "a.deeptobit")
    assert code == 2
    assert "--model needs the table" in " ".join(error.split())
    (site / "c.csv").write_text("age,volume,MMSE\n70,0.1,\n71,0.2,\n")
    code, _, error = _run("evaluate", "--model", site / "a.deeptobit", site / "c.csv")
    assert (code, error.count("\n")) == (1, 1)
    (site / "d.csv").write_text("age,volume,MMS\n70,0.1,20\n71,0.2,22\n")
    code, _, error = _run("evaluate", "--model", site / "a.deeptobit", site / "d.csv")
    assert (code, "lacks the column 'MMSE'" in error) == (1, True)
    assert "did you mean 'MMS'?" in error


def test_the_number_of_people_without_bounds_is_the_textbook_one() -> None:
    found = studies.Plan(effect=1.0, mean=0.0, sigma=2.0).search(width=1.0, n_repeats=50)
    assert found["people"].iloc[-1] == pytest.approx((2 * 1.96 * 2.0) ** 2, rel=0.1)


def test_a_plan_from_a_model_and_from_words(site: Path) -> None:
    plan = studies.plan_of_study(studies.load_fitted(site / "a.deeptobit"), "MMSE", "volume")
    assert plan.effect == pytest.approx(3.0, rel=0.15)
    assert (plan.lower, plan.upper) == (0.0, 30.0)
    stated = ("--effect", 1, "--mean", 29, "--sd", 3, "--upper", 30, "--repeats", 100)
    code, shown, error = _run("plan", "--power", 0.5, *stated, "--json")
    assert (code, error) == (0, "")
    ceiling = json.loads(shown)
    assert ceiling["people"] > (1.96 * 3) ** 2  # what it takes without a ceiling
    assert ceiling["tried"][0]["at_upper"] == pytest.approx(0.38, abs=0.05)
    code, shown, _ = _run("plan", "--power", 0.5, *stated)
    assert code == 0
    assert "people give a power of 50%, for an effect of" in " ".join(shown.split())
    assert "at ceiling" in shown
    assert _run("plan", "--power", 0.8)[0] == 2
    assert _run("plan", *stated)[0] == 2
    assert _run("plan", "--power", 0.8, "--model", site / "a.deeptobit")[0] == 2
    code, _, error = _run(
        "plan", "--width", 1, "--model", site / "a.deeptobit", "--target", "MSE", "--feature", "age"
    )
    assert (code, "did you mean 'MMSE'?" in error) == (1, True)
