"""Noise scales of given scores: the paper's residuals, and the most likely ones."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from deeptobit.layer import SIGMA_FLOOR, TargetScaling
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, evaluate
from deeptobit.network.grow import calibrate, likelihood_sigma
from deeptobit.targets import CensoredTargets
from tests.network.problems import build, joint, some_layers

PLAIN = TargetScaling(np.zeros(1), np.ones(1))


def test_residuals_count_a_censored_entry_with_its_bound_and_a_missing_one_not() -> None:
    targets = CensoredTargets.from_bounds([[0.0], [3.0], [np.nan]], lower=0.0)
    weight, latent = np.array([0.25, 0.25, 0.5]), np.array([[-2.0], [1.0], [77.0]])
    (sigma,) = calibrate(targets, weight, latent, PLAIN)
    assert sigma == pytest.approx(np.sqrt((4.0 + 4.0) / 2.0))


def test_a_perfect_fit_has_a_floor_and_an_empty_task_the_unit() -> None:
    targets = CensoredTargets.from_bounds([[1.0, np.nan], [2.0, np.nan]], lower=0.0)
    scaling = TargetScaling(np.zeros(2), np.ones(2))
    latent = np.array([[1.0, 5.0], [2.0, 5.0]])
    sigma = calibrate(targets, np.full(2, 0.5), latent, scaling)
    np.testing.assert_allclose(sigma, [SIGMA_FLOOR, 1.0])


@pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT()], ids=repr)
@pytest.mark.parametrize("distance", [1.0, 50.0])
def test_the_likely_scale_minimises_the_nll_of_the_scores(noise: Noise, distance: float) -> None:
    problem = build(noise=noise)
    weight, scaling, targets = problem.design.weight, problem.scaling, problem.targets
    latent = distance * joint(problem).latent(some_layers(problem)[:1])
    found = likelihood_sigma(targets, weight, latent, scaling, noise)
    low, high = scaling.apply(targets.low), scaling.apply(targets.high)

    def nll(log_sigma: float, task: int) -> float:
        this = [task]
        at = evaluate(
            noise, low[:, this], high[:, this], latent[:, this], np.exp(np.full(1, log_sigma))
        )
        return float(weight @ at.nll[:, 0])

    for task, sigma in enumerate(found):
        best = minimize_scalar(nll, (-3.0, 5.0), args=(task,), options={"xtol": 1e-9})
        assert nll(np.log(sigma), task) <= best.fun + 1e-6
        assert sigma == pytest.approx(np.exp(best.x), rel=1e-3)


def test_scales_do_not_depend_on_what_is_missing() -> None:
    problem = build()
    latent = joint(problem).latent(some_layers(problem)[:1])
    entries = problem.targets, problem.design.weight
    gap = problem.targets.missing
    other = np.where(gap, 1e6, latent)
    for one, two in (
        (calibrate(*entries, at, problem.scaling) for at in (latent, other)),
        (likelihood_sigma(*entries, at, problem.scaling, problem.noise) for at in (latent, other)),
    ):
        np.testing.assert_array_equal(one, two)
    assert gap.any(axis=0).all()
