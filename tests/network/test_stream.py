"""A network that learns all of its layers from a stream."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.network import NetworkLayer, NetworkStream
from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver
from tests.network.test_online import data

N_ROWS = 1700


def stream(batch_size: int = 1, *, skip_connection: bool = True) -> NetworkStream:
    return NetworkStream(
        OnlineSettings(rank=2, batch_size=batch_size),
        np.zeros(4),
        np.full(4, np.inf),
        n_features=5,
        n_layers=3,
        skip_connection=skip_connection,
    )


def rows(n_samples: int = N_ROWS) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    X, targets = data(n_samples)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, n_samples)
    return X, targets.low.copy(), targets.high.copy(), weight


def learn(model: NetworkStream, arrays: Any, edges: Any) -> NetworkStream:
    for first, last in pairwise(edges):
        model.learn(*(array[first:last] for array in arrays))
    return model


def assert_same(some: tuple[NetworkLayer, ...], others: tuple[NetworkLayer, ...]) -> None:
    for one, two in zip(some, others, strict=True):
        np.testing.assert_array_equal(two.U, one.U)
        np.testing.assert_array_equal(two.V, one.V)
        np.testing.assert_array_equal(two.intercept, one.intercept)
        np.testing.assert_array_equal(two.sigma, one.sigma)


@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize(
    "edges", [[0, 100, 600, 1700], [0, 1, 511, 512, 513, 1333, 1700], [0, 700, 1024, 1700]], ids=str
)
def test_pieces_teach_what_the_whole_does(batch_size: int, edges: list[int]) -> None:
    whole = learn(stream(batch_size), rows(), [0, N_ROWS])
    pieces = learn(stream(batch_size), rows(), edges)
    assert pieces.n_seen == N_ROWS
    assert_same(whole.grown()[0], pieces.grown()[0])
    assert repr(whole.histories) == repr(pieces.histories)  # nan where there is no objective yet


def test_looking_does_not_teach() -> None:
    model, other = stream(), stream()
    learn(other, rows(), [0, 300, N_ROWS])
    learn(model, rows(), [0, 300])
    assert_same(model.grown()[0], model.grown()[0])
    model.learn(*(array[300:] for array in rows()))
    assert_same(model.grown()[0], other.grown()[0])


def test_a_pickled_stream_goes_on() -> None:
    model = learn(stream(), rows(), [0, 900])
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        one.learn(*(array[900:] for array in rows()))
    assert_same(model.grown()[0], copy.grown()[0])


def test_memory_does_not_grow_with_the_rows() -> None:
    arrays = rows(512)
    model, sizes = stream(batch_size=64), []
    for n_times in (8, 24):
        for _ in range(n_times):
            model.learn(*arrays)
        courses = sum(len(layer["course"]) for layer in model.histories)
        sizes.append(len(pickle.dumps(model)) - len(pickle.dumps(model.histories)))
        assert courses <= 3 * 250
    assert sizes[1] <= 1.1 * sizes[0]


def test_the_first_layer_learns_from_x_alone() -> None:
    arrays = rows(1024)
    model = learn(stream(), arrays, [0, 1024])
    solver = OnlineSolver(OnlineSettings(rank=2), 5, 4)
    solver.learn(*arrays)
    np.testing.assert_array_equal(model.grown()[0][0].coef, solver.result().U @ solver.result().V)


def test_a_layer_learns_from_the_censored_outputs_of_the_one_below() -> None:
    X, *others = rows(512)
    model = stream()
    model.learn(X, *others)
    first, second, _ = model.learned_layers
    solver = OnlineSolver(OnlineSettings(rank=2), 9, 4)
    V = np.hstack([np.zeros((2, 4)), first.V])  # zeros for the outputs below
    solver.start_from(OnlineResult(first.U, V, first.intercept, first.sigma, 0))
    solver.learn(np.hstack([np.maximum(first.latent(X), 0.0), X]), *others)
    np.testing.assert_allclose(second.coef, solver.result().U @ solver.result().V, rtol=1e-9)


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
def test_layers_see_what_they_should(skip_connection: bool) -> None:
    model = learn(stream(skip_connection=skip_connection), rows(600), [0, 600])
    above = 9 if skip_connection else 4
    assert [layer.V.shape for layer in model.grown()[0]] == [(2, 5), (2, above), (2, above)]


def test_sparse_rows_are_dense_rows() -> None:
    X, *others = rows(800)
    X = np.where(X > 0.0, X, 0.0)
    dense, sparse = stream(), stream()
    dense.learn(X, *others)
    sparse.learn(csr_matrix(X), *others)
    for one, two in zip(dense.grown()[0], sparse.grown()[0], strict=True):
        np.testing.assert_allclose(two.coef, one.coef, rtol=1e-6, atol=1e-9)


def test_inputs_are_neither_kept_nor_changed() -> None:
    arrays = rows(700)
    copies = [array.copy() for array in arrays]
    model, other = learn(stream(), arrays, [0, 700]), learn(stream(), copies, [0, 700])
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
        array[...] = 0.0  # the stream's own rows must not change with them
    assert_same(model.grown()[0], other.grown()[0])
