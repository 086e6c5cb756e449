"""One layer, and a row's way through several."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.network import NetworkLayer, latents

LOWER, UPPER = np.array([0.0, -np.inf]), np.array([1.0, 2.0])


def layer(n_inputs: int, seed: int) -> NetworkLayer:
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(2, 1)), rng.normal(size=(1, n_inputs))
    return NetworkLayer(U, V, rng.normal(size=2), np.ones(2))


def rows() -> FloatArray:
    return np.random.default_rng(0).normal(size=(50, 3))


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
def test_layers_pass_on_what_the_bounds_leave_of_their_scores(skip_connection: bool) -> None:
    X = rows()
    below, above = layer(3, 1), layer(5 if skip_connection else 2, 2)
    first, second = latents([below, above], X, LOWER, UPPER)
    np.testing.assert_allclose(first, X @ below.coef.T + below.intercept, rtol=1e-13)
    hidden = np.clip(first, LOWER, UPPER)
    assert (hidden != first).any(axis=0).all()
    inputs = np.hstack([hidden, X]) if skip_connection else hidden
    np.testing.assert_allclose(second, inputs @ above.coef.T + above.intercept, rtol=1e-12)


@pytest.mark.parametrize("form", [csr_matrix, csr_array])
def test_sparse_rows_are_dense_rows(form: type) -> None:
    X = np.where(rows() > 0.0, rows(), 0.0)
    layers = [layer(3, 1), layer(5, 2)]
    for sparse, dense in zip(
        latents(layers, form(X), LOWER, UPPER), latents(layers, X, LOWER, UPPER), strict=True
    ):
        assert isinstance(sparse, np.ndarray)
        np.testing.assert_allclose(sparse, dense, rtol=1e-13)


def test_a_layer_has_the_coordinates_that_the_scores_are_made_of() -> None:
    X, above = rows(), layer(5, 2)
    below = np.random.default_rng(1).normal(size=(50, 2))
    h = above.transform(X, below)
    assert h.shape == (50, 1)
    np.testing.assert_allclose(h @ above.U.T + above.intercept, above.latent(X, below))


def test_parameters_count_components_and_inputs_that_are_in_use() -> None:
    rng = np.random.default_rng(0)
    U, V, zero = rng.normal(size=(6, 3)), rng.normal(size=(3, 10)), np.zeros(6)
    assert NetworkLayer(U, V, zero, zero).n_parameters == 3 * (10 + 6 - 3)
    U[:, 1] *= 1e-7  # a component that the penalty has put out of use
    V[:, :4] = 0.0  # inputs that have left
    assert NetworkLayer(U, V, zero, zero).n_parameters == 2 * (6 + 6 - 2)
    assert NetworkLayer(0.0 * U, V, zero, zero).n_parameters == 0
