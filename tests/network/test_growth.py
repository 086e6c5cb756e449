"""Growing a network layer by layer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deeptobit.layer import null_layer
from deeptobit.network import NetworkProblem, latents
from deeptobit.network.grow import (
    FitToOptimum,
    GrownLayer,
    calibrate,
    grow,
    standard_start,
    train,
)
from deeptobit.network.joint import JointProblem
from deeptobit.network.layer import start_above
from deeptobit.penalties import Group
from tests.network.problems import bent, build, joint

DATA: dict[str, dict[str, Any]] = {
    "dense": {},
    "sparse": {"sparse": True},
    "no intercept": {"fit_intercept": False},
    "row limits": {"limits": True},
    "feature sparsity": {"penalty": Group(0.4)},
    "sigma": {"sigma": np.array([0.5, 0.7, 0.9])},
}
EVERY_KIND = pytest.mark.parametrize("options", DATA.values(), ids=DATA.keys())


def grown(problem: NetworkProblem, tol: float = 1e-6) -> tuple[GrownLayer, ...]:
    return train(problem, joint_tuning=False, tol=tol).grown


@EVERY_KIND
def test_a_layer_starts_with_the_prediction_of_the_layer_below(options: dict[str, Any]) -> None:
    problem = build(alphas=[0.05, 0.05], **options)
    (first,) = grown(replace(problem, alphas=(0.05,)))
    expected = joint(problem).latent([first.layer])
    below = np.clip(expected, *problem.bounds)
    null, centre = null_layer(problem.layer_problem(1, below)), problem.centre(below)
    start = standard_start(null, start_above([first.layer]), centre)
    for rows, block in null.problem.features.blocks():
        latent = block @ start.Z @ start.U.T + start.intercept
        np.testing.assert_allclose(latent, expected[rows], rtol=1e-6, atol=1e-6)


@EVERY_KIND
def test_layers_fit_better_and_better_at_one_alpha(options: dict[str, Any]) -> None:
    problem = build(alphas=[0.02] * 3, **options)
    steps = grown(problem)
    first, second, third = (step.history["objective"] for step in steps)
    assert second < first  # its start has the objective of the first layer
    assert third < second + 0.01 * (first - second) + 0.003  # its start has not
    layers = [step.layer for step in steps]
    nlls = [joint(problem).nll(layers[: depth + 1]) for depth in range(3)]
    assert nlls == sorted(nlls, reverse=True)


def test_a_grown_layer_scores_its_inputs_as_the_solver_said() -> None:
    problem = bent()
    steps = grown(problem)
    layers = [step.layer for step in steps]
    for depth, step in enumerate(steps):
        value = joint(problem).nll(layers[: depth + 1])
        size = (layers[depth].U ** 2).sum() + (layers[depth].V ** 2).sum()
        objective = value + 0.5 * problem.alphas[depth] * float(size)
        assert objective == pytest.approx(step.history["objective"], rel=1e-8)
        assert step.history["converged"]


def test_depth_pays_where_the_truth_is_bent() -> None:
    problem = bent(600)
    layers = [step.layer for step in grown(problem)]
    one, two = joint(problem).nll(layers[:1]), joint(problem).nll(layers)
    assert two < one - 0.05


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_naive_layers_see_the_outputs_below_alone(sparse: bool) -> None:
    problem = build(skip_connection=False, sparse=sparse, alphas=[0.01, 0.01])
    layers = [step.layer for step in grown(problem)]
    assert [layer.V.shape for layer in layers] == [(2, 4), (2, 3)]
    *_, latent = latents(layers, build().design.matrix, *problem.bounds)
    assert latent.std() > 0.1
    np.testing.assert_allclose(joint(problem).latent(layers), latent, rtol=1e-7, atol=1e-7)


def test_sparse_features_grow_the_network_of_dense_ones() -> None:
    dense, sparse = (
        [step.layer for step in grown(build(sparse=sparse, alphas=[0.02] * 2), tol=1e-8)]
        for sparse in (False, True)
    )
    for one, two in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(two.coef, one.coef, atol=1e-5)
        np.testing.assert_allclose(two.intercept, one.intercept, atol=1e-5)
        np.testing.assert_allclose(two.sigma, one.sigma, atol=1e-5)


def test_calibration_takes_each_layers_own_residuals() -> None:
    problem = bent()
    problem = replace(problem, calibrate=True)
    layers = [step.layer for step in grown(problem)]
    for depth, layer in enumerate(layers):
        latent = JointProblem(problem, problem.targets).latent(layers[: depth + 1])
        expected = calibrate(problem.targets, problem.design.weight, latent, problem.scaling)
        np.testing.assert_allclose(layer.sigma, expected, rtol=1e-8)


def test_components_without_features_are_empty() -> None:
    problem = build(rank=3, alphas=[0.01, 0.01])
    design = problem.design
    one = replace(
        design,
        matrix=design.matrix[:, :1],
        mean=design.mean[:1],
        scale=design.scale[:1],
        vanishing=design.vanishing[:1],
    )
    first, second = (step.layer for step in grown(replace(problem, design=one)))
    assert first.U.shape == second.U.shape == (3, 3)
    assert np.linalg.matrix_rank(first.coef) == 1
    assert second.V.shape == (3, 4)
    assert np.isfinite(second.coef).all()


def test_watching_sees_every_step_of_every_layer() -> None:
    seen: list[str] = []
    problem = build(alphas=[0.02] * 2)
    fit_layer = FitToOptimum(problem, 1e-4, 50, seen.append)
    steps = grow(fit_layer, 2, *problem.bounds)
    assert len(seen) == sum(step.n_iter for step in steps)
    assert seen[0].startswith("layer 1 of 2, 1 Newton steps, gradient ")
    assert seen[0].endswith(" (1e-04 wanted)")


def test_an_interrupted_growth_goes_on_where_it_stopped() -> None:
    problem = build(alphas=[0.02] * 3)
    fit_layer = FitToOptimum(problem, 1e-6, 100)
    kept: list[tuple[GrownLayer, ...]] = []
    whole = grow(fit_layer, 3, *problem.bounds, keep=kept.append)
    assert [len(layers) for layers in kept] == [1, 2, 3]
    again = grow(fit_layer, 3, *problem.bounds, grown=kept[0])
    assert again[0] is whole[0]
    for one, two in zip(again, whole, strict=True):
        np.testing.assert_array_equal(one.layer.coef, two.layer.coef)
