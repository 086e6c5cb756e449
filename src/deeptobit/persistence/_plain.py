"""State as JSON: what JSON has no word for is written as an object with one ``$`` key.

``{"$array": k}`` is the k-th array, ``{"$float": "nan"}`` a number that is not finite, and
``{"$dict": {…}}`` a dict of the user's in which some key begins with ``$`` itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deeptobit.exceptions import ModelFileError
from deeptobit.persistence._arrays import AnyArray, ArraySpec

MOST_LEVELS = 100
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def flatten(state: Any) -> tuple[Any, list[AnyArray]]:
    """State as a JSON document and the arrays it refers to.

    Examples
    --------
    >>> flatten({"sigma": np.ones(2), "best": float("nan"), "names": ["a"]})
    ({'sigma': {'$array': 0}, 'best': {'$float': 'nan'}, 'names': ['a']}, [array([1., 1.])])
    """
    arrays: list[AnyArray] = []
    return _flatten(state, "state", arrays, 0), arrays


def _flatten(value: Any, where: str, arrays: list[AnyArray], level: int) -> Any:
    if level > MOST_LEVELS:
        raise TypeError(f"{where} is nested too deeply for a file ({MOST_LEVELS} levels)")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case np.ndarray():
            _check_array(value, where)
            arrays.append(value)
            return {"$array": len(arrays) - 1}
        case list():
            return [
                _flatten(item, f"{where}[{index}]", arrays, level + 1)
                for index, item in enumerate(value)
            ]
        case dict() if all(isinstance(key, str) for key in value):
            found = {
                key: _flatten(item, f"{where}[{key!r}]", arrays, level + 1)
                for key, item in value.items()
            }
            return {"$dict": found} if any(key.startswith("$") for key in found) else found
    raise TypeError(f"{where} is of type {type(value).__name__}, which a file cannot hold")


def _check_array(array: AnyArray, where: str) -> None:
    try:
        ArraySpec.of(array)
    except TypeError as error:
        raise TypeError(f"{where} is {error}, which a file cannot hold") from None
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{where} is a masked array, which a file cannot hold")


def restore(document: Any, arrays: Sequence[AnyArray]) -> Any:
    """State from a JSON document and its arrays, each of which is used exactly once.

    Examples
    --------
    >>> restore({"sigma": {"$array": 0}, "best": {"$float": "-inf"}}, [np.ones(2)])
    {'sigma': array([1., 1.]), 'best': -inf}
    """
    unused = dict(enumerate(arrays))
    state = _restore(document, unused, 0)
    if unused:
        raise ModelFileError("it holds arrays that belong to nothing")
    return state


def _restore(value: Any, unused: dict[int, AnyArray], level: int) -> Any:
    if level > MOST_LEVELS:
        raise ModelFileError("its content is nested too deeply")
    match value:
        case list():
            return [_restore(item, unused, level + 1) for item in value]
        case {"$array": int(index), **rest} if index in unused and not rest:
            return unused.pop(index)
        case {"$float": str(word), **rest} if word in _NOT_FINITE and not rest:
            return _NOT_FINITE[word]
        case {"$dict": dict(items), **rest} if not rest:
            return _restore_items(items, unused, level)
        case dict() if any(key.startswith("$") for key in value):
            raise ModelFileError(
                f"it holds something unknown ({', '.join(map(ascii, value))[:80]})"
            )
        case dict():
            return _restore_items(value, unused, level)
    return value


def _restore_items(
    items: Mapping[str, Any], unused: dict[int, AnyArray], level: int
) -> dict[str, Any]:
    return {key: _restore(item, unused, level + 1) for key, item in items.items()}
