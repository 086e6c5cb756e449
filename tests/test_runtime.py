"""Threads of matrix products."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from deeptobit.runtime import one_blas_thread


def threads() -> list[int]:
    """Of every BLAS library that is loaded."""
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_the_limit_is_lifted_by_the_last_of_several_threads() -> None:
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2, "blas"):
        before = threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before
