"""Nothing that runs reaches for a network."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import deeptobit
from tests.privacy.canaries import canary_table, run, write_cohort
from tests.privacy.guard.sitecustomize import FOLDER, NOTES, NetworkError

ROOT = Path(__file__).parents[2]
SOURCES = sorted(Path(deeptobit.__file__).parent.rglob("*.py"))
NETWORKING = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "urllib"}
NETWORKING |= {"urllib3", "webbrowser", "xmlrpc", "socketserver", "telnetlib"}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Guards this process and those it starts; the notes of what was refused, to be cleared."""
    notes = tmp_path / "refused.txt"
    monkeypatch.setenv(NOTES, str(notes))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    yield notes
    assert not notes.exists(), notes.read_text(encoding="utf-8")


def start(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own: workers of this one may be older than the guard."""
    command = [sys.executable, *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_guard_refuses(refused: Path) -> None:
    with pytest.raises(NetworkError):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    with pytest.raises(NetworkError):
        socket.getaddrinfo("example.org", 80)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, pytest.raises(NetworkError):
        sender.sendto(b"ping", ("192.0.2.1", 9))
    assert len(refused.read_text(encoding="utf-8").splitlines()) == 3
    refused.unlink()


def test_the_guard_is_in_the_workers_of_a_process(refused: Path) -> None:
    reach = "joblib.delayed(socket.getaddrinfo)('example.org', 80)"
    started = start("-c", f"import joblib, socket; joblib.Parallel(2)([{reach}])")
    assert "NetworkError" in started.stderr
    assert "example.org" in refused.read_text(encoding="utf-8")
    refused.unlink()


@pytest.mark.usefixtures("refused")
def test_a_study_from_its_table_to_its_report(tmp_path: Path) -> None:
    study = write_cohort(tmp_path)
    model, new = tmp_path / "clinic.deeptobit", tmp_path / "new.csv"
    canary_table().to_csv(new, index=False)
    run("convert", new)
    run("init", new, "--out", tmp_path / "proposed.toml")
    run("check", study)
    run("fit", study, "--jobs", 1)
    run("predict", model, new)
    run("report", model)
    run("export", model)
    quick = ("--methods", "null,ridge", "--repeats", 1, "--train-shares", 0.7)
    run("evaluate", study, *quick, "--out", tmp_path / "compared")


@pytest.mark.slow
@pytest.mark.usefixtures("refused")
def test_fits_side_by_side(tmp_path: Path) -> None:
    study = write_cohort(tmp_path)
    quick = ("--methods", "null,ridge", "--repeats", 2, "--train-shares", 0.7)
    for command in (
        ("deeptobit", "fit", study),
        ("deeptobit", "evaluate", study, *quick),
        ("paper", "fig-weights"),
    ):
        started = start("-m", *command, "--jobs", 2)
        assert started.returncode == 0, started.stderr


@pytest.mark.usefixtures("refused")
def test_an_estimator_is_saved_and_loaded(tmp_path: Path) -> None:
    table = canary_table()
    X, Y = table[["volume", "implant"]].astype(float), table[["MMSE", "speed"]]
    model = deeptobit.TobitRegressor(lower=None, upper={"MMSE": 30.0}).fit(X, Y)
    model.save(tmp_path / "a.model")
    again = deeptobit.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.usefixtures("refused")
def test_the_demo(tmp_path: Path) -> None:
    assert run("demo", "--out", tmp_path / "demo")["rows"] == 670


@pytest.mark.usefixtures("refused")
def test_a_cohort_comes_from_installed_files() -> None:
    assert len(deeptobit.datasets.load_help().X) == 470


@pytest.mark.usefixtures("refused")
def test_brain_maps_come_from_installed_files() -> None:
    pytest.importorskip("nilearn", reason="needs the extra 'brain'")
    from deeptobit.app.report.brain import load_hemisphere

    load_hemisphere.cache_clear()
    assert load_hemisphere("left").points.shape == (10242, 3)


def test_no_module_can() -> None:
    """What talks is Dask's cluster, which a user starts."""
    assert not [path for path in SOURCES if NETWORKING & imported(path)]


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found
