"""The package as a whole: its public surface, its laziness, its documents."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import deeptobit

ROOT = Path(__file__).parents[1]
SURFACE = [
    "AutoTobitRegressor",
    "CensoredTargets",
    "MixedTobitRegressor",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "datasets",
    "load",
    "metrics",
]
METRICS = [
    "anmse",
    "bound_calibration",
    "censored_log_score",
    "centred_anmse",
    "crps",
    "mutual_coherence",
    "pit",
    "principal_angles",
    "subspace_difference",
]


def test_the_public_surface_is_what_the_contract_says() -> None:
    assert sorted(deeptobit.__all__) == SURFACE
    assert {*SURFACE, "__version__"} == set(dir(deeptobit))
    for name in SURFACE:
        assert getattr(deeptobit, name) is not None
    assert set(METRICS) <= set(dir(deeptobit.metrics))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'deeptobit' has no attribute 'TobitRegresor'"):
        _ = deeptobit.TobitRegresor


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, deeptobit; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "sklearn", "pandas", "numba"} & set(run.stdout.split())


def test_the_model_loads_without_numba_and_matplotlib() -> None:
    code = "import sys, deeptobit; deeptobit.TobitRegressor; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "matplotlib", "typer"} & set(run.stdout.split())


def test_everything_public_has_a_doctest() -> None:
    for room in ("likelihood", "metrics", "datasets", "inspection", "penalties"):
        module = import_module(f"deeptobit.{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not name[0].isupper() and not name.startswith("reference"):
                assert ">>>" in (thing.__doc__ or ""), f"{room}.{name}"


def test_every_extra_of_the_readme_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    known = {"app", "brain", "scale", "onnx", "datasets", "formula", "deep", "all"}
    assert known | {"dev", "docs", "fuzz"} == extras
    named = re.findall(r"\[(\w+)\]'", (ROOT / "README.md").read_text())
    assert named
    assert set(named) <= extras


def test_the_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {deeptobit.__version__}\n" in citation
    assert (ROOT / "CHANGELOG.md").read_text().startswith("# Changelog")


def test_what_the_two_commands_install_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(name for names in extras.values() for name in names)]
    for requirement in wanted:
        package = re.split(r"[\[<>= ]", requirement)[0].lower()
        assert package == "deeptobit" or package in pinned, requirement
