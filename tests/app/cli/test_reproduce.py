"""``deeptobit reproduce`` shows, writes, continues and says what is wrong."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from paper.registry import NAMES
from paper.section import Context, Scale, Section
from tests.paper.sections import quick_section

RunsOf = list[tuple[str, Context]]


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["reproduce", *(str(argument) for argument in arguments)])
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> RunsOf:
    """Only one name, which takes no time; how it was called."""
    called: RunsOf = []

    def work(scale: Scale, context: Context) -> Section:
        called.append((scale.name, context))
        return quick_section(scale, context)

    for name in list(NAMES):
        monkeypatch.delitem(NAMES, name)
    monkeypatch.setitem(NAMES, "quick", work)
    return called


def test_tables_and_claims_are_printed(runs: RunsOf) -> None:
    code, shown, error = _run("quick")
    assert (code, error) == (0, "")
    assert "Quick section" in shown
    assert "A table" in shown
    assert "0.10 (0.01)" in shown
    assert "does not hold: B" in shown
    assert "3 claim(s): 1 holds, 1 does not hold, 1 cannot be told." in shown
    assert runs[0][0] == "small"


def test_a_folder_gets_the_page_and_is_continued(runs: RunsOf, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, shown, _ = _run("quick", "--out", out)
    assert code == 0
    assert "done in" in shown
    page = (out / "quick.html").read_text(encoding="utf-8")
    code, shown, _ = _run("quick", "--out", out)
    assert code == 0
    assert "quick: finished before with the same settings; read, not run." in shown
    assert len(runs) == 1
    assert (out / "quick.html").read_text(encoding="utf-8") == page
    assert "read, not run" not in _run("quick", "--out", out, "--scale", "paper")[1]
    assert [name for name, _ in runs] == ["small", "paper"]


def test_all_is_one_page(runs: RunsOf, tmp_path: Path) -> None:
    assert _run("all", "--out", tmp_path)[0] == 0
    assert (tmp_path / "index.html").exists()


def test_options_reach_the_experiment(runs: RunsOf, tmp_path: Path) -> None:
    options = ["--jobs", 2, "--seed", 5, "--protocol", "paper", "--path", tmp_path]
    assert _run("quick", *options)[0] == 0
    context = runs[0][1]
    assert (context.n_jobs, context.seed, context.protocol) == (2, 5, "paper")
    assert context.path == tmp_path


def test_json_is_for_machines(runs: RunsOf) -> None:
    result = CliRunner().invoke(app, ["reproduce", "quick", "--json"])
    (section,) = json.loads(result.stdout)
    assert section["claims"][0]["verdict"] == "holds"
    assert section["tables"][0]["rows"][1]["paper"] is None
    assert section["settings"]["scale"]["name"] == "small"


def test_what_is_wrong_is_one_sentence(runs: RunsOf, tmp_path: Path) -> None:
    code, _, error = _run("fig-9")
    assert code == 1
    assert error == "deeptobit: there is nothing called 'fig-9'; name one of all, quick"
    file = tmp_path / "file"
    file.write_text("")
    code, _, error = _run("quick", "--out", file)
    assert (code, error) == (1, f"deeptobit: {file} is a file; --out names a folder")
    code, _, error = _run("quick", "--out", file / "out")
    assert (code, error) == (1, f"deeptobit: {file / 'out'} cannot be made: Not a directory")
    assert runs == []
    assert _run("quick", "--scale", "huge")[0] == 2


def test_errors_of_data_and_missing_packages_are_sentences(
    runs: RunsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(scale: Scale, context: Context) -> Section:
        raise ValueError("there are no rows")

    monkeypatch.setitem(NAMES, "quick", fail)
    assert _run("quick") == (1, "", "deeptobit: there are no rows")


def test_ctrl_c_says_how_to_go_on(
    runs: RunsOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(scale: Scale, context: Context) -> Section:
        raise KeyboardInterrupt

    monkeypatch.setitem(NAMES, "quick", stop)
    code, _, error = _run("quick", "--out", tmp_path)
    assert code == 130
    assert (
        error
        == f"deeptobit: stopped; what is done is kept in {tmp_path}; the same command continues"
    )


def test_the_help_names_everything() -> None:
    shown = _run("--help")[1]
    for name in NAMES:
        assert name in shown.replace("│ │ ", "")
