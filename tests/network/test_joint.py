"""The joint objective: its value by hand, its gradient by differences, its sums by shards."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.layer import null_layer
from deeptobit.likelihood import Gaussian, Logistic, StudentT, evaluate
from deeptobit.network import NetworkLayer, NetworkProblem, latents
from deeptobit.penalties import Group, Ridge
from tests.layer.problems import N_SAMPLES
from tests.network.problems import build, joint, some_layers, take_rows

Layers = tuple[NetworkLayer, ...]
STEP = 1e-7  # short, for the joint objective has a kink wherever a hidden score is at its bound
VARIANTS: dict[str, dict[str, Any]] = {
    "skip": {},
    "naive": {"skip_connection": False},
    "row limits": {"limits": True},
    "logistic": {"noise": Logistic()},
    "student_t": {"noise": StudentT(), "skip_connection": False},
    "no intercept": {"fit_intercept": False},
    "sparse": {"sparse": True},
    "sparse naive": {"sparse": True, "skip_connection": False},
    "feature sparsity": {"penalty": Group(0.4)},
}
EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def layers_of(problem: NetworkProblem) -> Layers:
    """Random layers; where features may leave, two of each layer's have."""
    layers = some_layers(problem)
    if problem.penalty == Ridge():
        return layers
    for layer in layers:
        layer.V[:, [0, 2]] = 0.0
    return layers


def moved(layers: Layers, depth: int, part: str, direction: FloatArray, step: float) -> Layers:
    """The network with one array of one layer moved; σ is moved by its logarithm."""
    array = getattr(layers[depth], part)
    new = array * np.exp(step * direction) if part == "sigma" else array + step * direction
    changed = list(layers)
    changed[depth] = replace(layers[depth], **{part: new})
    return tuple(changed)


def slope(
    value: Callable[[Layers], float], layers: Layers, depth: int, part: str, direction: FloatArray
) -> float:
    """Central difference of the value along a straight line."""
    ahead, behind = (value(moved(layers, depth, part, direction, step)) for step in (STEP, -STEP))
    return (ahead - behind) / (2.0 * STEP)


@EVERY_VARIANT
def test_the_gradient_is_the_slope_by_every_array_of_every_layer(variant: dict[str, Any]) -> None:
    problem = joint(build(**variant))
    layers, rng = layers_of(problem.network), np.random.default_rng(5)
    _, gradients, by_log_sigma = problem.evaluate(layers)

    def value(at: Layers) -> float:
        return problem.evaluate(at)[0]

    for depth, gradient in enumerate(gradients):
        for part, by_part in gradient._asdict().items():
            if part == "intercept" and not problem.network.fit_intercept:
                np.testing.assert_array_equal(by_part, 0.0)
                continue
            direction = rng.normal(size=by_part.shape)
            direction *= getattr(layers[depth], part) != 0.0  # what has left stays out
            expected = slope(value, layers, depth, part, direction)
            found = float((by_part * direction).sum())
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6), (depth, part)
    direction = rng.normal(size=by_log_sigma.shape)
    expected = slope(value, layers, len(layers) - 1, "sigma", direction)
    assert by_log_sigma @ direction == pytest.approx(expected, rel=1e-6, abs=1e-6)


