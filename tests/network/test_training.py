"""From data to a network: what is grown, what is kept, what is tuned."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.network import JointTuning, NetworkProblem, TrainedNetwork, latents, train
from deeptobit.network.grow import calibrate, likelihood_sigma, tuning_gain
from deeptobit.targets import CensoredTargets
from tests.network.problems import bent, joint, pose


def trained(problem: NetworkProblem, joint_tuning: JointTuning = "auto") -> TrainedNetwork:
    return train(problem, joint_tuning=joint_tuning, tol=1e-4, max_iter=100)


@cache
def bent_network(joint_tuning: JointTuning) -> TrainedNetwork:
    return trained(bent(), joint_tuning)


def straight(n_layers: int = 2) -> NetworkProblem:
    """A cohort that one layer describes."""
    X, Y, _ = make_subspace(300, 5, 4, 2, latent_sd=3.0, sigma=1.0, random_state=0)
    return pose(X, CensoredTargets.from_bounds(Y, 0.0), np.ones(300), [0.02] * n_layers)


def with_outcomes(problem: NetworkProblem, Y: FloatArray, upper: Any = None) -> NetworkProblem:
    targets = CensoredTargets.from_bounds(Y, 0.0, upper)
    X, n_samples = problem.design.matrix, len(Y)
    return pose(X, targets, np.ones(n_samples), problem.alphas)


def last_scores(problem: NetworkProblem, network: TrainedNetwork) -> FloatArray:
    *_, latent = latents(network.layers, problem.design.matrix, *problem.bounds)
    return latent


def test_without_tuning_layers_that_pay_are_kept_as_they_grew() -> None:
    problem, network = bent(), bent_network(False)
    assert network.depth == 2
    assert not network.tuned
    assert network.tuning == ()
    assert [found.history["converged"] for found in network.grown] == [True, True]
    nlls = [joint(problem).nll(network.layers[:depth]) for depth in (1, 2)]
    assert network.nlls == pytest.approx(nlls)
    assert nlls[1] < nlls[0]


def test_layers_that_do_not_pay_are_undone() -> None:
    problem = straight(3)
    deep, shallow = trained(problem), trained(replace(problem, alphas=(0.02,)))
    assert (deep.depth, deep.tuned, len(deep.layers)) == (1, False, 3)
    np.testing.assert_allclose(last_scores(problem, deep), last_scores(problem, shallow), rtol=1e-9)
    np.testing.assert_array_equal(deep.layers[-1].sigma, shallow.layers[0].sigma)


def test_tuning_is_kept_where_the_truth_is_bent() -> None:
    problem = bent()
    grown, tuned = bent_network(False), bent_network("auto")
    assert tuned.tuned
    assert tuned.nlls == grown.nlls
    after = joint(problem).nll(tuned.layers)
    assert after < grown.nlls[-1] - 0.05
    gain = tuning_gain(300.0 * (grown.nlls[-1] - after), grown.layers, tuned.layers)
    assert gain > 1.0


def test_true_keeps_what_auto_does_not() -> None:
    problem = straight()
    auto, always = trained(problem), trained(problem, True)
    assert (auto.tuned, always.tuned) == (False, True)
    assert 1 < len(auto.tuning) <= len(always.tuning)
    np.testing.assert_array_equal(always.tuning[: len(auto.tuning)], auto.tuning)


@pytest.mark.parametrize("joint_tuning", ["auto", True, False])
def test_one_layer_has_nothing_to_tune(joint_tuning: JointTuning) -> None:
    network = trained(replace(bent(), alphas=(0.02,)), joint_tuning)
    assert (network.tuned, network.tuning, network.depth) == (False, (), 1)


@pytest.mark.parametrize("calibrated", [False, True], ids=["mle", "calibrate"])
def test_hidden_layers_have_the_scales_of_what_they_have_become(calibrated: bool) -> None:
    problem = replace(bent(), calibrate=calibrated)
    hidden, last = (trained(problem, True) if calibrated else bent_network("auto")).layers
    latent = joint(problem).latent([hidden])
    entries = problem.targets, problem.design.weight, latent, problem.scaling
    expected = calibrate(*entries) if calibrated else likelihood_sigma(*entries, problem.noise)
    np.testing.assert_allclose(hidden.sigma, expected, rtol=1e-9)
    if calibrated:
        above = joint(problem).latent([hidden, last])
        np.testing.assert_allclose(last.sigma, calibrate(*entries[:2], above, entries[3]))


def test_given_scales_are_those_of_every_layer() -> None:
    sigma = np.array([0.3, 0.4, 0.5, 0.6])
    for layer in trained(bent(sigma=sigma), True).layers:
        np.testing.assert_allclose(layer.sigma, sigma)


@pytest.mark.parametrize("calibrated", [False, True], ids=["mle", "calibrate"])
def test_tuning_leaves_a_task_that_says_nothing_alone(calibrated: bool) -> None:
    problem = bent(150)
    Y = problem.targets.values.copy()
    Y[:, 1] = 0.0
    problem = replace(with_outcomes(problem, Y), calibrate=calibrated)
    grown, tuned = trained(problem, False), trained(problem, True)
    assert tuned.kinds is not None
    assert tuned.kinds.one_sided.tolist() == [False, True, False, False]
    for before, after in zip(grown.layers, tuned.layers, strict=True):
        assert after.sigma[1] == pytest.approx(before.sigma[1], rel=1e-9)
    assert (joint(problem).latent(tuned.layers)[:, 1] < problem.bounds[0][1]).all()


def test_tuning_holds_the_scale_of_a_task_that_has_only_bounds() -> None:
    problem = bent(150)
    Y = problem.targets.values.copy()
    Y[:, 1] = Y[:, 1] > np.median(Y[:, 1])  # 0 or 1, and nothing between
    upper = [np.inf, 1.0, np.inf, np.inf]
    problem = with_outcomes(problem, Y, upper)
    grown, tuned = trained(problem, False), trained(problem, True)
    assert tuned.kinds is not None
    assert tuned.kinds.two_sided.tolist() == [False, True, False, False]
    assert tuned.layers[-1].sigma[1] == pytest.approx(grown.layers[-1].sigma[1], rel=1e-9)
    assert tuned.layers[-1].sigma[0] != grown.layers[-1].sigma[0]


def test_progress_names_every_stage() -> None:
    texts: list[str] = []
    train(bent(150), joint_tuning=True, tol=1e-4, max_iter=100, progress=texts.append)
    stages = list(dict.fromkeys(text.split(",")[0] for text in texts))
    assert stages == ["layer 1 of 2", "layer 2 of 2", "tuning all layers"]
    assert " of at most 250 steps, objective " in texts[-1]


def test_layers_from_elsewhere_are_finished_alike() -> None:
    problem, network = bent(), bent_network(False)
    other = train(problem, network.layers, joint_tuning=False)
    assert other.depth == network.depth
    assert other.nlls == pytest.approx(network.nlls)
    assert other.grown == ()
