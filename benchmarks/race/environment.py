"""Where a race was run: machine, Python and the versions of everything that took part."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from deeptobit import __version__

Facts: TypeAlias = list[tuple[str, str]]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def describe(needs: Iterable[str]) -> Facts:
    """Machine and versions; packages that are not there are left out.

    Examples
    --------
    >>> [name for name, _ in describe(["no_such_package"])][:3]
    ['machine', 'python', 'deeptobit']
    """
    facts = [
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        ("python", platform.python_version()),
        ("deeptobit", __version__),
    ]
    for package in dict.fromkeys([*_PACKAGES, *needs]):
        try:
            facts.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return facts