@EVERY_VARIANT
def test_the_objective_is_that_of_the_network_written_out(variant: dict[str, Any]) -> None:
    network = build(**variant)
    problem, layers = joint(network), layers_of(network)
    design, scaling, targets = network.design, network.scaling, network.targets
    X = design.matrix
    if design.is_sparse:
        X = (X.toarray() - design.mean) / design.scale
    *_, latent = latents(layers, X, *network.bounds)
    ends = scaling.apply(targets.low), scaling.apply(targets.high)
    nll = design.weight @ evaluate(network.noise, *ends, latent, layers[-1].sigma).nll.sum(axis=1)
    penalty = 0.0
    for depth, layer in enumerate(layers):
        n_inputs, s = layer.V.shape[1], getattr(network.penalty, "sparsity", 0.0)
        share = s * np.sqrt(n_inputs) / (1.0 - s + s * np.sqrt(n_inputs))
        group = np.linalg.norm(layer.V, axis=0).sum() ** 2 / n_inputs
        size = (layer.U**2).sum() + (1.0 - share) * (layer.V**2).sum() + share * group
        penalty += 0.5 * network.alphas[depth] * size
    assert problem.nll(layers) == pytest.approx(nll, rel=1e-10)
    assert problem.evaluate(layers)[0] - problem.nll(layers) == pytest.approx(penalty, rel=1e-10)
    assert problem.evaluate(layers)[0] == pytest.approx(nll + penalty, rel=1e-10)
    np.testing.assert_allclose(problem.latent(layers), latent, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sparsity", [0.0, 0.4])
def test_with_one_layer_it_is_the_objective_of_that_layer(sparsity: float) -> None:
    network = build(alphas=[0.3], penalty=Group(sparsity))
    single = null_layer(network.layer_problem(0, None)).problem
    (layer,) = some_layers(network)
    one = replace(layer, sigma=np.ones(3))
    point = single.unpack(np.zeros((single.pack(null_layer(single).layer).size, 1)))
    point = point._replace(U=one.U, Z=single.features.coordinates(one.V.T), intercept=one.intercept)
    (value,) = single.evaluate(single.pack(point)).value
    assert joint(network).evaluate([one])[0] == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_shards", [2, 5])
def test_shards_of_the_rows_add_up_to_the_whole(sparse: bool, n_shards: int) -> None:
    network = build(sparse=sparse)
    layers = some_layers(network)
    value, gradients, by_log_sigma = joint(network).evaluate(layers)
    order = np.random.default_rng(0).permutation(N_SAMPLES)
    cuts = np.sort(np.random.default_rng(1).choice(N_SAMPLES, n_shards - 1, replace=False))
    parts = [
        joint(take_rows(network, rows, 1.0 / n_shards)).evaluate(layers)
        for rows in np.split(order, cuts)
    ]
    assert sum(part[0] for part in parts) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(sum(part[2] for part in parts), by_log_sigma, rtol=1e-10)
    for depth, whole in enumerate(gradients):
        for k, array in enumerate(whole):
            total = np.sum([part[1][depth][k] for part in parts], axis=0)
            np.testing.assert_allclose(total, array, rtol=1e-9, atol=1e-12)


def test_nothing_flows_back_through_a_score_beyond_its_bound() -> None:
    network = build(alphas=[0.0, 0.0])
    below, above = some_layers(network)
    below = replace(below, intercept=np.array([-1e3, 1e3, -1e3]))  # all beyond a bound
    _, (gradient, _), _ = joint(network).evaluate([below, above])
    for array in gradient:
        np.testing.assert_array_equal(array, 0.0)


def test_a_task_that_was_set_aside_teaches_nothing() -> None:
    network = build(alphas=[0.0])
    targets = network.targets
    aside = np.array([0.0, np.nan, 0.0])
    problem = replace(
        joint(network), targets=replace(targets, low=targets.low + aside, high=targets.high + aside)
    )
    _, (gradient,), by_log_sigma = problem.evaluate(some_layers(network))
    np.testing.assert_array_equal(gradient.U[1], 0.0)
    assert (gradient.intercept[1], by_log_sigma[1]) == (0.0, 0.0)
    assert gradient.intercept[[0, 2]].all()


def test_evaluating_changes_neither_layers_nor_data() -> None:
    network = build(noise=Gaussian())
    layers = some_layers(network)
    copies = [array.copy() for layer in layers for array in (layer.U, layer.V, layer.intercept)]
    matrix = network.design.matrix.copy()
    problem = joint(network)
    first, second = problem.evaluate(layers), problem.evaluate(layers)
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1][0].V, second[1][0].V)
    arrays = [array for layer in layers for array in (layer.U, layer.V, layer.intercept)]
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(network.design.matrix, matrix)
