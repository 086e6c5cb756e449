import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from deeptobit import TobitRegressor
from deeptobit.app import cli
from deeptobit.app.cli.app import app
from deeptobit.app.study import FittedStudy, load_fitted, save_fitted
from tests.app.report.studies import QUICK, fit_text
from tests.files.runtimes import RUNTIMES, assert_alike

GAUSSIAN = QUICK.replace("[model]", '[model]\nnoise = "gaussian"')


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.stdout.split()), result.stderr


@pytest.fixture(scope="module")
def fitted() -> FittedStudy:
    """One feature, and one outcome above a limit that differs from row to row."""
    rows = [f"{i % 7},{(3 * i) % 7},{0.1 * (i % 3):.1f}" for i in range(40)]
    target = '[targets.y]\nlower = "limit"\nupper = 5\noutside = "clip"\n'
    return fit_text("\n".join(["x,y,limit", *rows]), GAUSSIAN + target)


@pytest.fixture
def model(fitted: FittedStudy, tmp_path: Path) -> Path:
    path = tmp_path / "study.deeptobit"
    save_fitted(fitted, path)
    return path


def test_the_file_predicts_what_the_model_does(model: Path) -> None:
    code, shown, error = _run("export", model, "--kind", "latent", "--dtype", "float64")
    assert (code, error) == (0, "")
    assert "study.onnx: input X (float64) of 1 feature(s), output 'latent' of 1 target(s)" in shown
    assert "Limits of y differ from row to row and are not in it" in shown
    file = model.with_suffix(".onnx").read_bytes()
    X = np.linspace(-3.0, 3.0, 7)[:, None]
    estimator = load_fitted(model).model
    del estimator.feature_names_in_, estimator.best_estimator_.feature_names_in_
    expected = estimator.predict(X, kind="latent").reshape(7, 1)
    for run in RUNTIMES.values():
        assert_alike(run(file, X), expected, 2.0)


def test_for_machines(model: Path) -> None:
    out = model.parent / "other.onnx"
    code, shown, _ = _run("export", model, "--onnx", out, "--json")
    assert code == 0
    written = json.loads(shown)
    assert (written["onnx"], written["kind"], written["dtype"]) == (str(out), "mean", "float32")
    assert (written["features"], written["targets"]) == (["x"], ["y"])
    (column,) = written["encoding"]
    assert (column["name"], column["levels"], column["indicator"]) == ("x", [], False)
    assert onnx.load(out).graph.output[0].name == "mean"


def test_features_of_a_study_are_the_encoded_ones(tmp_path: Path) -> None:
    rows = [f"{'abc'[i % 3]},{'' if i == 5 else i % 7},{(3 * i) % 11}" for i in range(40)]
    fitted = fit_text("\n".join(["kind,x,y", *rows]), f"{GAUSSIAN}[targets.y]\nupper = 10\n")
    path = tmp_path / "a.deeptobit"
    save_fitted(fitted, path)
    code, shown, _ = _run("export", path)
    assert (code, "of 4 feature(s)" in shown) == (0, True)
    assert "columns of the table once encoded: categories as 0 and 1" in shown
    props = {entry.key: entry.value for entry in onnx.load(tmp_path / "a.onnx").metadata_props}
    assert json.loads(props["feature_names"]) == ["kind=b", "kind=c", "x", "x (missing)"]


def test_a_saved_estimator(tmp_path: Path) -> None:
    X = np.arange(20.0)[:, None]
    path = tmp_path / "tobit.model"
    TobitRegressor(upper=10).fit(X, np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)).save(path)
    code, shown, _ = _run("export", path, "--json")
    written = json.loads(shown)
    assert (code, written["features"], written["encoding"]) == (0, ["x0"], None)


def test_what_is_refused(model: Path) -> None:
    out = model.with_suffix(".onnx")
    out.write_text("mine")
    code, _, error = _run("export", model)
    assert (code, error.count("\n")) == (1, 1)
    assert "study.onnx exists; --force replaces it, --onnx writes elsewhere" in error
    assert out.read_text() == "mine"
    assert _run("export", model, "--force")[0] == 0
    assert _run("export", model, "--kind", "median", "--force")[0] == 2
    other = model.parent / "logistic.model"
    X = np.arange(20.0)[:, None]
    TobitRegressor(noise="logistic").fit(X, np.sin(X[:, 0]) + 2.0).save(other)
    assert _run("export", other)[0] == 0  # any noise
    fine = model.parent / "fine.model"
    y = 1e9 + np.clip(np.sin(X[:, 0]) + 1.0, 0.5, 1.5)
    TobitRegressor(lower=1e9 + 0.5, upper=1e9 + 1.5, noise="gaussian").fit(X, y).save(fine)
    error = _run("export", fine)[2]
    assert "fine.model cannot be exported: target " in error


def test_help_shows_what_the_mean_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert "E[y|x], the score clipped to the bounds" in _run("export", "--help")[1]


def test_a_missing_extra_is_one_sentence(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr(sys, "argv", ["deeptobit", "export", str(model)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert "[onnx]'" in capsys.readouterr().err
