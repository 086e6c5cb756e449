"""Fits whose answer is known in closed form, or whose truth is known."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, Ridge

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import StudentT
from tests.estimators.problems import (
    assert_close,
    bounded,
    censored,
    estimate,
    jacobian,
    moved,
    one_task,
    parameters,
)


def uncensored(seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features far from standard units, outcomes without bounds, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal([50.0, -3.0, 0.0], [9.0, 0.2, 1e3], size=(90, 3))
    Y = X @ rng.normal(size=(3, 2)) / X.std(axis=0).mean() + rng.normal(size=(90, 2))
    return X, Y, rng.uniform(0.5, 2.0, 90)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_without_censoring_it_is_least_squares(fit_intercept: bool, weighted: bool) -> None:
    X, Y, weight = uncensored()
    weight = weight if weighted else np.ones(len(X))
    model = TobitRegressor(lower=None, fit_intercept=fit_intercept)
    model.fit(X, Y, sample_weight=weight)
    line = LinearRegression(fit_intercept=fit_intercept).fit(X, Y, sample_weight=weight)
    residuals = Y - line.predict(X)
    assert_close(model.coef_, line.coef_)
    assert_close(model.intercept_, line.intercept_)
    assert_close(model.sigma_, np.sqrt(np.average(residuals**2, axis=0, weights=weight)))
    expected = weight @ norm.logpdf(residuals, scale=model.sigma_)
    np.testing.assert_allclose(model.log_likelihood_, expected, rtol=1e-9)


def ridge_by_hand(
    X: FloatArray, Y: FloatArray, weight: FloatArray, alpha: float, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (T, D) and intercepts (T,) of least squares with a penalty on scaled features.

    With σ fixed and nothing censored the objective times σ² is Σ w (y − b − xβ)²/(2 Σ w) +
    (α/2)‖β · scale‖², whatever σ.
    """
    share = weight / weight.sum()
    centred, outcome = X - share @ X, Y - share @ Y
    gram = centred.T @ (centred * share[:, None]) + alpha * np.diag(scale**2)
    coef = np.linalg.solve(gram, centred.T @ (outcome * share[:, None])).T
    return coef, share @ Y - coef @ (share @ X)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("sigma", [0.5, [2.0, 7.0]])
def test_ridge_with_known_sigma_is_ridge_on_standardised_features(alpha: float, sigma: Any) -> None:
    X, Y, weight = uncensored()
    model = TobitRegressor(lower=None, alpha=alpha, sigma=sigma).fit(X, Y, sample_weight=weight)
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    coef, intercept = ridge_by_hand(X, Y, weight, alpha, spread)
    assert_close(model.coef_, coef)
    assert_close(model.intercept_, intercept)
    assert_close(model.sigma_, np.broadcast_to(sigma, 2))


def test_ridge_without_standardising_penalises_the_raw_coefficients() -> None:
    X, Y, weight = uncensored()
    model = TobitRegressor(lower=None, alpha=0.5, sigma=1.0, standardize=False)
    model.fit(X, Y, sample_weight=weight)
    coef, intercept = ridge_by_hand(X, Y, weight, 0.5, np.ones(3))
    assert_close(model.coef_, coef)
    assert_close(model.intercept_, intercept)


def test_ridge_equals_that_of_scikit_learn_with_alpha_times_n() -> None:
    X, Y, _ = uncensored()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = TobitRegressor(lower=None, alpha=0.3, sigma=1.0).fit(X, Y)
    ridge = Ridge(alpha=0.3 * len(X)).fit(X, Y)
    assert_close(model.coef_, ridge.coef_)
    assert_close(model.intercept_, ridge.intercept_)


def test_ridge_with_free_sigma_adds_the_penalty_to_the_variance() -> None:
    # log σ + (RSS/N + α‖β‖²)/(2σ²) is stationary in σ where σ² = RSS/N + α‖β‖².
    X, Y, _ = uncensored()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = TobitRegressor(lower=None, alpha=0.3).fit(X, Y)
    coef, intercept = ridge_by_hand(X, Y, np.ones(len(X)), 0.3, np.ones(3))
    residuals = Y - X @ coef.T - intercept
    assert_close(model.coef_, coef)
    assert_close(model.sigma_**2, np.mean(residuals**2, axis=0) + 0.3 * np.sum(coef**2, axis=1))


def test_more_features_than_rows_are_solved_with_a_ridge() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 80))
    Y = X[:, :2] + rng.normal(size=(30, 2))
    model = TobitRegressor(lower=None, alpha=0.4, sigma=1.0).fit(X, Y)
    coef, intercept = ridge_by_hand(X, Y, np.ones(30), 0.4, X.std(axis=0))
    assert_close(model.coef_, coef)
    assert_close(model.intercept_, intercept)


