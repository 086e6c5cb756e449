"""Weights of a stack, and what held-out rows say of slopes, levels and noise."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.auto.folds import Fold, HeldOutFolds
from deeptobit.auto.noise import TAILS, fit_error_model
from deeptobit.auto.path import EvidenceMember
from deeptobit.auto.recalibration import (
    _GROWTH_SD,
    _SLOPE_PRECISION,
    HeldOutScores,
    Recalibration,
    recalibrate,
    unbias_mean,
)
from deeptobit.auto.stack import (
    _largest_gain,
    average,
    error_products,
    promising_priors,
    stacking_weights,
)
from deeptobit.likelihood import Gaussian, Noise, Predictive, StudentT, bend, evaluate
from deeptobit.targets import CensoredTargets


@pytest.mark.parametrize("seed", range(5))
def test_no_direction_of_the_simplex_lowers_the_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(6, 40)) + rng.normal(size=40)
    moments = errors @ errors.T
    weights = stacking_weights(moments)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    slope = moments @ weights
    np.testing.assert_allclose(slope[weights > 0.0], slope.min(), rtol=1e-3)


def test_twins_and_perfect_members_are_no_trouble() -> None:
    errors = np.ones((3, 5))
    np.testing.assert_allclose(stacking_weights(errors @ errors.T).sum(), 1.0)
    perfect = stacking_weights(np.diag([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(perfect, [0.0, 1.0, 0.0], atol=1e-3)
    assert np.isfinite(stacking_weights(np.zeros((2, 2)))).all()


def test_an_average_averages() -> None:
    one, two = (
        EvidenceMember(np.full((1, 2), k), np.full(1, k), np.full(1, k), k) for k in (1.0, 4.0)
    )
    mean = average([one, two], np.array([0.5, 0.5]))
    np.testing.assert_allclose(mean.coef, 2.5)
    assert mean.alpha == pytest.approx(2.0)


BOUNDS = 7.0, 12.0


def _refit(
    latent: FloatArray,
    targets: CensoredTargets,
    weight: FloatArray,
    sigma: FloatArray,
    noise: Noise,
    free: Any,
    *,
    fit_intercept: bool = True,
    grows: bool = False,
) -> Recalibration:
    scores = HeldOutScores.build(latent, targets, weight, sigma, free, fit_intercept=fit_intercept)
    return recalibrate(scores if grows else scores.without_growth(), noise)[0]


def _held_out(seed: int = 0) -> tuple[FloatArray, CensoredTargets, FloatArray]:
    rng = np.random.default_rng(seed)
    latent = 10.0 + 2.0 * rng.normal(size=(400, 2))
    Y = np.clip(1.0 + 0.8 * latent + 3.0 * rng.normal(size=(400, 2)), 7.0, 12.0)
    Y[::9, 0] = np.nan
    return latent, CensoredTargets.from_bounds(Y, 7.0, 12.0), rng.uniform(0.5, 2.0, 400)


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("noise", [Gaussian(), StudentT(4)])
def test_recalibration_is_the_penalised_maximum(noise: Noise, grows: bool) -> None:
    latent, targets, weight = _held_out()
    free = np.array([True, True])
    found = _refit(latent, targets, weight, np.ones(2), noise, free, grows=grows)
    assert found.growth.any() == grows
    middle = np.average(latent, axis=0, weights=weight)
    width = np.sqrt(np.average(np.square(latent - middle), axis=0, weights=weight))
    bent = bend((latent - middle) / width)
    mean = Predictive(Gaussian(), latent, np.ones(2), *BOUNDS).mean()
    spread = np.nanmean(weight[:, None] * np.square(targets.values - mean), axis=0)
    spread /= np.nanmean(np.where(targets.missing, np.nan, weight[:, None]), axis=0)
    for task in range(2):

        def objective(point: Any, task: int = task) -> float:
            scores = point[0] + point[1] * latent[:, [task]]
            low, high = targets.low[:, [task]], targets.high[:, [task]]
            growth = point[3] if grows else 0.0
            sigma = np.exp(point[2] + growth * bent[:, [task]])
            nll = evaluate(noise, low, high, scores, sigma).nll[:, 0]
            mean = Predictive(noise, scores, sigma, *BOUNDS).mean()[:, 0]
            error = np.nan_to_num(0.5 * np.square(targets.values[:, task] - mean) / spread[task])
            prior = _SLOPE_PRECISION * (point[1] - 1.0) ** 2 + (growth / _GROWTH_SD) ** 2
            return float(weight @ (nll + error) + 0.5 * prior)

        intercept, slope, sigma, growth = (part[task] for part in found)
        point = np.array([intercept, slope, np.log(sigma), growth][: 4 if grows else 3])
        best = minimize(objective, point, method="Nelder-Mead", options={"xatol": 1e-6})
        assert objective(point) <= best.fun + 1e-6


def test_without_the_prior_it_is_the_tobit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deeptobit.auto.recalibration._SLOPE_PRECISION", 0.0)
    latent, targets, weight = _held_out()
    free = np.ones(2, dtype=bool)
    scores = HeldOutScores.build(latent, targets, weight, np.ones(2), free, fit_intercept=True)
    found, _ = recalibrate(scores.without_means().without_growth(), Gaussian())
    tobit = TobitRegressor().fit(latent[:, [1]], targets[:, ...], sample_weight=weight)
    np.testing.assert_allclose(found.slope[1], tobit.coef_[1, 0], rtol=1e-6)
    np.testing.assert_allclose(found.intercept[1], tobit.intercept_[1], rtol=1e-6)
    np.testing.assert_allclose(found.sigma[1], tobit.sigma_[1], rtol=1e-6)


def test_tasks_that_are_not_free_stay_and_no_intercept_means_none() -> None:
    latent, targets, weight = _held_out()
    one = np.array([True, False])
    start = np.array([1.0, 5.0])
    found = _refit(latent, targets, weight, start, Gaussian(), one, fit_intercept=False)
    assert found.intercept.tolist() == [0.0, 0.0]
    assert (found.slope[1], found.sigma[1]) == (1.0, 5.0)
    assert found.sigma[0] != 1.0


def test_units_of_the_outcomes_do_not_matter() -> None:
    latent, targets, weight = _held_out()
    scaled = CensoredTargets.from_bounds(1e3 * targets.values - 5.0, 6995.0, 11995.0)
    free = np.ones(2, dtype=bool)
    plain = _refit(latent, targets, weight, np.ones(2), Gaussian(), free)
    moved = _refit(1e3 * latent - 5.0, scaled, weight, 1e3 * np.ones(2), Gaussian(), free)
    np.testing.assert_allclose(moved.slope, plain.slope, rtol=1e-7)
    np.testing.assert_allclose(moved.sigma, 1e3 * plain.sigma, rtol=1e-7)


def test_a_clear_bias_of_the_mean_is_removed_and_chance_is_not() -> None:
    rng = np.random.default_rng(1)
    latent = rng.normal(size=(4000, 2))
    y = np.maximum(latent + np.array([0.3, 0.0]) + rng.normal(size=latent.shape), 0.0)
    mean = Predictive(Gaussian(), latent, np.ones(2), 0.0, np.inf).mean()
    # The second task is right up to chance: make it so exactly.
    y[:, 1] += (mean[:, 1] - y[:, 1]).mean()
    targets = CensoredTargets.from_bounds(y, 0.0, outside="clip")
    scores = HeldOutScores.build(
        latent, targets, np.ones(4000), np.ones(2), np.ones(2, dtype=bool), fit_intercept=True
    )
    same = Recalibration(np.zeros(2), np.ones(2), np.ones(2), np.zeros(2))
    found = unbias_mean(scores, Gaussian(), same)
    shift = found.intercept
    assert shift[1] == 0.0
    assert shift[0] == pytest.approx(0.3, abs=0.05)
    moved = Predictive(Gaussian(), latent + shift, found.sigma, 0.0, np.inf)
    assert abs((y - moved.mean())[:, 0].mean()) < 0.01


def test_removing_a_bias_leaves_a_skewed_distribution_where_it_is() -> None:
    """Laboratory values far beyond all others make a mean too small, and no quantile wrong."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(2000, 1))
    errors = 0.3 * np.abs(rng.standard_cauchy(size=latent.shape)).clip(max=30.0)
    targets = CensoredTargets.from_bounds(0.2 * latent + errors, None)
    free = np.ones(1, dtype=bool)
    scores = HeldOutScores.build(
        latent, targets, np.ones(2000), np.ones(1), free, fit_intercept=True
    )
    found, noise = fit_error_model(scores, TAILS)
    y = found.intercept + found.slope * latent
    predictive = Predictive(noise, y, found.sigma)
    below, above = predictive.quantile([0.05, 0.95])
    assert np.mean(targets.values < below) < 0.08
    assert np.mean(targets.values > above) < 0.12
    assert abs((targets.values - predictive.mean()).mean()) < 0.05


