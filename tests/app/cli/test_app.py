import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deeptobit import __version__, datasets
from deeptobit.app import cli
from deeptobit.app.cli.app import app
from deeptobit.app.study import load_fitted

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "numba", "matplotlib"}


def test_help_lists_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['deeptobit', '--help']\n"
        "from deeptobit.app.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print('LOADED', *{name.split('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split("LOADED")[1].split())
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"deeptobit {__version__}"


def test_the_package_can_be_run_as_a_module() -> None:
    words = [sys.executable, "-m", "deeptobit", "--version"]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"deeptobit {__version__}"


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(app, ["no-such-command"])
    assert result.exit_code == 2


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_extra_is_one_sentence(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert f"{package} is not installed" in message
    assert "[app]'" in message


@pytest.mark.usefixtures("without_pictures")
def test_the_demo_fits_every_score_and_ends_with_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller = partial(datasets.make_clinical_cohort, 120)
    monkeypatch.setattr(datasets, "make_clinical_cohort", smaller)
    out = tmp_path / "demo"
    result = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "30 bounded scores (seed 0)" in result.output
    assert "MMSE_bl" in result.output
    assert "0 – 30" in result.output
    table = result.output.partition("Wrote")[0]
    assert max(len(line) for line in table.splitlines() if " – " in line) <= 80
    assert (out / "cohort.html").read_text().startswith("<!DOCTYPE html>")
    shown = " ".join(result.output.split())
    assert all(f"deeptobit {name} {out}" in shown for name in ("check", "fit", "open"))
    assert len(load_fitted(out / "cohort.deeptobit").held_out.table()) == 30


@pytest.mark.slow
def test_the_demo_has_something_to_show(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    scores = load_fitted(tmp_path / "cohort.deeptobit").held_out.table()
    assert (scores["null_crps"] / scores["crps"]).mean() > 1.02
    assert scores["r2"].mean() > 0.1
    assert 0.88 < scores["coverage"].mean() < 0.97


def test_ctrl_c_while_a_command_loads_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(module: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deeptobit.app.cli.app.import_module", interrupted)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 130
    assert result.stderr == "deeptobit: Stopped, nothing written\n"


def test_ctrl_c_while_the_first_packages_load_is_one_line() -> None:
    code = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "deeptobit.extras":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from deeptobit.app.cli import main
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (130, "deeptobit: Stopped, nothing written\n")


def test_a_terminal_without_a_character_shows_another() -> None:
    words = [sys.executable, "-c", "from deeptobit.app.cli import main; main()", "fit", "müll.toml"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    run = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert run.returncode == 1
    assert run.stderr.startswith("deeptobit: m?ll.toml: there is no such study file")
