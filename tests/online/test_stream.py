import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.online.problems import make, same, solve, stream

WAYS = pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 16}, {"batch_size": 100}, {"alpha": 0.01}],
    ids=["rows", "batch", "large batch", "ridge"],
)


@WAYS
@pytest.mark.parametrize("edges", [[1, 2, 3], [500], [512, 600], list(range(0, 1300, 37))])
def test_pieces_equal_the_whole(settings: dict[str, Any], edges: list[int]) -> None:
    data = stream(1300)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 1300)
    solver = make(data, **settings)
    for first, last in zip([0, *edges], [*edges, 1300], strict=True):
        rows = slice(first, last)
        solver.learn(data.X[rows], data.low[rows], data.high[rows], weight[rows])
    assert same(solver.result(), solve(data, weight, **settings))


@WAYS
@pytest.mark.parametrize("stop", [100, 700])
def test_pickled_in_mid_stream(settings: dict[str, Any], stop: int) -> None:
    data = stream(1000)
    solver = make(data, **settings)
    solver.learn(data.X[:stop], data.low[:stop], data.high[:stop])
    solver = pickle.loads(pickle.dumps(solver))
    solver.learn(data.X[stop:], data.low[stop:], data.high[stop:])
    assert same(solver.result(), solve(data, **settings))


@WAYS
def test_reading_the_model_changes_nothing(settings: dict[str, Any]) -> None:
    data = stream(1000)
    solver = make(data, **settings)
    for first in range(0, 1000, 90):
        rows = slice(first, first + 90)
        solver.learn(data.X[rows], data.low[rows], data.high[rows])
        assert same(solver.result(), solver.result())
    assert same(solver.result(), solve(data, **settings))


def test_the_callers_arrays_are_copied() -> None:
    data = stream(700)
    solver = make(data)
    X, low, high = data.X.copy(), data.low.copy(), data.high.copy()
    for first in range(0, 700, 50):
        rows = slice(first, first + 50)
        X[:50], low[:50], high[:50] = data.X[rows], data.low[rows], data.high[rows]
        solver.learn(X[:50], low[:50], high[:50])
    assert same(solver.result(), solve(data))


def test_layout_and_type_of_the_input_do_not_matter() -> None:
    data = stream(900)
    expected = solve(data)
    fortran = data._replace(X=np.asfortranarray(data.X), low=np.asfortranarray(data.low))
    assert same(solve(fortran), expected)
    assert same(solve(data._replace(X=csr_array(data.X))), expected)
    single = data._replace(X=data.X.astype(np.float32))
    rounded = data._replace(X=data.X.astype(np.float32).astype(np.float64))
    assert same(solve(single), solve(rounded))


def test_memory_does_not_grow_with_the_rows() -> None:
    data = stream(1000)
    solver = make(data)
    sizes = []
    tracemalloc.start()
    for turn in range(30):
        solver.learn(data.X, data.low, data.high)
        if turn in (4, 29):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    of_rows = 25 * (data.X.nbytes + data.low.nbytes + data.high.nbytes)
    assert sizes[1] - sizes[0] < 0.05 * of_rows  # the history grows, to some 200 records
    assert solver.result().n_seen == 30_000
    assert 60 < len(solver.history["course"]) <= 201


def test_history_tells_of_progress() -> None:
    data = stream(4000)
    solver = make(data)
    solver.learn(data.X, data.low, data.high)
    first, last = solver.history["course"][8], solver.history["course"][-1]
    assert last.n_rows > 3500
    assert last.objective < first.objective
    assert last.subspace_change < first.subspace_change
    assert last.online_loss < solver.history["course"][0].online_loss
    tail = [record.objective for record in solver.history["course"][-10:]]
    assert abs(np.mean(tail) * 6 - last.online_loss) < 1.0  # per entry against per row