def test_products_of_errors_add_up_over_blocks_of_rows() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1500, 2)), np.maximum(rng.normal(size=(1500, 2)), -0.5)
    targets = CensoredTargets.from_bounds(Y, -0.5, None)
    rows = np.arange(1500)
    held_out = HeldOutFolds(targets, np.ones(1500), [Fold(rows[:100], rows[100:])], Gaussian())
    fold = held_out.folds[0]
    members = [
        EvidenceMember(rng.normal(size=(2, 2)), rng.normal(size=2), np.ones(2), 1.0)
        for _ in range(3)
    ]
    errors = np.stack(
        [held_out.errors(fold.test, one.latent(X[100:]), one.sigma).ravel() for one in members]
    )
    products = error_products(held_out, fold, X, members)
    np.testing.assert_allclose(products.sum(axis=0), errors @ errors.T, rtol=1e-12)


def _products(errors: FloatArray) -> FloatArray:
    """Of errors (K, n, T)."""
    return np.asarray(np.einsum("knt,lnt->nkl", errors, errors))


@pytest.mark.parametrize("n_rows", [30, 1000])
def test_priors_are_given_up_where_they_surely_add_nothing(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    noise, worse, other = rng.normal(size=(3, n_rows, 4))
    bias = 0.3 * rng.normal(size=(n_rows, 4))
    errors = np.stack([noise + bias, noise + bias + 0.5 * worse, noise - bias + 0.1 * other])
    few = n_rows < 100  # of which nothing is sure
    ones = np.ones(n_rows)
    assert promising_priors(_products(errors), ones, 1) == ([0, 1, 2] if few else [0, 2])
    pairs = np.repeat(errors, 2, axis=0)
    assert promising_priors(_products(pairs), ones, 2) == ([0, 1, 2] if few else [0, 2])
    assert promising_priors(np.zeros((5, 4, 4)), np.ones(5), 2) == [0]


def test_a_row_of_weight_w_is_w_rows_where_priors_are_given_up() -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, size=40).astype(np.float64)
    products = _products(rng.normal(size=(6, 40, 2)) + rng.normal(size=(40, 2)))
    others, members = np.arange(6) < 4, np.arange(6) >= 4
    weighted = _largest_gain(
        weight[:, None, None] * products, np.maximum(weight, 1e-300), others, members
    )
    repeated = np.repeat(products, weight.astype(int), axis=0)
    expected = _largest_gain(repeated, np.ones(len(repeated)), others, members)
    assert expected > 0.0
    np.testing.assert_allclose(weighted, expected, rtol=1e-9)
