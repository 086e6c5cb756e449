"""The same network in the user's units and in standard ones."""

from dataclasses import astuple

import numpy as np
import pytest

from deeptobit.network import latents
from deeptobit.network.layer import LayerInputs, concatenate, to_standard, to_user
from tests.layer.problems import features
from tests.network.problems import build, some_layers


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
def test_a_network_computes_the_same_in_either_units(
    skip_connection: bool, fit_intercept: bool
) -> None:
    problem = build(skip_connection=skip_connection, fit_intercept=fit_intercept)
    layers, scaling = some_layers(problem), problem.scaling
    standard = latents(layers, problem.design.matrix, *problem.bounds)
    targets = problem.targets
    user = latents(
        to_user(layers, problem.design, scaling), features(), targets.lower, targets.upper
    )
    for latent, scaled in zip(user, standard, strict=True):
        expected = scaling.location + scaling.scale * scaled
        np.testing.assert_allclose(latent, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
def test_there_and_back_is_where_one_was(skip_connection: bool) -> None:
    problem = build(skip_connection=skip_connection)
    layers, units = some_layers(problem), (problem.design, problem.scaling)
    back = to_standard(to_user(layers, *units), *units)
    for layer, again in zip(layers, back, strict=True):
        for part, other in zip(astuple(layer), astuple(again), strict=True):
            np.testing.assert_allclose(other, part, rtol=1e-11, atol=1e-12)


def test_open_bounds_stay_open() -> None:
    problem = build()
    np.testing.assert_array_equal(problem.bounds[1] == np.inf, [False, False, True])
    back = problem.scaling.location + problem.scaling.scale * problem.bounds[0]
    np.testing.assert_allclose(back, -2.0)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_inputs_are_the_outputs_below_in_front_of_the_features(sparse: bool) -> None:
    problem = build(sparse=sparse)
    X, below = problem.design.matrix, np.random.default_rng(0).random((700, 3))
    dense = X.toarray() if sparse else X
    inputs = concatenate(below, X)
    np.testing.assert_array_equal(inputs.toarray() if sparse else inputs, np.hstack([below, dense]))
    layers = some_layers(problem)[:1]
    outputs = np.clip(layers[0].latent(X), *problem.bounds)
    naive = LayerInputs(*problem.bounds, layers, skip_connection=False)
    np.testing.assert_array_equal(naive(X), outputs)
    assert LayerInputs(*problem.bounds)(X) is X
