"""Every measured decision has its command in the text, and every command exists."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}


def there_are(package: str) -> set[str]:
    """Names that the command of a package knows."""
    text = (ROOT / package / "__main__.py").read_text()
    return set(re.findall(r'^    "(\w+)"(?:: \w+\.\w+)?,$', text, flags=re.MULTILINE))


def named(command: str, text: str) -> set[str]:
    """Words behind a command in a text."""
    found = re.findall(rf"`python -m {re.escape(command)}((?:\s[a-z_]+)+)`", text)
    return {name for names in found for name in names.split()}


def test_every_decision_is_explained() -> None:
    decisions = there_are("benchmarks/decisions")
    assert len(decisions) > 10
    assert decisions == named("benchmarks.decisions", TEXTS["decisions"])


def test_every_named_command_exists() -> None:
    for text in TEXTS.values():
        assert named("benchmarks.decisions", text) <= there_are("benchmarks/decisions")
        assert named("benchmarks", text) <= there_are("benchmarks")


def test_an_unknown_decision_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.decisions", "depht"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "unknown decision(s) ['depht']; there are ['alpha'," in run.stderr
