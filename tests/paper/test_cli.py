"""``python -m paper`` shows, writes, continues and says what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paper.__main__ import main
from paper.registry import NAMES
from paper.section import Context, Scale, Section
from tests.app.cli.adni_downloads import write_downloads
from tests.paper.sections import quick_section

RunsOf = list[tuple[str, Context]]


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; exit code, and what it printed on one line each."""

    def command(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # of argparse
            code = int(stop.code or 0)
        out, error = capsys.readouterr()
        return code, " ".join(out.split()), " ".join(error.split())

    return command


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


def test_tables_and_claims_are_printed(run: Run, runs: RunsOf) -> None:
    code, shown, error = run("quick")
    assert (code, error) == (0, "")
    assert "Quick section" in shown
    assert "A table" in shown
    assert "0.10 (0.01)" in shown
    assert "does not hold: B" in shown
    assert "holds only with best constants and ours: D" in shown
    assert "here: as printed, published constants: does not hold. 0.9" in shown
    # First what the paper claims, then what we claim.
    assert shown.index("What the paper claims") < shown.index(": D") < shown.index("What we claim")
    assert shown.index("What we claim") < shown.index("holds: E")
    assert "Of 4 claims of the paper 1 holds, 1 holds only with some constants or in ours" in shown
    assert "Of 1 claim of ours 1 holds, 0 do not, and 0 cannot be told." in shown
    assert runs[0][0] == "small"


def test_a_folder_gets_the_page_and_is_continued(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, shown, _ = run("quick", "--out", out)
    assert code == 0
    assert "done in" in shown
    page = (out / "quick.html").read_text(encoding="utf-8")
    code, shown, _ = run("quick", "--out", out)
    assert code == 0
    assert "quick: finished before with the same settings; read, not run." in shown
    assert len(runs) == 1
    assert (out / "quick.html").read_text(encoding="utf-8") == page
    assert "read, not run" not in run("quick", "--out", out, "--scale", "paper")[1]
    assert [name for name, _ in runs] == ["small", "paper"]


def test_all_is_one_page(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    assert run("all", "--out", tmp_path)[0] == 0
    assert (tmp_path / "index.html").exists()


def test_options_reach_the_experiment(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    options = ["--jobs", 2, "--seed", 5, "--protocol", "paper"]
    assert run("quick", *options, "--path", write_downloads(tmp_path / "ADNI", 20))[0] == 0
    context = runs[0][1]
    assert (context.n_jobs, context.seed, context.protocol) == (2, 5, "paper")
    assert context.path == tmp_path / "ADNI"


def test_adni_is_read_before_anything_is_run(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    code, _, error = run("quick", "--path", tmp_path / "nowhere")
    assert (code, error) == (
        1,
        f"paper: {tmp_path / 'nowhere'} is not a folder; give the one with ADNI's CSV files",
    )
    assert runs == []
    downloads = write_downloads(tmp_path / "ADNI", 20)
    (table,) = downloads.glob("NEUROBAT*")
    text = table.read_text().splitlines()
    table.write_text("\n".join([*text[:-1], text[-1].rsplit(",", 1)[0] + ",refused"]))
    shown = run("quick", "--path", downloads)[1]
    assert "warning: cells of NEUROBAT_20Mar2024.csv that are not on their scale" in shown
    assert "(row 21: refused)" in shown


def test_json_is_for_machines(run: Run, runs: RunsOf) -> None:
    (section,) = json.loads(run("quick", "--json")[1])
    assert section["claims"][0]["verdict"] == "holds"
    assert section["tables"][0]["rows"][1]["paper"] is None
    assert section["settings"]["scale"]["name"] == "small"


def test_what_is_wrong_is_one_sentence(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    code, _, error = run("fig-9")
    assert code == 2
    assert "invalid choice: 'fig-9'" in error
    assert run("quick", "--scale", "huge")[0] == 2
    file = tmp_path / "file"
    file.write_text("")
    for out in (file, file / "out"):
        code, _, error = run("quick", "--out", out)
        assert code == 1
        assert error.startswith("paper: ")
        assert str(out) in error
    assert runs == []


def test_errors_of_data_and_missing_packages_are_sentences(
    run: Run, runs: RunsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(scale: Scale, context: Context) -> Section:
        raise ValueError("there are no rows")

    monkeypatch.setitem(NAMES, "quick", fail)
    assert run("quick") == (1, "", "paper: there are no rows")


def test_ctrl_c_says_how_to_go_on(
    run: Run, runs: RunsOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(scale: Scale, context: Context) -> Section:
        raise KeyboardInterrupt

    monkeypatch.setitem(NAMES, "quick", stop)
    code, _, error = run("quick", "--out", tmp_path)
    assert code == 130
    assert (
        error == f"paper: stopped; what is done is kept in {tmp_path}; the same command continues"
    )


def test_the_help_names_everything(run: Run) -> None:
    code, shown, _ = run("--help")
    assert code == 0
    for name in NAMES:
        assert name in shown


def test_some_names_are_one_page(run: Run, runs: RunsOf, tmp_path: Path) -> None:
    NAMES["other"] = NAMES["quick"]  # type: ignore[index]
    try:
        assert run("quick", "other", "quick", "--out", tmp_path)[0] == 0
    finally:
        del NAMES["other"]  # type: ignore[attr-defined]
    assert len(runs) == 2
    assert (tmp_path / "index.html").read_text(encoding="utf-8").count('<section id="quick"') == 2
