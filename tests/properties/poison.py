"""Memory that nobody filled, made visible: a number taken from it is NaN, always."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Within, ``np.empty`` and ``np.empty_like`` hold NaN instead of whatever was there before."""
    with (
        patch.object(np, "empty", _filled(np.empty)),
        patch.object(np, "empty_like", _filled(np.empty_like)),
    ):
        yield


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    def poisoned(*arguments: Any, **settings: Any) -> Any:
        array = make(*arguments, **settings)
        if np.issubdtype(array.dtype, np.inexact):
            array.fill(np.nan)
        return array

    return poisoned
