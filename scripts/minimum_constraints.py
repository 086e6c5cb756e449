"""Print the oldest versions that pyproject.toml promises to work with, as constraints for pip.

Run ``python scripts/minimum_constraints.py > minimum.txt`` from the root of the repository, then
``pip install --constraint minimum.txt --editable '.[app,scale,onnx,datasets,formula]'``. CI runs
the tests with what this prints.
"""

import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Tools promise nothing to users, and nilearn needs newer versions of what it shares with us.
LEFT_OUT = ("dev", "brain")


def minimum_constraints(project: dict[str, Any]) -> list[str]:
    """One line ``name==version`` for every requirement of the package and its extras.

    Examples
    --------
    >>> minimum_constraints({"name": "own", "dependencies": ["numpy>=2.0"],
    ...                      "optional-dependencies": {"app": ["own[brain]", "typer>=0.16"]}})
    ['numpy==2.0', 'typer==0.16']
    """
    texts: list[str] = [*project["dependencies"]]
    for name, requirements in project["optional-dependencies"].items():
        if name not in LEFT_OUT:
            texts += requirements
    parsed = [Requirement(text) for text in texts]
    pairs = {found.name: _lowest(found) for found in parsed if found.name != project["name"]}
    return [f"{name}=={version}" for name, version in sorted(pairs.items())]


def _lowest(requirement: Requirement) -> str:
    """The version after >=; without one there is nothing to test."""
    lowest = [bound.version for bound in requirement.specifier if bound.operator == ">="]
    if len(lowest) != 1:
        raise ValueError(f"{requirement} does not say which version is the oldest that works")
    return lowest[0]


if __name__ == "__main__":
    content = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    print(*minimum_constraints(content["project"]), sep="\n")
