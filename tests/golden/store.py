"""Store the present numbers: ``python -m tests.golden.store [name …]``.

Run it after a change that is meant to change numbers, read what it prints, and say in the changelog
that they change. What is the same up to the tolerance is left as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.golden.cases import CASES, Numbers
from tests.golden.compare import differences

FOLDER = Path(__file__).parent / "numbers"


def read(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """The stored numbers of a case; none, if there are none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store(
    names: Iterable[str],
    cases: Mapping[str, Callable[[], Numbers]] = CASES,
    folder: Path = FOLDER,
) -> list[str]:
    """Rewrite what has changed; a line for every case."""
    folder.mkdir(exist_ok=True)
    lines = []
    for name in names:
        found = cases[name]()
        changes = differences(read(name, folder), found)
        if changes:
            text = "".join(f'  "{key}": {json.dumps(found[key])},\n' for key in found)
            path = folder / f"{name}.json"
            path.write_text("{\n" + text.removesuffix(",\n") + "\n}\n", encoding="utf-8")
        lines.append(f"{name}: {'; '.join(changes) or 'unchanged'}")
    return lines


def main(names: list[str]) -> int:
    """Store all cases, or those that are named."""
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"unknown case(s) {unknown}; there are {list(CASES)}", file=sys.stderr)
        return 2
    print(*store(names or CASES), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
