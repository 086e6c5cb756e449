"""One source of randomness, however the caller names it."""

from typing import TypeAlias

import numpy as np
from sklearn.utils import check_random_state

RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_random_state(random_state: RandomStateLike) -> np.random.RandomState:
    """Return a ``RandomState`` for a seed, a generator, a state or ``None``.

    NumPy freezes the stream of ``RandomState`` but lets that of ``Generator`` change between
    releases (NEP 19). A data set that is named by its seed needs the frozen one, so a
    ``Generator`` lends its bits, which advances it, and not its algorithms.

    Examples
    --------
    >>> round(as_random_state(0).standard_normal(), 4)
    1.7641
    >>> generator = np.random.default_rng(0)
    >>> draws = [as_random_state(generator).standard_normal() for _ in range(2)]
    >>> draws[0] == draws[1]
    False
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    state: np.random.RandomState = check_random_state(random_state)
    return state
