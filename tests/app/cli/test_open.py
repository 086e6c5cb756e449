"""``deeptobit open``: the patient page beside its model."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from deeptobit import TobitRegressor
from deeptobit.app.cli.app import app
from deeptobit.app.study import load_fitted, save_fitted
from tests.app.report.studies import one_outcome


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.deeptobit"
    save_fitted(one_outcome("lower = 0\nupper = 2\n"), path)
    return path


def test_the_page_stands_beside_the_model_and_opens(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("deeptobit.app.cli.open.launch", lambda path: opened.append(path) or 0)
    code, shown, _ = _run("open", model)
    assert code == 0, shown
    page = model.with_name("clinic-patient.html")
    assert opened == [str(page)]
    text = page.read_text(encoding="utf-8")
    assert hashlib.sha256(model.read_bytes()).hexdigest()[:16] in text
    assert _run("open", model, "--no-show")[0] == 0  # a page is replaced
    assert len(opened) == 1


def test_what_is_not_a_page_stays(model: Path) -> None:
    page = model.with_name("clinic-patient.html")
    page.write_text("mine")
    code, _, error = _run("open", model, "--no-show")
    assert code == 1
    assert "clinic-patient.html exists" in error
    assert page.read_text() == "mine"


def test_an_estimator_has_a_page_too(tmp_path: Path) -> None:
    X = np.arange(20.0)[:, None]
    path = tmp_path / "toy.model"
    TobitRegressor(upper=10).fit(X, np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)).save(path)
    code, shown, _ = _run("open", path, "--json")
    assert code == 0, shown
    written = json.loads(shown)
    assert Path(written["page"]).stat().st_size == written["bytes"]


def test_the_ranges_are_in_the_file(model: Path) -> None:
    before, after = one_outcome("lower = 0\nupper = 2\n").ranges, load_fitted(model).ranges
    assert before is not None
    assert after is not None
    assert after.names == before.names == ["x"]
    np.testing.assert_array_equal(after.low, before.low)
    assert after.farthest == before.farthest
