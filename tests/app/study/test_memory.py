from pathlib import Path

import pytest

from deeptobit.app.study import StudyError
from deeptobit.app.study.stream import available_memory, read_bytes


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"sys/fs/cgroup/memory.max": "1000000\n"}, 1_000_000),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n"}, 2_000_000),
        ({}, None),
        ({"sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)
def test_what_is_available(limits: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    """The limit of a container, or what the machine has; None stands for the latter."""
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = available_memory(tmp_path)
    assert found == expected if expected is not None else 10**8 < found < 10**14


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500MB", 5e8),
        ("1.5 gb", 1.5e9),
        ("2GiB", 2**31),
        ("64k", 64e3),
        ("123", 123),
        (" 1 T ", 1e12),
    ],
)
def test_amounts(text: str, expected: float) -> None:
    assert read_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "1,5GB", "GB"])
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(StudyError, match="an amount of memory is written 500MB or 4GB"):
        read_bytes(text)
