"""Print a bill of materials (CycloneDX 1.6, JSON): ``python -m scripts.sbom > sbom.json``.

What ``pip install 'deeptobit[app]'`` brings along, in the versions of ``constraints.txt``, with who
needs whom. The names of requirements come from the metadata of the installed packages.
"""

import json
import re
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def pinned(text: str) -> dict[str, str]:
    r"""Names and versions of the lines ``name==version``, the names as an index writes them.

    Examples
    --------
    >>> pinned("# comment\nNumPy==2.4.0\ntyping_extensions==4.15.0\n")
    {'numpy': '2.4.0', 'typing-extensions': '4.15.0'}
    """
    lines = [line.split("==") for line in text.splitlines() if not line.startswith("#")]
    return {normal(name): version for name, version in lines}


def normal(name: str) -> str:
    """The name of a package as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(package: str, extras: frozenset[str]) -> list[str]:
    """What a package needs here, with the requirements of some of its extras."""
    found = [Requirement(text) for text in requires(package) or []]
    environments = [{"extra": extra} for extra in (*sorted(extras), "")]
    return sorted(
        {
            normal(each.name)
            for each in found
            if each.marker is None or any(map(each.marker.evaluate, environments))
        }
    )


def bill(package: str, extras: frozenset[str], versions: dict[str, str]) -> dict[str, Any]:
    """The document: every package with its version, and what it depends on."""
    depends = {package: needed(package, extras)}
    waiting = list(depends[package])
    while waiting:
        name = waiting.pop()
        if name not in depends:
            depends[name] = needed(name, frozenset())
            waiting += depends[name]
    references = {name: f"pkg:pypi/{name}@{versions[name]}" for name in depends}
    parts = [
        {
            "type": "application" if name == package else "library",
            "bom-ref": references[name],
            "name": name,
            "version": versions[name],
            "purl": references[name],
        }
        for name in sorted(depends)
    ]
    own = [part for part in parts if part["name"] == package]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own[0]},
        "components": [part for part in parts if part["name"] != package],
        "dependencies": [
            {"ref": references[name], "dependsOn": [references[each] for each in depends[name]]}
            for name in sorted(depends)
        ],
    }


def main() -> None:
    """Print the bill of the version in the working tree."""
    source = (ROOT / "src" / "deeptobit" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.*)"', source, re.MULTILINE)
    versions = pinned((ROOT / "constraints.txt").read_text()) | {"deeptobit": version}
    print(json.dumps(bill("deeptobit", frozenset({"app"}), versions), indent=1))


if __name__ == "__main__":
    main()
