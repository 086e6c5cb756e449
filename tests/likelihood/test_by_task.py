from typing import Any

import numpy as np
import pytest

from deeptobit import TobitRegressor, metrics
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    NoiseByTask,
    Predictive,
    StudentT,
    TwoPiece,
    evaluate,
    join_families,
    of_tasks,
)
from deeptobit.metrics.inputs import some_predictive
from deeptobit.targets import CensoredTargets

FAMILIES = [Gaussian(), TwoPiece(StudentT(2.5), 0.7), Gaussian(), Logistic()]
NOISE = NoiseByTask(FAMILIES)
UPPER = 3.0


def _entries() -> tuple[np.ndarray[Any, Any], CensoredTargets, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    latent, sigma = rng.normal(1.0, 1.0, (50, 4)), np.array([0.5, 1.0, 2.0, 0.8])
    Y = np.clip(latent + sigma * rng.normal(size=latent.shape), 0.0, UPPER)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    return latent, CensoredTargets.from_bounds(Y, 0.0, UPPER), sigma


def test_every_task_is_evaluated_with_its_family() -> None:
    latent, targets, sigma = _entries()
    together = evaluate(NOISE, targets.low, targets.high, latent, sigma)
    for task, noise in enumerate(FAMILIES):
        ends = targets.low[:, [task]], targets.high[:, [task]]
        alone = evaluate(noise, *ends, latent[:, [task]], sigma[[task]])
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[:, [task]], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "at_lower", "at_upper", "uncensored"])
def test_predictions_are_those_of_every_task_alone(name: str) -> None:
    latent, _, sigma = _entries()
    found = getattr(Predictive(NOISE, latent, sigma, 0.0, UPPER), name)()
    for task, noise in enumerate(FAMILIES):
        alone = Predictive(noise, latent[:, [task]], sigma[[task]], 0.0, UPPER)
        np.testing.assert_array_equal(found[:, [task]], getattr(alone, name)())


def test_quantiles_and_draws_have_the_shapes_of_any_noise() -> None:
    latent, _, sigma = _entries()
    by_task = Predictive(NOISE, latent, sigma, 0.0, UPPER)
    quantiles = by_task.quantile([0.1, 0.5])
    assert quantiles.shape == (2, 50, 4)
    alone = Predictive(FAMILIES[1], latent[:, [1]], sigma[[1]], 0.0, UPPER)
    np.testing.assert_array_equal(quantiles[:, :, [1]], alone.quantile([0.1, 0.5]))
    assert by_task.sample(np.random.default_rng(0), 3).shape == (50, 4, 3)


@pytest.mark.parametrize("tasks", [[1], [3, 1], [0, 2]])
def test_some_tasks_keep_their_noise(tasks: list[int]) -> None:
    latent, _, sigma = _entries()
    bounds = np.zeros(4), np.full(4, UPPER)
    every = Predictive(NOISE, latent, sigma, *bounds)
    some = some_predictive(every, tasks)
    np.testing.assert_array_equal(some.mean(), every.mean()[:, tasks])
    np.testing.assert_array_equal(some.quantile(0.9), every.quantile(0.9)[:, tasks])
    assert repr(of_tasks(Gaussian(), tasks)) == "Gaussian()"


def test_other_tasks_than_those_of_the_noise_are_refused() -> None:
    latent, _, sigma = _entries()
    for shape in (latent[:, [1]], latent[:, :2]):
        with pytest.raises(ValueError, match=r"the noise is that of 4 task\(s\), but the array"):
            Predictive(NOISE, shape, sigma[: shape.shape[1]], 0.0, UPPER).mean()
    with pytest.raises(ValueError, match="pass all tasks in their order, or the noise of some"):
        NOISE.interval(np.zeros((5, 1)), np.ones((5, 1)))


@pytest.mark.parametrize("measure", [metrics.crps, metrics.censored_log_score])
def test_measures_know_which_task_an_entry_belongs_to(measure: Any) -> None:
    latent, targets, sigma = _entries()
    settings = {"lower": 0.0, "upper": UPPER, "multioutput": "raw_values"}
    found = measure(targets.values, latent, sigma, noise=NOISE, **settings)
    for task, noise in enumerate(FAMILIES):
        one = (targets.values[:, task], latent[:, task], sigma[task])
        np.testing.assert_allclose(found[task], measure(*one, noise=noise, **settings), rtol=1e-12)


def test_tasks_that_agree_have_one_family() -> None:
    assert repr(join_families([StudentT(), StudentT(4.0)])) == "StudentT(df=4)"
    assert isinstance(join_families(FAMILIES), NoiseByTask)


def test_families_within_families_are_refused() -> None:
    with pytest.raises(TypeError, match="families must be those of single tasks"):
        NoiseByTask([NOISE])


def test_models_are_fitted_with_one_family() -> None:
    with pytest.raises(ValueError, match="models are fitted with one noise family for all tasks"):
        TobitRegressor(noise=NOISE).fit(np.arange(9.0)[:, None], np.ones((9, 4)))
