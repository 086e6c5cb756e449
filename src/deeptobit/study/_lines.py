"""On which line of a TOML text a key stands; tomllib does not say."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deeptobit.study._errors import StudyError

_BEFORE_EQUALS = re.compile(r"""^\s*+((?:"[^"]*"|'[^']*'|[^"'=#\[\]])++)=""")
_DEEPEST = 3  # section, name and key: nothing that errors point to lies deeper


@dataclass(frozen=True)
class Source:
    """The text of a study file, which errors point into."""

    path: Path
    text: str

    def error(self, key: tuple[str, ...], message: str) -> StudyError:
        """One sentence that begins with the file and the line of a key."""
        line = find_line(self.text, key)
        where = f"{self.path.name}, line {line}" if line else self.path.name
        return StudyError(f"{where}: {message}")


def find_line(text: str, key: tuple[str, ...]) -> int | None:
    r"""Find the line of a key, or of the closest table around it; counted from 1.

    Examples
    --------
    >>> find_line('[data]\nfile = "a.csv"\n\n[targets.MMSE]\nlower = 0\n',
    ...           ("targets", "MMSE", "lower"))
    5
    """
    lines: dict[tuple[str, ...], int] = {}
    for found, line in _keys(text):
        for depth in range(1, min(len(found), _DEEPEST) + 1):
            lines.setdefault(found[:depth], line)
    for depth in range(len(key), 0, -1):
        if key[:depth] in lines:
            return lines[key[:depth]]
    return None


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("["):
            header = _path(line)
            if header:
                table = header
                yield table, number
        elif key := _BEFORE_EQUALS.match(line):
            path = _path(f"{key[1]} = 0")
            if path:
                yield table + path, number


def _path(line: str) -> tuple[str, ...]:
    """The dotted key that a line of TOML opens; empty if it opens none."""
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: tuple[str, ...] = ()
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(inner.items()))
        path += (name,)
    return path
