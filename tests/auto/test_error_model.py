from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import AutoTobitRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.auto import HeldOutScores
from deeptobit.auto.noise import TAILS, ErrorModel, fit_error_model
from deeptobit.auto.recalibration import Recalibration, keep_level
from deeptobit.exceptions import ModelFileError
from deeptobit.files import estimator_from_state, estimator_state
from deeptobit.likelihood import (
    Gaussian,
    Noise,
    NoiseByTask,
    Predictive,
    StudentT,
    TwoPiece,
    of_task,
)
from deeptobit.targets import CensoredTargets

N = 1500
SKEWED = TwoPiece(StudentT(2.5), 0.7)


def _draw(noises: list[Noise], seed: int = 0) -> tuple[FloatArray, CensoredTargets]:
    rng = np.random.default_rng(seed)
    latent = 2.0 + rng.normal(size=(N, len(noises)))
    errors = np.stack([noise.sample(rng, (N,)) for noise in noises], axis=1)
    return latent, CensoredTargets.from_bounds(np.maximum(latent + errors, 0.0), 0.0)


def _fit(latent: FloatArray, targets: CensoredTargets, free: list[bool]) -> ErrorModel:
    ones = np.ones(latent.shape[1])
    scores = HeldOutScores.build(
        latent, targets, np.ones(N), ones, np.array(free), fit_intercept=True
    )
    return fit_error_model(scores, TAILS)


def test_every_task_finds_its_own_noise() -> None:
    truth: list[Noise] = [Gaussian(), SKEWED, TwoPiece(Gaussian(), -0.7), StudentT(2.5)]
    found, noise = _fit(*_draw(truth), [True] * 4)
    assert isinstance(noise, NoiseByTask)
    assert [repr(family) for family in noise.families] == [repr(family) for family in truth]
    np.testing.assert_allclose(found.slope, 1.0, atol=0.1)
    np.testing.assert_allclose(found.sigma, 1.0, atol=0.1)


def test_means_are_right_whatever_the_noise() -> None:
    latent, targets = _draw([Gaussian(), SKEWED])
    found, noise = _fit(latent, targets, [True, True])
    fresh, new = _draw([Gaussian(), SKEWED], seed=1)
    mean = Predictive(noise, found.intercept + found.slope * fresh, found.sigma, 0.0, np.inf).mean()
    np.testing.assert_allclose((new.values - mean).mean(axis=0), 0.0, atol=0.15)


def test_a_task_that_says_nothing_keeps_the_first_family() -> None:
    latent, targets = _draw([SKEWED, SKEWED])
    found, noise = _fit(latent, targets, [True, False])
    assert repr(of_task(noise, 1)) == "Gaussian()"
    assert (found.slope[1], found.sigma[1]) == (1.0, 1.0)
    assert repr(of_task(noise, 0)) != "Gaussian()"


def _skewed_cohort() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    errors = np.stack([rng.normal(size=300), SKEWED.sample(rng, (300,))], axis=1)
    return X, np.maximum(1.0 + X[:, :2] + errors, 0.0)


def _search(**settings: Any) -> AutoTobitRegressor:
    return AutoTobitRegressor(members=("stack",), cv=2, random_state=0, **settings)


