"""Nothing that runs reaches for a network."""

from __future__ import annotations

import ast
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import deeptobit
from tests.privacy.canaries import canary_table, run, write_cohort

SOURCES = sorted(Path(deeptobit.__file__).parent.rglob("*.py"))
NETWORKING = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "urllib"}
NETWORKING |= {"urllib3", "webbrowser", "xmlrpc", "socketserver", "telnetlib"}
CALLS = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
CALLS |= {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


class NetworkError(AssertionError):
    """Somebody reached for a network."""


class Guard:
    """Refuses what sockets do, below any library; processes of this machine may talk by files.

    An audit hook cannot be removed, so that there is one, which acts while it is asked to.
    """

    active = False

    @classmethod
    def watch(cls, event: str, arguments: tuple[object, ...]) -> None:
        if cls.active and event in CALLS:
            local = arguments and getattr(arguments[0], "family", None) == socket.AF_UNIX
            if not local:
                raise NetworkError(f"{event}{arguments[1:]}")


sys.addaudithook(Guard.watch)


@pytest.fixture
def no_network() -> Iterator[None]:
    Guard.active = True
    yield
    Guard.active = False


@pytest.mark.usefixtures("no_network")
def test_the_guard_refuses() -> None:
    with pytest.raises(NetworkError):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    with pytest.raises(NetworkError):
        socket.getaddrinfo("example.org", 80)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, pytest.raises(NetworkError):
        sender.sendto(b"ping", ("192.0.2.1", 9))


@pytest.mark.usefixtures("no_network")
def test_a_study_from_its_table_to_its_report(tmp_path: Path) -> None:
    study = write_cohort(tmp_path)
    model, new = tmp_path / "clinic.deeptobit", tmp_path / "new.csv"
    canary_table().to_csv(new, index=False)
    run("init", new, "--out", tmp_path / "proposed.toml")
    run("check", study)
    run("fit", study, "--jobs", 1)
    run("predict", model, new)
    run("report", model)
    run("export", model)
    quick = ("--methods", "null,ridge", "--repeats", 1, "--train-shares", 0.7)
    run("evaluate", study, *quick, "--out", tmp_path / "compared")


@pytest.mark.usefixtures("no_network")
def test_an_estimator_is_saved_and_loaded(tmp_path: Path) -> None:
    table = canary_table()
    X, Y = table[["volume", "implant"]].astype(float), table[["MMSE", "speed"]]
    model = deeptobit.TobitRegressor(lower=None, upper={"MMSE": 30.0}).fit(X, Y)
    model.save(tmp_path / "a.model")
    again = deeptobit.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.usefixtures("no_network")
def test_the_demo() -> None:
    assert len(run("demo")["scores"]) == 30


@pytest.mark.usefixtures("no_network")
def test_cohorts_and_brain_maps_come_from_installed_files() -> None:
    from deeptobit.report._brain_surface import load_hemisphere

    assert len(deeptobit.datasets.load_help().X) == 470
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
