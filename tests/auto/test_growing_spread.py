"""Spreads that grow with the score: found where they are, kept by everything that predicts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from deeptobit import SubspaceNetworkCV, SubspaceNetworkRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.auto import HeldOutScores, fit_errors
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
    line, noise = fit_errors(scores, TAILS)
    assert isinstance(noise, NoiseByTask)
    assert noise.spread is not None
    np.testing.assert_allclose(noise.spread.growth.mean(), growth, atol=0.03)
    _, sigma = at_scores(noise, line.level + line.slope * eta, line.sigma)
    wanted = 1.5 * np.exp(growth * (eta - 5.0) / 2.0)
    middle = np.abs(eta - 5.0) < 3.0
    assert np.abs(np.log(sigma / wanted))[middle].mean() < 0.1


def test_noise_of_one_spread_is_left_alone() -> None:
    noise = fit_errors(_held_out(0.0, n_tasks=30)[0], TAILS).noise
    assert with_one_spread(noise) is noise


def test_growth_that_may_not_move_is_none() -> None:
    scores, _ = _held_out(0.3)
    begun = recalibrate(scores, Gaussian()).line
    assert begun.growth.min() > 0.1
    assert not recalibrate(scores.without_growth(), Gaussian(), begun).line.growth.any()


def test_a_given_family_has_one_spread_and_a_given_spread_is_fitted_again() -> None:
    scores, _ = _held_out(0.3)
    assert fit_errors(scores, (Gaussian(),)).noise == Gaussian()
    chosen = fit_errors(scores, TAILS).noise
    again = fit_errors(scores, (chosen,)).noise
    other = fit_errors(_held_out(0.3, seed=1)[0], (chosen,)).noise
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
    noise = fit_errors(flat, TAILS).noise
    assert with_one_spread(noise) == noise


def _visits() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 5))
    score = 3.0 + X @ rng.normal(size=(5, 6))
    return X, np.maximum(score + np.exp(0.25 * score) * rng.normal(size=score.shape), 0.0)


def test_a_search_predicts_wider_intervals_where_scores_are_high(tmp_path: Path) -> None:
    X, Y = _visits()
    model = SubspaceNetworkCV(max_layers=1, random_state=0).fit(X[:300], Y[:300])
    assert isinstance(model.noise_, NoiseByTask)
    assert model.noise_.spread is not None
    assert model.noise_.spread.growth.min() > 0.1
    plain = SubspaceNetworkCV(max_layers=1, random_state=0, noise="gaussian").fit(X[:300], Y[:300])
    assert model.score_log(X[300:], Y[300:]) > plain.score_log(X[300:], Y[300:]) + 0.02
    low, high = model.predict_interval(X[300:], 0.9)
    score = model.predict(X[300:], kind="latent")
    assert np.corrcoef((high - low).ravel(), score.ravel())[0, 1] > 0.7
    for fitted in (model, model.best_estimator_):
        fitted.save(tmp_path / "it.model")
        kept = load(tmp_path / "it.model")
        assert kept.noise_ == model.noise_
        np.testing.assert_array_equal(kept.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


def test_units_of_the_outcomes_do_not_matter() -> None:
    X, Y = _visits()
    plain = SubspaceNetworkCV(max_layers=1, random_state=0).fit(X, Y)
    moved = SubspaceNetworkCV(max_layers=1, random_state=0, lower=7.0).fit(X, 1e3 * Y + 7.0)
    for q in (0.5, 0.95):
        wanted = 1e3 * plain.predict_quantile(X, q) + 7.0
        np.testing.assert_allclose(moved.predict_quantile(X, q), wanted, rtol=1e-5)


def test_a_search_whose_spread_grows_goes_on_with_new_rows() -> None:
    X, Y = _visits()
    model = SubspaceNetworkCV(max_layers=1, random_state=0).fit(X[:250], Y[:250])
    network = model.best_estimator_
    before = network.score_log(X[400:], Y[400:])
    network.partial_fit(X[250:400], Y[250:400])
    assert network.noise_ == model.noise_
    assert network.score_log(X[400:], Y[400:]) > before - 0.1


@pytest.mark.parametrize("settings", [{"max_layers": 2}, {"ranks": (2,), "alphas": (0.1, 0.01)}])
def test_the_noise_of_another_search_serves_deep_and_penalised_ones(settings: Any) -> None:
    X, Y, _ = make_subspace(
        300,
        8,
        5,
        2,
        n_layers=2,
        skip_connection=True,
        sigma=1.0,
        hidden_sigma=0.3,
        latent_sd=3.0,
        random_state=1,
    )
    families = [Gaussian()] * 5
    spread = Spread(np.full(5, 0.2), np.zeros(5), np.full(5, 3.0))
    given, plain = (
        SubspaceNetworkCV(cv=3, random_state=0, noise=noise, **settings).fit(X, Y)
        for noise in (NoiseByTask(families, spread), "gaussian")
    )
    assert given.n_layers_ == plain.n_layers_
    np.testing.assert_array_equal(  # candidates are scored as they are fitted, with Gaussian noise
        given.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


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


def test_hidden_layers_have_the_noise_that_they_were_fitted_with() -> None:
    X, Y = _visits()
    search = SubspaceNetworkCV(ranks=[2], alphas=[0.05], random_state=0).fit(X, Y)
    deep = SubspaceNetworkRegressor(2, 2, alpha=0.05).fit(X, Y)
    hidden, _ = deep.staged_predict(X)
    bar = deep.plot_layers(X, Y, ax=Figure().subplots()).patches[0]
    growth = np.full(Y.shape[1], 0.5)
    spread = Spread(growth, np.zeros_like(growth), np.ones_like(growth))
    deep._chosen_noise = NoiseByTask([Gaussian()] * Y.shape[1], spread)
    search._store(deep)
    for model in (deep, search):
        first, last = model.staged_predict(X)
        np.testing.assert_array_equal(first, hidden)
        np.testing.assert_array_equal(last, model.predict(X))
        again = model.plot_layers(X, Y, ax=Figure().subplots()).patches[0]
        np.testing.assert_array_equal(again.get_path().vertices, bar.get_path().vertices)
        np.testing.assert_array_equal(
            again.get_patch_transform().get_matrix(), bar.get_patch_transform().get_matrix()
        )
