"""docs/paper.md names commands, tests and code that exist, and every section."""

import re
from pathlib import Path

from paper.recipes import CANDIDATES, CANDIDATES_IN_WORDS, PUBLISHED
from paper.registry import NAMES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


def test_every_section_has_a_line_and_every_command_exists() -> None:
    commands = re.findall(r"`python -m paper ([^`]*)`", PAGE)
    named = {word for command in commands for word in command.split()}
    options = {"--scale", "paper", "--path", "ADNI", "--protocol"}
    assert named - options == set(NAMES)


def test_tests_and_benchmarks_exist() -> None:
    tests = set(re.findall(r"`pytest ([^`]*)`", PAGE))
    assert len(tests) > 8
    assert [name for name in tests if not (ROOT / name).exists()] == []
    benchmarks = set(re.findall(r"`python -m benchmarks (\w+)`", PAGE))
    assert benchmarks
    assert [name for name in benchmarks if not (ROOT / "benchmarks" / f"{name}.py").exists()] == []


def test_every_line_has_a_verdict() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if "---" not in line]
    assert len(cells) > 40
    assert all(cell[-1].strip() for cell in cells)


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
