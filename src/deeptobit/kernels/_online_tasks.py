"""Work that is decoupled by task, in pieces that threads may share."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from deeptobit.arrays import FloatArray

Result = TypeVar("Result")

PIECE = 512  # tasks; fixed, so that the number of threads changes nothing


@dataclass(frozen=True)
class TaskPieces:
    """Slices of tasks, and threads to share them, if any."""

    pieces: list[slice]
    pool: ThreadPoolExecutor | None

    def map(self, work: Callable[[slice], Result]) -> list[Result]:
        """Results of the pieces, in their order."""
        if self.pool is None:
            return [work(piece) for piece in self.pieces]
        # Each with the caller's context: how NumPy treats an overflow is part of it.
        waiting = [self.pool.submit(copy_context().run, work, piece) for piece in self.pieces]
        return [future.result() for future in waiting]


def by_pieces(n_tasks: int, n_threads: int, work: Callable[[slice], FloatArray]) -> FloatArray:
    """Results of all pieces side by side.

    Examples
    --------
    >>> by_pieces(3, 1, lambda piece: np.ones((2, piece.stop - piece.start))).shape
    (2, 3)
    """
    if n_tasks <= PIECE:
        return work(slice(0, n_tasks))
    with task_pieces(n_tasks, n_threads) as tasks:
        return np.hstack(tasks.map(work))


@contextmanager
def task_pieces(n_tasks: int, n_threads: int) -> Iterator[TaskPieces]:
    """The pieces of so many tasks, with threads while the context lasts.

    Examples
    --------
    >>> with task_pieces(1000, n_threads=2) as tasks:
    ...     tasks.map(lambda piece: (piece.start, piece.stop))
    [(0, 512), (512, 1000)]
    """
    pieces = [slice(at, min(at + PIECE, n_tasks)) for at in range(0, n_tasks, PIECE)]
    if n_threads == 1 or len(pieces) == 1:
        yield TaskPieces(pieces, None)
        return
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        yield TaskPieces(pieces, pool)
