"""Examples in the docstrings of the peers, which pytest does not collect there."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

import benchmarks.race.peers

MODULES = [name for _, name, _ in iter_modules(benchmarks.race.peers.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = import_module(f"benchmarks.race.peers.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
