"""Joint tuning: downhill, never below a floor, and what left stays out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from deeptobit.network import NetworkLayer, NetworkProblem
from deeptobit.network.grow import train
from deeptobit.network.joint import JointProblem, tune
from deeptobit.penalties import Group
from tests.network.problems import bent, joint, some_layers

SIGMAS = np.array([0.5, 0.7, 0.9, 0.3])
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "feature sparsity": {"penalty": Group(0.5)},
    "naive": {"skip_connection": False},
    "sigma": {"sigma": SIGMAS},
    "no intercept": {"fit_intercept": False},
}
EVERY_KIND = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())


class Tuned(NamedTuple):
    layers: tuple[NetworkLayer, ...]
    objectives: list[float]


def tuned(
    problem: JointProblem, layers: Sequence[NetworkLayer], floor: float = -9.0, **options: Any
) -> Tuned:
    free = options.pop("free_sigma", problem.network.free_sigma)
    defaults: dict[str, Any] = {
        "progress": lambda step, objective: None,
        "promising": lambda layers: True,
    }
    floors = np.full(len(free), floor)
    return Tuned(*tune(problem, layers, floors, free, **(defaults | options)))


def random_start(problem: NetworkProblem) -> tuple[NetworkLayer, ...]:
    layers = some_layers(problem)
    if problem.sigma is not None:
        layers = (*layers[:-1], replace(layers[-1], sigma=problem.sigma))
    return layers


@EVERY_KIND
def test_the_objective_falls_step_by_step_to_that_of_the_result(options: dict[str, Any]) -> None:
    problem = joint(bent(150, alphas=[0.1, 0.1], **options))
    layers = random_start(problem.network)
    found = tuned(problem, layers)
    assert found.objectives[0] == pytest.approx(problem.evaluate(layers)[0], rel=1e-12)
    assert (np.diff(found.objectives) <= 0.0).all()
    assert len(found.objectives) > 5
    end = problem.evaluate(found.layers)[0]  # balancing the factors can only help
    assert end <= found.objectives[-1] + 1e-9
    assert end < found.objectives[0] - 0.1


def test_tuning_a_grown_network_gains_where_the_truth_is_bent() -> None:
    network = bent(300)
    layers = train(network, joint_tuning=False, tol=1e-4).layers
    found = tuned(joint(network), layers)
    assert found.objectives[-1] < found.objectives[0] - 0.05


def test_it_ends_at_a_stationary_point_of_one_layer() -> None:
    network = bent(150, alphas=[0.3])
    (grown,) = train(network, joint_tuning=False, tol=1e-8).layers
    found = tuned(joint(network), [grown])
    np.testing.assert_allclose(found.layers[0].coef, grown.coef, atol=1e-4)
    assert found.objectives[-1] == pytest.approx(found.objectives[0], abs=1e-8)


def test_inputs_that_left_stay_out() -> None:
    network = bent(150, alphas=[0.1, 0.1], penalty=Group(0.5))
    layers = some_layers(network)
    for layer in layers:
        layer.V[:, [0, 3]] = 0.0
    found = tuned(joint(network), layers)
    for layer in found.layers:
        np.testing.assert_array_equal(layer.V[:, [0, 3]], 0.0)
        assert layer.V[:, [1, 2]].all()


def test_sigma_stays_above_its_floor_and_a_given_one_where_it_is() -> None:
    network = bent(150, alphas=[0.01, 0.01])
    layers = some_layers(network)
    free = tuned(joint(network), layers).layers[-1].sigma
    floored = tuned(joint(network), layers, np.log(0.9)).layers[-1].sigma
    assert free.min() < 0.8
    assert floored.min() == pytest.approx(0.9)
    given = replace(network, sigma=SIGMAS)
    start = random_start(given)
    np.testing.assert_allclose(tuned(joint(given), start).layers[-1].sigma, SIGMAS)


def test_a_sigma_that_is_not_determined_is_held() -> None:
    network = bent(150, alphas=[0.01, 0.01])
    layers = some_layers(network)
    free = np.array([True, False, True, True])
    found = tuned(joint(network), layers, free_sigma=free)
    moved = found.layers[-1].sigma != layers[-1].sigma
    np.testing.assert_allclose(found.layers[-1].sigma[1], layers[-1].sigma[1], rtol=1e-12)
    assert moved[[0, 2, 3]].all()


def test_intercepts_that_are_not_fitted_stay_zero() -> None:
    network = bent(150, alphas=[0.1, 0.1], fit_intercept=False)
    for layer in tuned(joint(network), some_layers(network)).layers:
        np.testing.assert_array_equal(layer.intercept, 0.0)


@pytest.mark.parametrize(("on_U", "on_V"), [(1e2, 1e-2), (1e-6, 1e-6), (10.0, 10.0)])
def test_a_bad_start_stays_finite_and_never_gets_worse(on_U: float, on_V: float) -> None:
    network = bent(150, alphas=[0.1, 0.1])
    layers = [replace(layer, U=layer.U * on_U, V=layer.V * on_V) for layer in some_layers(network)]
    found = tuned(joint(network), layers)
    end = joint(network).evaluate(found.layers)[0]
    assert np.isfinite(found.objectives).all()
    assert end <= found.objectives[0]
    for layer in found.layers:
        assert np.isfinite(layer.coef).all()
        assert np.isfinite(layer.sigma).all()


def test_a_start_below_the_floor_is_kept_if_the_floor_is_worse() -> None:
    network = bent(150, alphas=[1e-3])
    (grown,) = train(network, joint_tuning=False, tol=1e-8).layers
    found = tuned(joint(network), [grown], np.log(50.0))
    assert found.layers[0] is grown
    assert len(found.objectives) == 1


def test_what_does_not_promise_ends_after_its_probation() -> None:
    network = bent(150, alphas=[0.01] * 3)
    layers = some_layers(network)
    steps: list[int] = []
    found = tuned(
        joint(network),
        layers,
        progress=lambda step, objective: steps.append(step),
        promising=lambda layers: False,
    )
    assert steps == list(range(1, 31))
    assert len(found.objectives) == 31
    assert len(tuned(joint(network), layers).objectives) > 31
