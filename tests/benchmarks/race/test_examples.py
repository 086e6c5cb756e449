"""Examples in the docstrings of the race, which pytest does not collect there."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

import benchmarks.race

MODULES = [name for _, name, package in iter_modules(benchmarks.race.__path__) if not package]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "__main__"])
def test_examples(name: str) -> None:
    module = import_module(f"benchmarks.race.{name}")
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0
