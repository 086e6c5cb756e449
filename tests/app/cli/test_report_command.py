import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import save_fitted
from tests.app.report.studies import one_outcome

pytestmark = pytest.mark.usefixtures("without_pictures")


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("fitted") / "study.deeptobit"
    save_fitted(one_outcome("lower = 0\nupper = 2\n"), path)
    return path.read_bytes()


@pytest.fixture
def model(stored: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "study.deeptobit"
    path.write_bytes(stored)
    return path


def test_the_page_stands_beside_the_model(model: Path) -> None:
    code, shown, _ = _run("report", model)
    assert code == 0, shown
    assert "study.html" in shown.replace("\n", "")
    page = model.with_suffix(".html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert sorted(file.name for file in model.parent.iterdir()) == ["study.deeptobit", "study.html"]


def test_json_and_another_place(model: Path) -> None:
    out = model.parent / "elsewhere.html"
    code, shown, _ = _run("report", model, "--out", out, "--json")
    assert code == 0
    written = json.loads(shown)
    assert written["report"] == str(out)
    assert written["targets"] == 1
    assert written["bytes"] == out.stat().st_size


def test_only_a_report_is_replaced(model: Path) -> None:
    page = model.with_suffix(".html")
    page.write_text("mine")
    code, _, error = _run("report", model)
    assert code == 1
    assert "study.html exists" in error
    assert page.read_text() == "mine"
    assert _run("report", model, "--force")[0] == 0
    whole = page.read_bytes()
    page.write_bytes(whole[:2000])
    assert _run("report", model)[0] == 0
    assert page.read_bytes() == whole
    before = model.read_bytes()
    code, _, error = _run("report", model, "--out", model)
    assert code == 1
    assert "is already used by this command" in error
    assert model.read_bytes() == before


def test_what_is_wrong_is_one_sentence(model: Path) -> None:
    folder = model.parent
    (folder / "notes.txt").write_text("no model")
    truncated = folder / "half.deeptobit"
    truncated.write_bytes(model.read_bytes()[:200])
    for arguments in (
        [folder / "absent.deeptobit"],
        [folder / "notes.txt"],
        [truncated],
        [model, "--out", folder / "none" / "page.html"],
        [model, "--out", folder],
    ):
        code, shown, error = _run("report", *arguments)
        assert (code, shown) == (1, "")
        assert error.startswith("deeptobit: ")
        assert error.count("\n") == 1
        code, shown, _ = _run("report", *arguments, "--json")
        assert code == 1
        assert json.loads(shown)["error"]
    assert not list(folder.glob("*.html"))
