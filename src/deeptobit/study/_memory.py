"""How much memory there is, and amounts of it as people write them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from deeptobit.study._errors import StudyError

_PREFIXES = " kmgt"
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process can take without pushing others out; None where nobody tells.

    What Linux calls available, or else all there is; less if a container is allowed less.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` lie.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     (root / "proc").mkdir()
    ...     _ = (root / "proc" / "meminfo").write_text("MemAvailable:   2000 kB")
    ...     print(available_memory(root))
    2048000
    """
    found = [_free(root), *(_limit(root / name) for name in _LIMITS)]
    return min((amount for amount in found if amount is not None), default=None)


def read_bytes(text: str) -> int:
    """An amount of memory such as ``500MB``, ``1.5 GB`` or ``2GiB``, in bytes.

    Examples
    --------
    >>> read_bytes("1.5 GB"), read_bytes("2KiB")
    (1500000000, 2048)
    """
    amount = _AMOUNT.fullmatch(text.strip())
    if amount is None or float(amount[1]) == 0.0:
        raise StudyError(f"an amount of memory is written 500MB or 4GB; got {text!r}")
    step = 1024 if amount[3] else 1000
    return int(float(amount[1]) * step ** _PREFIXES.index(amount[2].lower() or " "))


def show_bytes(amount: float) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> show_bytes(950), show_bytes(24_600_000), show_bytes(3.2e9)
    ('1 kB', '25 MB', '3.2 GB')
    """
    if amount >= 1e9:
        return f"{amount / 1e9:,.1f} GB"
    return f"{amount / 1e6:,.0f} MB" if amount >= 1e6 else f"{amount / 1e3:,.0f} kB"


def _free(root: Path) -> int | None:
    try:
        stated = (root / "proc" / "meminfo").read_text()
    except OSError:
        return _installed()
    available = re.search(r"^MemAvailable:\s*([0-9]+) kB", stated, re.MULTILINE)
    return None if available is None else int(available[1]) * 1024


def _installed() -> int | None:
    """All memory of a machine that has no ``/proc``."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _limit(file: Path) -> int | None:
    """The limit of a control group; the word ``max``, or no file, is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
