"""Memory that nobody filled, made visible: a number taken from it is NaN, always."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.event import Event, Listener, install_listener

_NUMPYS_OWN = {name: getattr(np, name) for name in ("empty", "empty_like")}


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Within, ``np.empty`` and ``np.empty_like`` hold NaN instead of whatever was there before."""
    poisoned = {name: _filled(make) for name, make in _NUMPYS_OWN.items()}
    with install_listener("numba:compiler_lock", _NumpysOwnWhileCompiling(poisoned)):
        _put_into_numpy(poisoned)
        try:
            yield
        finally:
            _put_into_numpy(_NUMPYS_OWN)


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    def poisoned(*arguments: Any, **settings: Any) -> Any:
        array = make(*arguments, **settings)
        if np.issubdtype(array.dtype, np.inexact):
            array.fill(np.nan)
        return array

    return poisoned


class _NumpysOwnWhileCompiling(Listener):
    """Numba looks up in NumPy what a kernel calls, and knows NumPy's own functions only."""

    def __init__(self, poisoned: dict[str, Any]) -> None:
        self._poisoned = poisoned
        self._compiling: list[Event] = []  # kernels call kernels, and threads compile at once

    def on_start(self, event: Event) -> None:
        self._compiling.append(event)
        _put_into_numpy(_NUMPYS_OWN)

    def on_end(self, event: Event) -> None:
        self._compiling.pop()
        if not self._compiling:
            _put_into_numpy(self._poisoned)


def _put_into_numpy(functions: dict[str, Any]) -> None:
    for name, function in functions.items():
        setattr(np, name, function)
