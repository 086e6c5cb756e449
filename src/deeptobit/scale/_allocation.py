"""Memory that one block frees and the next one needs."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of mallopt's parameters in malloc.h
_KEPT_BYTES = 64 * 2**20
_LARGEST_KEPT = 32 * 2**20  # the most that glibc takes


@cache
def keep_freed_memory() -> bool:
    """Let this process keep some freed memory, where the C library is glibc; whether it does.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_`` at 64 kB. The arrays of a block, which
    are larger, are then mapped, cleared and unmapped again and again, which is a third of a
    worker's time. Now at most 64 MB stay with the worker.

    Examples
    --------
    >>> keep_freed_memory() in (True, False)
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _LARGEST_KEPT))
    return all(mallopt(parameter, size) == 1 for parameter, size in settings)
