"""Spreads that grow with the score: found where they are, kept by everything that predicts."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from deeptobit import AutoTobitRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.auto import HeldOutScores, fit_error_model
from deeptobit.auto.noise import TAILS
from deeptobit.auto.recalibration import recalibrate
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, NoiseByTask, Spread, at_scores, with_one_spread
from deeptobit.online import OnlineResult, RecursiveTobit
from deeptobit.targets import CensoredTargets


def _held_out(growth: float, n_tasks: int = 8, seed: int = 0) -> tuple[HeldOutScores, FloatArray]:
    """Scores with standard deviation 2 around 5 and a noise of 1.5 in their middle."""
    rng = np.random.default_rng(seed)
    eta = 5.0 + 2.0 * rng.normal(size=(600, n_tasks))
    sigma = 1.5 * np.exp(growth * (eta - 5.0) / 2.0)
    targets = CensoredTargets.from_bounds(
        np.maximum(eta + sigma * rng.normal(size=eta.shape), 0.0), lower=0.0
    )
    free, start = np.ones(n_tasks, bool), np.ones(n_tasks)
    return HeldOutScores.build(eta, targets, np.ones(600), start, free, fit_intercept=True), eta


@pytest.mark.parametrize("growth", [-0.2, 0.3])
def test_growth_is_found(growth: float) -> None:
    scores, eta = _held_out(growth)
    found, noise = fit_error_model(scores, TAILS)
    assert isinstance(noise, NoiseByTask)
    assert noise.spread is not None
    np.testing.assert_allclose(noise.spread.growth.mean(), growth, atol=0.03)
    _, sigma = at_scores(noise, found.intercept + found.slope * eta, found.sigma)
    wanted = 1.5 * np.exp(growth * (eta - 5.0) / 2.0)
    middle = np.abs(eta - 5.0) < 3.0
    assert np.abs(np.log(sigma / wanted))[middle].mean() < 0.1


def test_noise_of_one_spread_is_left_alone() -> None:
    noise = fit_error_model(_held_out(0.0, n_tasks=30)[0], TAILS).noise
    assert with_one_spread(noise) is noise


def test_growth_that_may_not_move_is_none() -> None:
    scores, _ = _held_out(0.3)
    begun = recalibrate(scores, Gaussian())[0]
    assert begun.growth.min() > 0.1
    assert not recalibrate(scores.without_growth(), Gaussian(), begun)[0].growth.any()


def test_a_given_family_has_one_spread_and_a_given_spread_is_fitted_again() -> None:
    scores, _ = _held_out(0.3)
    assert fit_error_model(scores, (Gaussian(),)).noise == Gaussian()
    chosen = fit_error_model(scores, TAILS).noise
    again = fit_error_model(scores, (chosen,)).noise
    other = fit_error_model(_held_out(0.3, seed=1)[0], (chosen,)).noise
    assert isinstance(chosen, NoiseByTask)
    assert isinstance(again, NoiseByTask)
    assert isinstance(other, NoiseByTask)
    assert chosen.spread is not None
    assert again.spread is not None
    np.testing.assert_allclose(again.spread.growth, chosen.spread.growth, atol=1e-3)
    assert other.families == chosen.families
    assert other.spread != chosen.spread


def test_scores_that_are_all_one_tell_no_growth() -> None:
    scores, _ = _held_out(0.3)
    flat = HeldOutScores.build(
        np.full(scores.x.shape, 2.0),
        CensoredTargets.from_bounds(np.maximum(scores.y + 3.0, 0.0), lower=0.0),
        np.ones(600),
        np.ones(8),
        np.ones(8, bool),
        fit_intercept=True,
    )
    noise = fit_error_model(flat, TAILS).noise
    assert with_one_spread(noise) == noise


def _visits() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 5))
    score = 3.0 + X @ rng.normal(size=(5, 6))
    return X, np.maximum(score + np.exp(0.25 * score) * rng.normal(size=score.shape), 0.0)


def test_a_search_predicts_wider_intervals_where_scores_are_high(tmp_path: Path) -> None:
    X, Y = _visits()
    model = AutoTobitRegressor(members=("stack",), cv=2, random_state=0).fit(X[:300], Y[:300])
    assert isinstance(model.noise_, NoiseByTask)
    assert model.noise_.spread is not None
    assert model.noise_.spread.growth.min() > 0.1
    plain = AutoTobitRegressor(members=("stack",), cv=2, random_state=0, noise="gaussian").fit(
        X[:300], Y[:300]
    )
    assert model.score_log(X[300:], Y[300:]) > plain.score_log(X[300:], Y[300:]) + 0.02
    low, high = model.predict_interval(X[300:], 0.9)
    score = model.predict(X[300:], kind="latent")
    assert np.corrcoef((high - low).ravel(), score.ravel())[0, 1] > 0.7
    model.save(tmp_path / "it.model")
    again = load(tmp_path / "it.model")
    assert again.noise_ == model.noise_
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


def test_a_fit_lets_sigma_grow_by_no_more_than_can_be_believed() -> None:
    """Beyond 1.5 per standard deviation of the scores an outcome has one σ again."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    score = X[:, :1]
    Y = score + 0.1 * np.exp(1.8 * score) * rng.normal(size=(600, 4))
    model = AutoTobitRegressor(members=("stack",), cv=2, random_state=0, lower=None).fit(X, Y)
    assert isinstance(model.noise_, NoiseByTask)
    assert model.noise_.spread is not None
    growth = model.noise_.spread.growth
    assert growth.max() <= 1.5
    assert growth[[0, 2]].min() > 1.0
    assert growth[3] == 0.0  # not 1.9


