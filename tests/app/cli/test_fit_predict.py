import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import FittedStudy, StudyError, load_fitted, read_table
from tests.app.study.cohorts import write_cohort

NEW = "visit,age,sex,volume,lod\n007,70,f,3000,0.5\n=1+1,,x,3500,0.9\n"


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def _names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a study that was fitted, and what the command showed."""
    folder = tmp_path_factory.mktemp("cohort")
    study = write_cohort(folder, cv=2)
    with study.open("a") as file:
        file.write("[evaluation]\ncoverage = 0.8\n")
    code, shown, error = _run("fit", study, "--jobs", 1)
    assert (code, error) == (0, "")
    return folder, shown


@pytest.fixture
def folder(fitted: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of it, with new people beside."""
    shutil.copytree(fitted[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path


def test_fit_shows_how_the_model_does(fitted: tuple[Path, str]) -> None:
    folder, shown = fitted
    cards = ["cohort-card.json", "cohort-card.md"]
    assert _names(folder) == [*cards, "cohort.csv", "cohort.deeptobit", "cohort.toml"]
    table = load_fitted(folder / "cohort.deeptobit").held_out.table()
    plain = " ".join(shown.split())
    assert "80 rows, 4 features, 3 target(s)" in plain
    assert "by a model that had not seen it, nor any other row of its group" in plain
    assert f"MMSE 0 – 30 80 {table['r2'].iloc[0]:.2f}" in plain
    assert "tau by row – open 80" in plain
    assert "in 80% interval" in plain
    assert "R² ≤ 0" not in plain
    assert "cohort.deeptobit NEW.csv" in plain
    assert "deeptobit report" in plain


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize(
    ("kind", "headline", "reported"),
    [
        ("network", "cross-validation chose", "jointly by a Subspace Network of"),
        ("tobit", "a Tobit regression of every target", "modelled by a Tobit regression"),
    ],
)
def test_other_kinds_of_models(kind: str, headline: str, reported: str, tmp_path: Path) -> None:
    study = write_cohort(tmp_path, cv=2, kind="tobit")
    if kind == "network":
        grid = 'kind = "network"\nranks = [1]\nalphas = [0.1]'
        study.write_text(study.read_text().replace('kind = "tobit"\nalpha = 0.1', grid))
    code, shown, error = _run("fit", study, "--jobs", 1)
    assert (code, error) == (0, "")
    assert headline in " ".join(shown.split())
    fitted = load_fitted(tmp_path / "cohort.deeptobit")
    assert fitted.study.model.kind == kind
    assert (fitted.held_out.table()["r2"] > 0.4).all()
    (tmp_path / "new.csv").write_text(NEW)
    assert _run("predict", tmp_path / "cohort.deeptobit", tmp_path / "new.csv")[0] == 0
    assert _run("report", tmp_path / "cohort.deeptobit")[0] == 0
    (page,) = tmp_path.glob("*.html")
    assert reported in page.read_text()


def test_features_that_do_not_help_are_named(tmp_path: Path) -> None:
    lines = [f"{(7 * i) % 11},{(5 * i) % 13},{3 * i}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["x,luck,sum", *lines]))
    study = tmp_path / "a.toml"
    study.write_text(
        'data.file = "a.csv"\nfeatures.include = ["x"]\ntargets.luck = {}\n'
        "model.kind = 'tobit'\nmodel.alpha = 1.0\nmodel.cv = 2\n"
    )
    code, shown, _ = _run("fit", study, "--jobs", 1)
    assert code == 0
    assert "R² ≤ 0: features do not help to predict luck" in " ".join(shown.split())


def test_fit_for_machines(tmp_path: Path) -> None:
    folder = write_cohort(tmp_path, cv=2, kind="tobit").parent
    out = folder / "other.model"
    code, shown, error = _run("fit", folder / "cohort.toml", "--out", out, "--jobs", 1, "--json")
    report = json.loads(shown)
    assert (code, error) == (0, "")
    assert (report["model"], report["rows"], report["groups"]) == (str(out), 80, 40)
    tau = report["targets"][1]
    assert (tau["target"], tau["lower"], tau["upper"]) == ("tau", None, None)
    assert tau["crps"] < tau["null_crps"]
    assert out.exists()
    assert report["card"] == [str(folder / f"other-card.{ending}") for ending in ("md", "json")]
    card = json.loads((folder / "other-card.json").read_text())
    assert card["scores"]["targets"][1]["crps"] == float(f"{tau['crps']:.3g}")
    assert (folder / "other-card.md").read_text().startswith("# Model card: cohort\n")


def test_a_model_file_is_not_replaced_unless_forced(folder: Path) -> None:
    model = folder / "cohort.deeptobit"
    model.write_bytes(b"mine")
    code, _, error = _run("fit", folder / "cohort.toml")
    assert code == 1
    assert "cohort.deeptobit exists; --force replaces it" in error
    assert model.read_bytes() == b"mine"
    model.unlink()
    code, _, error = _run("fit", folder / "cohort.toml")
    assert (code, "cohort-card.md exists; --force replaces it" in error) == (1, True)
    for own in ("cohort.toml", "cohort.csv"):
        code, _, error = _run("fit", folder / "cohort.toml", "--out", folder / own, "--force")
        assert (code, error.count("\n")) == (1, 1)
        assert "is already used by this command" in error
    code, _, error = _run("fit", folder / "cohort.toml", "--out", folder / "none" / "m")
    assert (code, "no such folder" in error) == (1, True)


def test_no_model_is_written_without_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fitted: FittedStudy) -> None:
        raise StudyError("no card today")

    study = write_cohort(tmp_path, cv=2, kind="tobit")
    monkeypatch.setattr("deeptobit.app.report.study_card", fail)
    code, _, error = _run("fit", study, "--jobs", 1)
    assert (code, error) == (1, "deeptobit: no card today\n")
    assert _names(tmp_path) == ["cohort.csv", "cohort.toml"]


def test_no_process_is_too_few(folder: Path) -> None:
    code, _, error = _run("fit", folder / "cohort.toml", "--jobs", 0, "--force")
    assert (code, "it must be at least 1, or -1" in error) == (2, True)


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_predictions(kind: str, folder: Path) -> None:
    out = folder / f"out.{kind}"
    code, shown, error = _run(
        "predict", folder / "cohort.deeptobit", folder / "new.csv", "--out", out
    )
    assert (code, error) == (0, "")
    lines = [line for line in shown.splitlines() if line.startswith("warning")]
    assert len(lines) == 2
    assert "'sex' has categories that the model does not know" in lines[0]
    assert "out." + kind + ": 2 row(s), 3 target(s), 80% intervals." in shown
    table = read_table(out)
    formula = "'=1+1" if kind == "csv" else "=1+1"
    assert table.text("visit").tolist() == ["007", formula]
    assert (table.numbers("speed low") < table.numbers("speed")).all()
    assert (table.numbers("tau low") >= [0.5, 0.9]).all()


def test_predictions_for_machines(folder: Path) -> None:
    model, new = folder / "cohort.deeptobit", folder / "new.csv"
    code, shown, error = _run("predict", model, new, "--coverage", 0.5, "--only", "id", "--json")
    report = json.loads(shown)
    assert (code, error, report["rows"], report["coverage"]) == (0, "", 2, 0.5)
    assert report["predictions"] == str(folder / "new-predictions.csv")
    assert report["columns"][:4] == ["visit", "MMSE", "MMSE low", "MMSE high"]
    assert len(report["warnings"]) == 2
    code, shown, _ = _run("predict", model, new, "--json")
    assert code == 1
    assert "new-predictions.csv exists" in json.loads(shown)["error"]
    assert _run("predict", model, new, "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("cohort.deeptobit", "none.csv"), "there is no such file"),
        (("none.deeptobit", "new.csv"), "none.deeptobit: there is no such file"),
        (("cohort.toml", "new.csv"), "cohort.toml is a study file, not a model"),
        (("cohort.deeptobit", "cohort.toml"), "cannot read files of kind '.toml'"),
        (("cohort.deeptobit", "new.csv", "--out", "p.ods"), "cannot write files of kind '.ods'"),
        (
            ("cohort.deeptobit", "new.csv", "--out", "new.csv", "--force"),
            "already used by this command",
        ),
        (("cohort.deeptobit", "new.csv", "--coverage", "90"), "between 0 and 1; got 90"),
        (("cohort.deeptobit", "few.csv"), "lacks the features 'age', 'sex', 'volume'"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("few.csv").write_text("visit,x\n1,2\n")
    before = _names(folder)
    code, shown, error = _run("predict", *arguments)
    assert (code, shown) == (1, "")
    assert error.startswith("deeptobit: ")
    assert error.count("\n") == 1
    assert sentence in error
    assert _names(folder) == before


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_ctrl_c_leaves_what_was_there(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    write_cohort(folder, cv=2, kind="tobit")
    (folder / "new-predictions.csv").write_text("mine")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr("os.fsync", interrupt)  # in the middle of writing
    arguments: dict[str, list[object]] = {
        "fit": [folder / "cohort.toml", "--jobs", 1],
        "predict": [folder / "cohort.deeptobit", folder / "new.csv"],
    }
    code, shown, error = _run(command, *arguments[command], "--force")
    assert (code, shown) == (130, "")
    assert error == "deeptobit: Stopped, nothing written\n"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
