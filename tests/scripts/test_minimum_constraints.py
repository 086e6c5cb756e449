"""The oldest versions that are promised, read from where they are promised."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "minimum_constraints.py"))


def _promised() -> dict[str, Version]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = SCRIPT["minimum_constraints"](content["project"])
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def test_tested_versions_are_among_the_promised_ones() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    tested = {name.lower(): Version(version) for name, version in pairs}
    promised = _promised()
    assert {"numpy", "scipy", "numba", "typer", "dask"} <= promised.keys()
    for name, oldest in promised.items():
        assert tested[name.lower()] >= oldest, name


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy>=2,>=1"])
def test_every_requirement_names_its_oldest_version(requirement: str) -> None:
    project: dict[str, Any] = {"name": "own", "dependencies": [requirement]}
    with pytest.raises(ValueError, match="does not say which version is the oldest"):
        SCRIPT["minimum_constraints"](project | {"optional-dependencies": {}})
