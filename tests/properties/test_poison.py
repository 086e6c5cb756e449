from typing import Any

import numpy as np
from numba import njit

from tests.properties.poison import poisoned_memory


def test_kernels_compile_where_memory_is_poisoned() -> None:
    for _ in range(2):  # the second time with other functions in NumPy's place than the first
        count = _kernel()
        with poisoned_memory():
            assert count(3) == 6.0
            assert np.isnan(np.empty(3)).all()
    assert _kernel()(3) == 6.0


def _kernel() -> Any:
    @njit
    def ones(size: int) -> Any:
        return np.full_like(np.empty(size), 1.0)

    @njit
    def count(size: int) -> Any:
        return ones(size).sum() + np.empty_like(ones(size)).size

    return count
