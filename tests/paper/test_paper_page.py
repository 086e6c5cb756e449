"""docs/paper.md names commands, tests and code that exist, and every section."""

import ast
import re
from importlib import import_module
from pathlib import Path

from paper.recipes import CANDIDATES, CANDIDATES_IN_WORDS, PUBLISHED
from paper.registry import NAMES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "paper.md").read_text(encoding="utf-8")
# What the paper says, its name here, the command, the verdict.
LINES = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE[PAGE.index("\n## ") :].splitlines()
    if line.startswith("| ") and not line.startswith("| the paper says")
]


def test_every_section_has_a_line_and_every_command_exists() -> None:
    commands = re.findall(r"`python -m paper ([^`]*)`", PAGE)
    named = {word for command in commands for word in command.split()}
    options = {"--scale", "paper", "--path", "ADNI", "--protocol", "--out", "DIR"}
    assert named - options == set(NAMES)


def test_tests_and_benchmarks_exist() -> None:
    tests = {name.partition("::")[::2] for name in re.findall(r"`pytest ([^`]*)`", PAGE)}
    assert len(tests) > 30
    for file, function in tests:
        assert (ROOT / file).exists(), file
        assert not function or function in _functions(ROOT / file), f"{file}::{function}"
    benchmarks = set(re.findall(r"`python -m benchmarks (\w+)`", PAGE))
    assert benchmarks
    assert [name for name in benchmarks if not (ROOT / "benchmarks" / f"{name}.py").exists()] == []


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_line_has_a_name_a_command_and_a_verdict() -> None:
    assert len(LINES) > 100
    for cells in LINES:
        assert len(cells) == 4, cells
        assert all(cells), cells
        said, _, command, _ = cells
        assert command == "–" or command.startswith("`p"), said


def test_names_are_linked() -> None:
    assert [said for said, here, *_ in LINES if here != "–" and "](" not in here] == []


def test_links_lead_to_what_they_name() -> None:
    links = re.findall(r"\[`([\w.]+)`\]\(([^)#]+)(?:#([\w.]+))?\)", PAGE)
    assert len(links) > 100
    for name, target, anchor in links:
        path = (DOCS / target).resolve()
        assert path.exists(), target
        last = name.split(".")[-1]
        if anchor:
            assert anchor.endswith(name), name
            _resolve(anchor)
        elif path.suffix == ".py":
            assert re.search(rf"^\s*(def |class )?{last}\b", path.read_text("utf-8"), re.M), name


def _resolve(name: str) -> None:
    """Import as much as is a module; the rest are its attributes."""
    module, _, rest = name.rpartition(".")
    try:
        thing = import_module(module)
    except ModuleNotFoundError:
        module, _, owner = module.rpartition(".")
        thing = getattr(import_module(module), owner)
    assert hasattr(thing, rest), name


def test_the_constants_it_states_are_those_that_run() -> None:
    tables = (ROOT / "docs" / "reproduction-tables.md").read_text(encoding="utf-8")
    words = " ".join(tables.split())
    published = PUBLISHED["table-synthetic"]
    assert f"λ = {published.alpha:g}, η = μ = {published.step:g}" in words
    assert published == PUBLISHED["table-layers"]
    alphas = sorted({constants.alpha for constants in CANDIDATES})
    steps = sorted({constants.step for constants in CANDIDATES})
    for told in (words, CANDIDATES_IN_WORDS):
        assert "λ of {:g}, {:g} and {:g}".format(*alphas) in told
        assert "η of {:g}, {:g} and {:g}".format(*steps) in told
    assert f"{len(CANDIDATES)} candidates" in words
