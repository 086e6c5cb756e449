from pathlib import Path

import pytest

from deeptobit.app.study import StudyError
from deeptobit.app.study.memory import available_memory, read_bytes, show_bytes

MEMINFO = "MemTotal: 8000 kB\nMemFree: 1000 kB\nMemAvailable: 4000 kB\n"


def _machine(root: Path, limits: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": MEMINFO, **limits}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 4_096_000),
        ({"sys/fs/cgroup/memory.max": "max\n"}, 4_096_000),
        ({"sys/fs/cgroup/memory.max": "1000000\n"}, 1_000_000),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n"}, 2_000_000),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4_096_000),
    ],
)
def test_what_is_available(limits: dict[str, str], expected: int, tmp_path: Path) -> None:
    assert available_memory(_machine(tmp_path, limits)) == expected


def test_a_machine_that_has_no_proc_tells_what_it_has(tmp_path: Path) -> None:
    installed = available_memory(tmp_path)
    assert installed is None or installed > 10**8
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("nothing of use")
    assert available_memory(tmp_path) is None


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


def test_what_is_shown_can_be_read() -> None:
    assert read_bytes(show_bytes(3.2e9)) == 3_200_000_000
