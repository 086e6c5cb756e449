"""Nothing that is read can run anything."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import deeptobit
from tests.pages import read_blocks

ROOT = Path(__file__).parents[2]
PACKAGE = Path(deeptobit.__file__).parent
# The checks copy estimators by pickle, in memory and of their own making, as processes do.
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "checks"]
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "yaml"}
UNSAFE_CALLS = {"joblib.load", "np.load", "numpy.load", "pd.read_pickle", "torch.load"}
UNSAFE_CALLS |= {"eval", "exec", "compile", "__import__"}
UNSAFE_TEXT = re.compile(r"\b(pickle|joblib)\.loads?\(|allow_pickle=True|read_pickle")
# The one page that tells how to use these anyway, under its own warning.
PICKLING_PAGE = "use-elsewhere.md"


def test_the_package_neither_pickles_nor_evaluates() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not UNSAFE_MODULES & imported(tree), path
        assert not UNSAFE_CALLS & called(tree), path


def test_documents_load_nothing_by_pickle() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 10
    for page in pages:
        for block in read_blocks(page):
            unsafe = UNSAFE_TEXT.search(block.text)
            assert page.name == PICKLING_PAGE or not unsafe, f"{page.name}, line {block.line}"


def imported(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def called(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
