"""What learning from a stream promises: pieces are the whole, in constant memory."""

import gc
import pickle
import tracemalloc
from itertools import pairwise
from typing import Any

from deeptobit.checks._answers import ask, assert_same
from deeptobit.checks._problem import Problem, make_problem, seeded

_ROWS = 640
_CHUNK, _WARM, _CHUNKS = 200, 6, 40


def check_partial_fit_in_pieces(estimator: Any) -> None:
    """Calls of ``partial_fit`` on consecutive rows equal one call on all of them.

    Pieces are of any length, in multiples of ``batch_size`` where the estimator has one.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor
    >>> check_partial_fit_in_pieces(SubspaceTobitRegressor(rank=2))
    """
    problem, edges = _stream(estimator)
    whole = seeded(estimator).partial_fit(problem.X, problem.Y)
    pieces = seeded(estimator)
    for first, last in pairwise(edges):
        pieces.partial_fit(problem.X[first:last], problem.Y[first:last])
    assert_same(ask(pieces, problem.X), ask(whole, problem.X), "when it learns in pieces")


def check_pickled_stream_goes_on(estimator: Any) -> None:
    """A model that is pickled between two calls of ``partial_fit`` goes on as if it were not.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor
    >>> check_pickled_stream_goes_on(SubspaceTobitRegressor(rank=2))
    """
    problem, edges = _stream(estimator)
    straight, interrupted = seeded(estimator), seeded(estimator)
    for first, last in pairwise(edges):
        X, Y = problem.X[first:last], problem.Y[first:last]
        straight.partial_fit(X, Y)
        interrupted = pickle.loads(pickle.dumps(interrupted)).partial_fit(X, Y)
    found, expected = ask(interrupted, problem.X), ask(straight, problem.X)
    assert_same(found, expected, "when it is pickled in the middle of a stream")


def check_memory_is_bounded(estimator: Any) -> None:
    """8000 rows through ``partial_fit`` leave less than a quarter of their size in memory.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor
    >>> check_memory_is_bounded(SubspaceTobitRegressor(rank=2))
    """
    problem = make_problem(estimator, _CHUNK)
    model = seeded(estimator)
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        warm = _memory_after(model, problem, _WARM)
        growth = _memory_after(model, problem, _CHUNKS) - warm
    finally:
        if not was_tracing:
            tracemalloc.stop()
    passed = _CHUNKS * (problem.X.nbytes + problem.Y.nbytes)
    assert growth < 0.25 * passed, (
        f"memory grew by {growth} bytes while {passed} bytes passed through partial_fit"
    )


def _stream(estimator: Any) -> tuple[Problem, list[int]]:
    """Some hundred rows, and where they are cut."""
    batch = int(estimator.get_params().get("batch_size", 1))
    n_batches = max(20, _ROWS // batch)
    cuts = [0, 1, 3, 10, n_batches // 2, n_batches]
    return make_problem(estimator, n_batches * batch), [batch * cut for cut in cuts]


def _memory_after(model: Any, problem: Problem, n_chunks: int) -> int:
    for _ in range(n_chunks):
        model.partial_fit(problem.X.copy(), problem.Y.copy())
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