def test_units_of_the_outcomes_do_not_matter() -> None:
    X, Y = _visits()
    plain = AutoTobitRegressor(members=("stack",), cv=2, random_state=0).fit(X, Y)
    moved = AutoTobitRegressor(members=("stack",), cv=2, random_state=0, lower=7.0).fit(
        X, 1e3 * Y + 7.0
    )
    for q in (0.5, 0.95):
        wanted = 1e3 * plain.predict_quantile(X, q) + 7.0
        np.testing.assert_allclose(moved.predict_quantile(X, q), wanted, rtol=1e-5)


def test_the_noise_of_another_model_serves_a_deeper_network() -> None:
    X, Y, _ = make_subspace(
        300, 10, 8, 3, n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0, random_state=1
    )
    families = [Gaussian()] * 8
    spread = Spread(np.full(8, 0.2), np.zeros(8), np.full(8, 3.0))
    given, plain = (
        AutoTobitRegressor(cv=2, random_state=0, noise=noise).fit(X, Y)
        for noise in (NoiseByTask(families, spread), "gaussian")
    )
    assert given.n_layers_ == plain.n_layers_ == 2
    scores = ["member", "score", "weight", "taken"]  # with the noise that layers are fitted with
    pd.testing.assert_frame_equal(given.members_[scores], plain.members_[scores])
    hidden, last = given.staged_predict(X)  # also the hidden layer has that noise
    np.testing.assert_array_equal(hidden, next(plain.staged_predict(X)))
    np.testing.assert_array_equal(last, given.predict(X))
    bars = [model.plot_layers(X, Y, ax=Figure().subplots()).patches[0] for model in (given, plain)]
    own, other = (bar.get_patch_transform().get_matrix() for bar in bars)
    np.testing.assert_array_equal(own, other)


def test_rows_that_come_later_move_all_tasks() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(512, 6))
    coef = rng.normal(size=(10, 6))
    score = X @ coef.T
    spread = Spread(np.full(10, 0.3), np.zeros(10), np.full(10, 1.0))
    noise = NoiseByTask([Gaussian()] * 10, spread)
    Y = score + 3.0 * spread.factor(score) * rng.normal(size=score.shape)
    U = np.linalg.svd(coef, full_matrices=False)[0]
    begun = OnlineResult(U, U.T @ coef, np.zeros(10), np.full(10, 3.0), 2000)
    model = RecursiveTobit(begun, np.ones(6), noise, fit_intercept=True, learns_sigma=True)
    model.learn(X, Y, Y, np.ones(512))
    result = model.result()
    moved = np.abs(result.U @ result.V - coef).max(axis=1)
    assert (moved > 1e-6).all()
