"""From a table nobody prepared to predictions for new people, without editing anything."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deeptobit.cli._app import app
from deeptobit.study import read_table
from tests.study.messy import write_messy_csv


def _run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*(str(argument) for argument in arguments), "--json"])
    assert result.exit_code == 0, result.stdout
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its study and its model: init, check, fit."""
    folder = tmp_path_factory.mktemp("clinic")
    write_messy_csv(folder / "kohorte.csv")
    _run("init", folder / "kohorte.csv")
    assert _run("check", folder / "kohorte.toml")["findings"] == []
    report = _run("fit", folder / "kohorte.toml", "--jobs", 1)
    assert (report["rows"], report["groups"]) == (150, 12)
    for target in report["targets"]:
        assert target["r2"] > 0.3, target
        assert target["crps"] < 0.8 * target["null_crps"], target
        assert 0.8 < target["coverage"] <= 1.0, target
    return folder


def test_new_people_are_predicted(folder: Path) -> None:
    cohort = read_table(write_messy_csv(folder / "neu.csv", seed=1))
    report = _run("predict", folder / "kohorte.deeptobit", folder / "neu.csv")
    assert report["rows"] == len(cohort)
    predicted = read_table(folder / "neu-predictions.csv")
    assert predicted.text("Proband").tolist() == cohort.text("Proband").tolist()
    mmse, low, high = (predicted.numbers(f"MMSE{end}") for end in ("", " low", " high"))
    truth = cohort.numbers("MMSE")
    known = ~np.isnan(truth)
    assert np.corrcoef(mmse[known], truth[known])[0, 1] > 0.6
    assert ((low <= truth) & (truth <= high))[known].mean() > 0.8
    assert (high <= 30.0).all()


# evaluate: a test of `deeptobit evaluate` on folder / "kohorte.toml" belongs here.

# report: a test of `deeptobit report` on folder / "kohorte.deeptobit" belongs here.
