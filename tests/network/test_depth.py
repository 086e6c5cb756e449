"""What depth costs, and networks that are deeper than they need to be."""

import numpy as np
import pytest

from deeptobit.network import latents
from deeptobit.network.grow import deepened, paying_depth, tuning_gain
from tests.network.problems import build, some_layers


@pytest.mark.parametrize(
    ("gains", "depth"),
    [
        ([], 1),
        ([0.051], 2),  # 1000 rows: worth 51 parameters, of which it has 50
        ([0.049], 1),
        ([0.2, 0.049], 2),
        ([0.02, 0.09], 3),  # two layers that pay together
        ([-0.5, 0.65], 3),
        ([-0.5, -0.5], 1),
    ],
)
def test_a_layer_must_gain_as_much_as_it_has_parameters(gains: list[float], depth: int) -> None:
    nlls = 3.0 - np.cumsum([0.0, *gains])
    assert paying_depth(nlls.tolist(), n_rows=1000.0, n_per_layer=50) == depth


def test_twice_the_rows_are_twice_the_evidence() -> None:
    assert paying_depth([3.0, 2.97], n_rows=1000.0, n_per_layer=50) == 1
    assert paying_depth([3.0, 2.97], n_rows=2000.0, n_per_layer=50) == 2


@pytest.mark.parametrize("n_layers", [3, 4, 6])
def test_a_deepened_network_computes_the_same_function(n_layers: int) -> None:
    problem = build()
    layers, X = some_layers(problem), problem.design.matrix
    deeper = deepened(layers, n_layers)
    assert len(deeper) == n_layers
    *_, expected = latents(layers, X, *problem.bounds)
    stages = list(latents(deeper, X, *problem.bounds))
    np.testing.assert_allclose(stages[-1], expected, rtol=1e-10)
    for copy in stages[: n_layers - 2]:
        np.testing.assert_allclose(copy, stages[0], rtol=1e-10)


def test_one_layer_repeated_is_one_layer() -> None:
    problem = build()
    first = some_layers(problem)[:1]
    assert deepened(first, 1) == first
    *_, latent = latents(deepened(first, 3), problem.design.matrix, *problem.bounds)
    (expected,) = latents(first, problem.design.matrix, *problem.bounds)
    np.testing.assert_allclose(latent, expected, rtol=1e-12)


def test_tuning_pays_by_the_parameters_it_sets_free() -> None:
    layers = some_layers(build())
    free = sum(layer.n_parameters for layer in layers[:-1])
    assert tuning_gain(1000.0 * (3.0 - 2.9), layers, layers) == pytest.approx(100.0 / free)
    assert tuning_gain(1000.0 * (3.0 - 3.1), layers, layers) < 0.0
