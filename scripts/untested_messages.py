"""List the messages that no test produced, from what coverage.py saw of a test run.

``coverage run -m pytest`` and ``coverage json`` leave ``coverage.json`` behind; a message
counts as produced if its statement was executed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.error_messages import PACKAGE, Message, read_messages

ROOT = Path(__file__).parents[1]


def find_untested(messages: Iterable[Message], executed: Mapping[Path, set[int]]) -> list[Message]:
    """The messages on lines that were not executed."""
    return [one for one in messages if one.line not in executed.get(one.path, set())]


def read_executed(report: Path) -> dict[Path, set[int]]:
    """Lines that were executed, by file; paths in a report are relative to the repository."""
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    return {ROOT / name: set(found["executed_lines"]) for name, found in files.items()}


def main() -> None:
    """Print one line for each, and fail if there is any."""
    untested = find_untested(read_messages(), read_executed(ROOT / "coverage.json"))
    for one in untested:
        print(f"{one.path.relative_to(PACKAGE)}, line {one.line}: {one.text}")
    sys.exit(1 if untested else 0)


if __name__ == "__main__":
    main()
