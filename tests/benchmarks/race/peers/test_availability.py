from __future__ import annotations

import shutil

import pytest

from benchmarks.race.peers import PEERS
from benchmarks.race.peers.r_tobit import r_has


def test_without_r_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    reason = PEERS["R AER tobit"].available()
    assert reason is not None
    assert reason.startswith("R is not installed")


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_a_missing_package_of_r_is_named() -> None:
    assert r_has("noSuchPackage")() == (
        "R's package noSuchPackage is not installed (Debian: r-cran-nosuchpackage)"
    )
    assert r_has("stats")() is None
