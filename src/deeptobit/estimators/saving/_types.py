"""Whether a value from a file is of the type that a class declares."""

from __future__ import annotations

from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np


def fits(value: Any, hint: Any) -> bool:
    """Compare a value with a type hint, elements of lists, tuples and dicts included.

    Examples
    --------
    >>> fits([1, 2], list[int]), fits(None, int | None), fits("a", float), fits(3, float)
    (True, True, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if origin is np.ndarray:
        (scalar,) = get_args(inner[1])
        return type(value) is np.ndarray and value.dtype == scalar
    if origin is tuple:
        return isinstance(value, tuple) and _each_fits(value, inner)
    if origin is list:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    return isinstance(value, hint)


def _each_fits(items: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[1:] == (...,):
        return all(fits(item, hints[0]) for item in items)
    return len(items) == len(hints) and all(map(fits, items, hints))
