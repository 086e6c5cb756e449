"""Threads of matrix products."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which matrix products run on one thread.

    Threads do not speed up small products, and their number changes the last digits of a sum.
    Folds and splits run in parallel instead.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     np.eye(2) @ np.ones(2)
    array([1., 1.])
    """
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process, found once because the search takes milliseconds."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own)

    return ThreadpoolController()
