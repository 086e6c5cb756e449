"""What a release is made of: the wheel, its bill of materials, and one version everywhere."""

from pathlib import Path

import deeptobit
from scripts.sbom import bill, pinned
from scripts.wheel import LARGEST, build

ROOT = Path(__file__).parents[2]


def test_the_wheel_is_the_same_twice_and_small(tmp_path: Path) -> None:
    wheels = [build(tmp_path / name) for name in ("first", "second")]
    first, second = (wheel.read_bytes() for wheel in wheels)
    assert first == second
    assert len(first) <= LARGEST


def test_the_bill_names_what_the_application_needs() -> None:
    versions = pinned((ROOT / "constraints.txt").read_text()) | {"deeptobit": "1.0"}
    document = bill("deeptobit", frozenset({"app"}), versions)
    names = {part["name"] for part in document["components"]}
    assert {"numpy", "numba", "llvmlite", "pyarrow", "typer"} <= names
    assert not names & {"deeptobit", "torch", "pytest", "dask"}
    references = {part["bom-ref"] for part in document["components"]}
    used = {each for entry in document["dependencies"] for each in entry["dependsOn"]}
    assert used == references


def test_changelog_and_citation_have_the_version() -> None:
    version = deeptobit.__version__
    assert f"\n## {version} - " in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
