"""The state of a random number generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from deeptobit.estimators.saving._types import fits

_KEY_WORDS = 624  # of the Mersenne twister


def take_random_state(value: np.random.RandomState) -> dict[str, Any]:
    """Fields of a generator."""
    state: Any = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise TypeError("a RandomState can be saved only with its own generator, MT19937")
    return {
        "key": state["state"]["key"],
        "position": state["state"]["pos"],
        "has_gauss": state["has_gauss"],
        "gauss": state["gauss"],
    }


def make_random_state(found: dict[str, Any]) -> np.random.RandomState:
    """The generator of these fields; compiled code reads its key at any position it is given."""
    key, position = found["key"], found["position"]
    if not (isinstance(key, np.ndarray) and key.shape == (_KEY_WORDS,) and key.dtype == np.uint32):
        raise ValueError("its key is not that of a Mersenne twister")
    if not (fits(position, int) and 0 <= position <= _KEY_WORDS):
        raise ValueError("its position lies outside of its key")
    value = np.random.RandomState()
    value.set_state(("MT19937", key, position, found["has_gauss"], found["gauss"]))
    return value