def test_a_model_with_noise_by_task_predicts_and_is_saved(tmp_path: Path) -> None:
    X, Y = _skewed_cohort()
    model = _search().fit(X, Y)
    assert isinstance(model.noise_, NoiseByTask)
    low, high = model.predict_interval(X, 0.9)
    assert ((low <= Y) & (high >= Y)).mean(axis=0).min() > 0.85
    model.save(tmp_path / "mine.model")
    again = load(tmp_path / "mine.model")
    assert repr(again.noise_) == repr(model.noise_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score_log(X, Y) > _search(noise="gaussian").fit(X, Y).score_log(X, Y)
    calibrated = model.calibrate_intervals(X, Y)
    assert calibrated.predict_interval(X, 0.8)[0].shape == Y.shape


def test_a_file_whose_noise_is_not_that_of_its_targets_is_refused() -> None:
    X, Y = _skewed_cohort()
    model = _search().fit(X, Y)
    state = estimator_state(model)
    model._chosen_noise = NoiseByTask([Gaussian(), StudentT(), Gaussian()])
    with pytest.raises(ValueError, match="its noise is not that of its targets"):
        estimator_state(model)
    with pytest.raises(ModelFileError, match="its noise is not that of its targets"):
        estimator_from_state(_with_three_families(state))


def test_families_are_told_apart_by_their_parameters() -> None:
    near = [TwoPiece(Gaussian(), 0.35), TwoPiece(Gaussian(), 0.35 + 1e-9)]
    assert near[0] != near[1]
    assert NoiseByTask(near) != NoiseByTask(near[:1] * 2)
    assert NoiseByTask(near).at(np.array([0, 1, 1])).mean().shape == (3,)
    assert {StudentT(4.0), StudentT(), TwoPiece(StudentT(), 0.1)} == {
        StudentT(),
        TwoPiece(StudentT(4.0), 0.1),
    }


def test_a_given_noise_by_task_must_be_that_of_the_targets() -> None:
    X, Y = _skewed_cohort()
    given = NoiseByTask([Gaussian(), SKEWED])
    assert _search(noise=given).fit(X, Y).noise_ == given
    with pytest.raises(ValueError, match=r"noise is that of 2 target\(s\), but y has 1"):
        AutoTobitRegressor(noise=given).fit(X, Y[:, 0])


def _with_three_families(state: dict[str, object]) -> dict[str, object]:
    """The state of the model with a family too many."""

    def add(value: object) -> object:
        if isinstance(value, dict):
            changed = {key: add(item) for key, item in value.items()}
            if value.get("is") == "NoiseByTask":
                items = value["fields"]["families"]["items"]
                changed["fields"] = {"families": {"is": "tuple", "items": [*items, items[0]]}}
            return changed
        return [add(item) for item in value] if isinstance(value, list) else value

    found = add(state)
    assert isinstance(found, dict)
    return found


def test_sigma_does_not_grow_with_scores_that_hardly_vary() -> None:
    """Two folds whose intercepts differ in the last digits, with noise of two scales."""
    rng = np.random.default_rng(0)
    second = np.arange(N) % 2 == 0
    latent = 2.0 + 1e-8 * second[:, None] + np.zeros((N, 1))
    y = 2.0 + rng.normal(size=(N, 1)) * np.where(second, 3.0, 0.05)[:, None]
    found, noise = _fit(latent, CensoredTargets.from_bounds(y, None), [True])
    np.testing.assert_array_equal(found.growth, 0.0)
    near, far = (
        Predictive(noise, np.array([[score]]), found.sigma, -np.inf, np.inf).quantile(0.9)
        for score in (2.0, 2.1)
    )
    np.testing.assert_allclose(far - near, 0.1, atol=1e-6)


def test_equal_outcomes_do_not_make_sigma_vanish() -> None:
    """Nine of ten measurements are one value below the detection limit."""
    rng = np.random.default_rng(0)
    latent = 1e-3 * rng.normal(size=(N, 1))
    y = np.where(rng.random((N, 1)) < 0.9, 0.7071, np.exp(rng.normal(size=(N, 1))))
    found, _ = _fit(latent, CensoredTargets.from_bounds(y, None), [True])
    assert found.sigma[0] > 0.05 * y.std()


def test_one_row_far_out_does_not_move_the_level_of_all_others() -> None:
    """Folds that extrapolate to one row differ from the layer of all rows there, not in level."""
    latent, targets = _draw([Gaussian(), Gaussian()])
    folds = latent.copy()
    folds[7, 0] += 500.0
    folds[:, 1] += 0.2
    scores = HeldOutScores.build(
        folds, targets, np.ones(N), np.ones(2), np.array([True, True]), fit_intercept=True
    )
    same = Recalibration(np.zeros(2), np.ones(2), np.ones(2), np.zeros(2))
    moved = keep_level(scores, Gaussian(), same, latent).intercept
    np.testing.assert_allclose(moved, [0.0, 0.2], atol=0.01)


@pytest.mark.parametrize("size", [300.0, 1e4, 1e6])
def test_a_score_beyond_all_others_says_nothing_of_errors(size: float) -> None:
    """A fold that lacks a feature's outlier extrapolates to it by any factor."""
    latent, targets = _draw([Gaussian(), Gaussian()])
    plain, _ = _fit(latent, targets, [True, True])
    folds = latent.copy()
    folds[7, 0] += size
    found, _ = _fit(folds, targets, [True, True])
    np.testing.assert_allclose(np.stack(found), np.stack(plain), atol=0.02)
