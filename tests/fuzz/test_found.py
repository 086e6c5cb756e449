"""Inputs that were neither read nor refused once, and sound files with small changes."""

from pathlib import Path
from random import Random

import pytest

from fuzz import checkpoints, models, studies, tables
from fuzz.target import Target

READERS = (models.TARGET, checkpoints.TARGET, studies.TARGET, *tables.TARGETS)
TARGETS = {target.name: target for target in READERS}
FOUND = sorted(path for path in (Path(__file__).parent / "found").glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_is_read_or_refused(path: Path) -> None:
    TARGETS[path.parent.name].accepts(path.read_bytes())


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_sound_files_are_read_and_changed_ones_are_read_or_refused(target: Target) -> None:
    random = Random(0)
    seeds = target.seeds()
    assert all(target.accepts(content) for content in seeds.values())
    contents = list(seeds.values())
    accepted, n_changed = 0, 3 if target.name in ("sav", "dta") else 50  # a process for each file
    for _ in range(n_changed):
        content = random.choice(contents)
        for _ in range(random.randrange(1, 4)):
            content = target.mutate(content, random, lambda part: _flip(part, random))
        accepted += target.accepts(content)
    assert accepted < n_changed


def _flip(content: bytes, random: Random) -> bytes:
    """The content with one byte replaced."""
    if not content:
        return b"\0"
    place = random.randrange(len(content))
    return content[:place] + bytes([random.randrange(256)]) + content[place + 1 :]
