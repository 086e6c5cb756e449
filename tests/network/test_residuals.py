"""Outputs without what is linear in the features."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.network import latents
from deeptobit.network.online import ResidualOutputs
from tests.network.problems import bent, some_layers


@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_new_is_uncorrelated_with_the_sketch_and_within_itself(depth: int) -> None:
    problem = bent(alphas=[0.1] * 3)
    layers, X = some_layers(problem)[:depth], problem.design.matrix
    *_, latent = latents(layers, X, *problem.bounds)
    below = np.clip(latent, *problem.bounds)
    residuals = ResidualOutputs.of(layers, below, X, np.ones(len(X)))
    new = residuals.apply(below, X)
    scale = below.std()
    assert np.abs(new.mean(axis=0)).max() < 1e-10 * scale
    covariance = np.cov(np.hstack([new, X @ residuals.sketch.T]).T)[: new.shape[1]]
    np.fill_diagonal(covariance, 0.0)
    assert np.abs(covariance).max() < 1e-8 * scale**2
    assert 1 <= new.shape[1] <= 4


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_layer_on_what_is_new_is_one_on_the_outputs(sparse: bool) -> None:
    problem = bent()
    first, X = some_layers(problem)[0], problem.design.matrix
    below = np.clip(first.latent(X), *problem.bounds)
    features = csr_matrix(X) if sparse else X
    residuals = ResidualOutputs.of([first], below, features, np.ones(len(below)))
    new = residuals.apply(below, features)
    V = np.random.default_rng(0).normal(size=(2, new.shape[1] + 5))
    layer = some_layers(problem)[1]
    layer = type(layer)(layer.U, V, layer.intercept, layer.sigma)
    undone = residuals.on_outputs(layer)
    assert undone.V.shape == (2, 9)
    np.testing.assert_allclose(undone.latent(X, below), layer.latent(X, new), atol=1e-9)
    redone = residuals.on_residuals(undone)
    np.testing.assert_allclose(redone.V, layer.V, atol=1e-9)
    np.testing.assert_allclose(redone.intercept, layer.intercept, atol=1e-9)


def test_outputs_that_are_linear_in_x_add_nothing() -> None:
    problem = bent()
    first, X = some_layers(problem)[0], problem.design.matrix
    residuals = ResidualOutputs.of([first], np.zeros((len(X), 4)), X, np.ones(len(X)))
    assert residuals.apply(np.zeros((len(X), 4)), X).shape == (len(X), 0)
