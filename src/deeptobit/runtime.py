"""Threads of matrix products, jobs side by side, and the line that shows their progress."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from shutil import get_terminal_size
from threading import Lock
from time import perf_counter
from typing import Any

from joblib import Parallel
from threadpoolctl import ThreadpoolController


class _Limit:
    """The limit while somebody is inside of :func:`one_blas_thread`; it is one of all threads."""

    lock, n_inside, limits = Lock(), 0, ExitStack()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run matrix products on one thread.

    Threads do not speed up small products, and their number changes the last digits of a sum.
    Folds and splits run in parallel instead. Where several threads of a server predict, the first
    one sets the limit and the last one lifts it.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     np.eye(2) @ np.ones(2)
    array([1., 1.])
    """
    with _Limit.lock:
        if not _Limit.n_inside:
            _Limit.limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _Limit.n_inside += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.n_inside -= 1
            if not _Limit.n_inside:
                _Limit.limits.close()


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process, found once because the search takes milliseconds."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own)

    return ThreadpoolController()


def show_line(text: str, *, last: bool = False) -> None:
    """Write over the line of progress on stderr; the last text stays."""
    width = max(get_terminal_size().columns - 1, 20)
    shown = text if last else text[:width]
    print(f"\r{shown:<{width}}", end="\n" if last else "", file=sys.stderr, flush=True)


def time_left(started: float, done: float, total: float) -> str:
    """How long the rest will take at the pace since ``started``, a ``perf_counter``.

    Examples
    --------
    >>> time_left(perf_counter() - 6.0, 3, 4), time_left(perf_counter() - 60.0, 1, 4)
    (', about 2 s left', ', about 3 min left')
    """
    seconds = (perf_counter() - started) * (total - done) / max(done, 1e-9)
    if seconds < 1.0:
        return ""
    amount = f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60:.0f} min"
    return f", about {amount} left"


def run_jobs(jobs: Sequence[Any], n_jobs: int | None, what: str = "", **given: Any) -> list[Any]:
    """Results of ``joblib.delayed`` calls, in order; ``what`` names them on the progress line.

    Without a name nothing is shown. ``given`` goes to :class:`joblib.Parallel`.

    Examples
    --------
    >>> from joblib import delayed
    >>> run_jobs([delayed(abs)(-1), delayed(abs)(2)], n_jobs=None)
    [1, 2]
    """
    results, started = [], perf_counter()
    for result in Parallel(n_jobs=n_jobs, return_as="generator", **given)(jobs):
        results.append(result)
        if what:
            done, total = len(results), len(jobs)
            show_line(f"{what}, {done} of {total} fits{time_left(started, done, total)}")
    return results
