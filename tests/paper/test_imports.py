"""``paper/`` imports only what docs/api lists, and the package imports nothing of ``paper/``."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import deeptobit

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "paper").rglob("*.py"))
ENTRY = re.compile(r"^::: (deeptobit[\w.]*)$", re.MULTILINE)  # of mkdocstrings


def _imports(path: Path, package: str) -> Iterator[tuple[str, str | None]]:
    """Modules of a package that a file imports, and the names it takes from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                found: list[tuple[str, str | None]] = [(alias.name, None) for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                found = [(module, alias.name) for alias in node.names]
            case _:
                continue
        yield from ((module, name) for module, name in found if module.split(".")[0] == package)


def _resolve(entry: str) -> Any:
    try:
        return import_module(entry)
    except ModuleNotFoundError:
        module, name = entry.rsplit(".", 1)
        return getattr(import_module(module), name)


def _listed() -> set[tuple[str, str]]:
    """Modules and names of everything that docs/api shows, and of the package itself."""
    names = {("deeptobit", name) for name in deeptobit.__all__}
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for entry in ENTRY.findall(page.read_text(encoding="utf-8")):
            found = _resolve(entry)
            if isinstance(found, ModuleType):
                public = getattr(found, "__all__", [n for n in vars(found) if n[0] != "_"])
                names |= {(entry, name) for name in public}
            else:
                names.add(tuple(entry.rsplit(".", 1)))
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_what_users_can_import(path: Path) -> None:
    assert {*_imports(path, "deeptobit")} <= {*_listed()}


def test_the_package_does_not_know_the_paper() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not [*_imports(path, "paper")], path
