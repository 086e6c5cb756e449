"""Mean slopes of a network's scores by its features."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.network import latents
from deeptobit.network.layer import mean_slopes
from tests.network.problems import build, some_layers

STEP = 1e-6


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_slopes_are_differences_of_the_scores(skip_connection: bool, sparse: bool) -> None:
    problem = build(skip_connection=skip_connection)
    layers, X = some_layers(problem), problem.design.matrix

    def mean_score(features: FloatArray) -> FloatArray:
        *_, latent = latents(layers, features, *problem.bounds)
        return np.asarray(latent.mean(axis=0))

    shifts = STEP * np.eye(X.shape[1])
    differences = [(mean_score(X + s) - mean_score(X - s)) / (2.0 * STEP) for s in shifts]
    found = mean_slopes(layers, csr_matrix(X) if sparse else X, *problem.bounds)
    np.testing.assert_allclose(found, np.column_stack(differences), rtol=0.02, atol=0.01)


def test_one_layer_has_its_coefficients_for_slopes() -> None:
    problem = build()
    first = some_layers(problem)[0]
    found = mean_slopes([first], problem.design.matrix, *problem.bounds)
    np.testing.assert_allclose(found, first.coef, rtol=1e-12)