def test_an_endless_ridge_leaves_the_intercept_only_model() -> None:
    X, y = one_task()
    model = bounded(alpha=1e9).fit(X, y)
    null = bounded().fit(X, y).likelihood_ratio_test()["restricted_log_likelihood"].iloc[0]
    assert_close(model.coef_, np.zeros((1, 3)))
    np.testing.assert_allclose(model.log_likelihood_, null, rtol=1e-6)


def test_a_censored_ridge_is_the_minimum_of_its_documented_objective() -> None:
    X, y = one_task(n_samples=60)
    spread, alpha = X.std(axis=0), 0.2

    def objective(point: FloatArray) -> float:
        beta, intercept, sigma = point[:3], point[3], np.exp(point[4])
        eta = X @ beta + intercept
        logs = np.where(
            y <= 0.0,
            norm.logcdf(-eta / sigma),
            np.where(y >= 3.0, norm.logsf((3.0 - eta) / sigma), norm.logpdf(y, eta, sigma)),
        )
        return float(-logs.mean() + 0.5 * alpha * np.sum((beta * spread / sigma) ** 2))

    model = bounded(alpha=alpha).fit(X, y)
    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(estimate(model), best.x, rtol=1e-4, atol=1e-5)
    assert objective(estimate(model)) <= best.fun + 1e-12


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t", StudentT(df=9)], ids=str)
@pytest.mark.parametrize("kind", ["bounds", "intervals"])
def test_the_gradient_of_the_log_likelihood_is_zero_at_the_optimum(noise: Any, kind: str) -> None:
    X, y = one_task()
    targets: Any = y
    if kind == "intervals":
        step = np.floor(y / 0.5) * 0.5
        targets = CensoredTargets.from_intervals(
            np.where(y <= 0.0, -np.inf, step), np.where(y >= 3.0, np.inf, step + 0.5)
        )
    model = bounded(noise=noise).fit(X, targets)

    def score(point: FloatArray) -> float:
        return moved(model, point).score_log(X, targets)

    at_optimum, elsewhere = estimate(model), estimate(model) + 0.1
    np.testing.assert_allclose(jacobian(score, at_optimum), 0.0, atol=1e-7)
    assert np.abs(jacobian(score, elsewhere)).min() > 1e-3


@pytest.mark.parametrize("upper", [None, 4.0])
def test_the_truth_of_a_subspace_is_recovered_within_its_standard_errors(upper: Any) -> None:
    X, Y, truth = make_subspace(
        1500, 10, 8, rank=2, sigma=1.0, latent_sd=2.0, upper=upper, random_state=1
    )
    model = TobitRegressor(upper=upper).fit(X, Y)
    table = model.summary()
    features = [f"x{d}" for d in range(10)]
    errors = table["std_err"].unstack("term")
    z = (model.coef_ - truth.coef) / errors[features].to_numpy()
    assert np.abs(z).max() < 4.0
    assert 0.6 < np.mean(z**2) < 1.4
    assert np.abs(model.intercept_ / errors["(intercept)"]).max() < 4.0
    assert np.abs(np.log(model.sigma_) / errors["log(sigma)"]).max() < 4.0


@pytest.mark.parametrize(("noise", "scale"), [("logistic", 0.6), (StudentT(df=5), 0.8)], ids=str)
def test_other_noise_families_recover_their_truth(noise: Any, scale: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 2))
    draw = rng.logistic(size=3000) if noise == "logistic" else rng.standard_t(5, 3000)
    y = np.clip(X @ [1.0, -0.5] + 0.5 + scale * draw, 0.0, 3.0)
    model = bounded(noise=noise).fit(X, y)
    truth = np.array([1.0, -0.5, 0.5, np.log(scale)])
    z = (estimate(model) - truth) / model.summary()["std_err"].to_numpy()
    assert np.abs(z).max() < 3.5
    assert bounded().fit(X, y).log_likelihood_[0] < model.log_likelihood_[0] - 5.0


def test_sigma_by_name_or_by_task_is_held() -> None:
    X, Y = censored()
    by_task = bounded(sigma=[0.5, 2.0]).fit(X, Y)
    by_name = bounded(sigma={"y1": 2.0, "y0": 0.5}).fit(X, Y)
    np.testing.assert_allclose(by_task.sigma_, [0.5, 2.0], rtol=1e-12)
    assert_close(parameters(by_name), parameters(by_task), 1e-9)


def test_sigma_held_at_its_own_estimate_changes_nothing() -> None:
    X, Y = censored()
    free = bounded().fit(X, Y)
    held = bounded(sigma=free.sigma_).fit(X, Y)
    assert_close(parameters(held), parameters(free))
    np.testing.assert_allclose(held.log_likelihood_, free.log_likelihood_, rtol=1e-9)
