"""Predictions against SciPy's normal distribution, simulation, and their documented shapes."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import assert_close, bounded, censored, one_task

N = 7


def fitted(n_tasks: int, **settings: Any) -> tuple[TobitRegressor, FloatArray]:
    """A model of that many tasks (0: y is 1-d), and N rows to predict for."""
    X, Y = censored(n_tasks=max(n_tasks, 1))
    model = bounded(**settings).fit(X, Y if n_tasks else Y[:, 0])
    return model, X[:N]


@pytest.mark.parametrize(("n_tasks", "shape"), [(0, (N,)), (1, (N, 1)), (3, (N, 3))])
def test_every_prediction_has_its_documented_shape(n_tasks: int, shape: tuple[int, ...]) -> None:
    model, X = fitted(n_tasks)
    for kind in ("mean", "clip", "latent"):
        assert model.predict(X, kind=kind).shape == shape
    assert [end.shape for end in model.predict_bound_proba(X)] == [shape, shape]
    assert [end.shape for end in model.predict_interval(X)] == [shape, shape]
    assert [end.shape for end in model.predict_mean_interval(X)] == [shape, shape]
    assert model.predict_quantile(X, 0.5).shape == shape
    assert model.predict_quantile(X, [0.5]).shape == (1, *shape)
    assert model.predict_quantile(X, [0.1, 0.5, 0.9, 1.0]).shape == (4, *shape)
    assert model.sample_y(X).shape == (*shape, 1)
    assert model.sample_y(X, 5).shape == (*shape, 5)


def expected_mean(eta: FloatArray, sigma: FloatArray, lower: float, upper: float) -> FloatArray:
    """E[clip(η + σε)] by the midpoint rule on 20,000 quantiles of ε."""
    steps = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    draws = np.clip(eta[..., None] + sigma[:, None] * steps, lower, upper)
    return np.asarray(draws.mean(axis=-1))


def test_mean_is_the_expectation_of_the_censored_outcome() -> None:
    model, X = fitted(3)
    eta = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(
        model.predict(X), expected_mean(eta, model.sigma_, 0.0, 3.0), rtol=1e-4
    )
    np.testing.assert_array_equal(model.predict(X), model.predict(X, kind="mean"))


def test_latent_is_the_line_and_clip_is_the_line_within_the_bounds() -> None:
    model, X = fitted(3)
    latent = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict(X, kind="latent"), latent, rtol=1e-12)
    np.testing.assert_allclose(model.predict(X, kind="clip"), np.clip(latent, 0, 3), rtol=1e-12)
    assert (latent < 0.0).any()


@pytest.mark.parametrize("kind", ["mean", "clip", "latent"])
def test_the_constructor_says_what_predict_returns(kind: Any) -> None:
    model, X = fitted(2, prediction=kind)
    np.testing.assert_array_equal(model.predict(X), model.predict(X, kind=kind))


def test_the_mean_predicts_better_than_the_clipped_latent() -> None:
    X, y = one_task(n_samples=4000)
    model = bounded().fit(X[:2000], y[:2000])
    errors = {
        kind: np.mean((y[2000:] - model.predict(X[2000:], kind=kind)) ** 2)
        for kind in ("mean", "clip")
    }
    assert errors["mean"] < 0.97 * errors["clip"]


@pytest.mark.filterwarnings("ignore::deeptobit.exceptions.CensoringWarning")
def test_without_bounds_the_mean_is_the_latent() -> None:
    X, Y = censored()
    model = TobitRegressor(lower=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), model.predict(X, kind="latent"), rtol=1e-12)
    np.testing.assert_array_equal(model.predict_bound_proba(X), 0.0)


def test_bound_probabilities_are_the_tails_of_the_noise() -> None:
    model, X = fitted(3)
    eta = model.predict(X, kind="latent")
    at_lower, at_upper = model.predict_bound_proba(X)
    np.testing.assert_allclose(at_lower, norm.cdf(0.0, eta, model.sigma_), rtol=1e-10)
    np.testing.assert_allclose(at_upper, norm.sf(3.0, eta, model.sigma_), rtol=1e-10)


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
def test_bound_probabilities_and_the_uncensored_one_sum_to_one(noise: str) -> None:
    # The slope of E[y|x] by the latent is P(uncensored), a third way to it.
    model, X = fitted(0, noise=noise)
    at_lower, at_upper = model.predict_bound_proba(X)
    step = 1e-5 / model.coef_[0, 0]
    ahead, behind = X.copy(), X.copy()
    ahead[:, 0] += step
    behind[:, 0] -= step
    uncensored = (model.predict(ahead) - model.predict(behind)) / 2e-5
    np.testing.assert_allclose(at_lower + at_upper + uncensored, 1.0, atol=1e-8)


def test_quantiles_are_clipped_quantiles_of_the_latent() -> None:
    model, X = fitted(3)
    q = np.array([0.0, 0.05, 0.5, 0.95, 1.0])
    eta = model.predict(X, kind="latent")
    expected = np.clip(norm.ppf(q[:, None, None], eta, model.sigma_), 0.0, 3.0)
    np.testing.assert_allclose(model.predict_quantile(X, q), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.predict_quantile(X, 0.5), model.predict_quantile(X, q)[2])


def test_the_interval_is_made_of_its_two_quantiles() -> None:
    model, X = fitted(2)
    low, high = model.predict_interval(X, coverage=0.8)
    assert_close(low, model.predict_quantile(X, 0.1), 1e-12)
    assert_close(high, model.predict_quantile(X, 0.9), 1e-12)
    default = model.predict_interval(X)
    assert_close(default[0], model.predict_quantile(X, 0.05), 1e-12)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_of_uncensored_outcomes_cover_at_their_rate(coverage: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 3))
    y = X.sum(axis=1) + rng.normal(size=6000)
    model = TobitRegressor(lower=None).fit(X[:3000], y[:3000])
    low, high = model.predict_interval(X[3000:], coverage)
    inside = np.mean((low <= y[3000:]) & (y[3000:] <= high))
    assert abs(inside - coverage) < 0.025


def test_intervals_of_censored_outcomes_cover_at_least_at_their_rate() -> None:
    X, y = one_task(seed=1, n_samples=6000)
    model = bounded().fit(X[:3000], y[:3000])
    low, high = model.predict_interval(X[3000:], 0.8)
    test = y[3000:]
    assert np.mean((low <= test) & (test <= high)) > 0.8
    # Strictly within the bounds, either end misses a tenth where it lies within the bounds too.
    inside = low > 0.0
    assert abs(np.mean(test[inside] < low[inside]) - 0.1) < 0.025


def test_samples_have_the_predicted_distribution() -> None:
    model, X = fitted(2)
    draws = model.sample_y(X, 20_000, random_state=0)
    assert draws.min() == 0.0
    assert draws.max() == 3.0
    np.testing.assert_allclose(draws.mean(axis=2), model.predict(X), atol=0.04)
    np.testing.assert_allclose(
        (draws == 0.0).mean(axis=2), model.predict_bound_proba(X)[0], atol=0.02
    )
    np.testing.assert_allclose(
        np.quantile(draws, 0.7, axis=2), model.predict_quantile(X, 0.7), atol=0.05
    )


def test_samples_repeat_with_the_seed_and_differ_without() -> None:
    model, X = fitted(2)
    first = model.sample_y(X, 3, random_state=4)
    np.testing.assert_array_equal(model.sample_y(X, 3, random_state=4), first)
    assert not np.array_equal(model.sample_y(X, 3, random_state=5), first)
    state = np.random.RandomState(4)
    np.testing.assert_array_equal(model.sample_y(X, 3, random_state=state), first)
    assert not np.array_equal(model.sample_y(X, 3, random_state=state), first)


def test_limits_per_row_bound_every_prediction() -> None:
    model, X = fitted(2)
    low = np.linspace(0.0, 1.0, 2 * N).reshape(N, 2)
    high = low + 0.5
    limits: dict[str, Any] = {"lower": low, "upper": high}
    eta = model.predict(X, kind="latent", **limits)
    np.testing.assert_array_equal(eta, model.predict(X, kind="latent"))
    np.testing.assert_array_equal(model.predict(X, kind="clip", **limits), np.clip(eta, low, high))
    at_lower, at_upper = model.predict_bound_proba(X, **limits)
    np.testing.assert_allclose(at_lower, norm.cdf(low, eta, model.sigma_), rtol=1e-10)
    np.testing.assert_allclose(at_upper, norm.sf(high, eta, model.sigma_), rtol=1e-10)
    for found in (
        model.predict(X, **limits),
        model.predict_quantile(X, 0.3, **limits),
        *model.predict_interval(X, **limits),
        *np.moveaxis(model.sample_y(X, 20, random_state=0, **limits), 2, 0),
    ):
        assert ((low <= found) & (found <= high)).all()


def test_one_row_at_its_own_limit_is_a_model_with_that_bound() -> None:
    model, X = fitted(0)
    at_one = TobitRegressor(lower=1.0, upper=3.0).fit(*one_task_above_one())
    at_one.coef_, at_one.intercept_, at_one.sigma_ = model.coef_, model.intercept_, model.sigma_
    np.testing.assert_allclose(model.predict(X, lower=np.ones(N)), at_one.predict(X), rtol=1e-12)


def one_task_above_one() -> tuple[FloatArray, FloatArray]:
    """The same outcome on a scale that starts at 1."""
    X, y = one_task()
    return X, np.maximum(y, 1.0)


def test_intervals_may_bring_the_bounds_of_predictions() -> None:
    X, y = one_task()
    low = np.where(y <= 0.0, -np.inf, y)
    high = np.where(y >= 3.0, np.inf, y)
    low = np.where(y >= 3.0, 3.0, low)
    high = np.where(y <= 0.0, 0.0, high)
    open_ended = TobitRegressor().fit(X, CensoredTargets.from_intervals(low, high))
    closed = TobitRegressor().fit(
        X, CensoredTargets.from_intervals(low, high, lower=0.0, upper=3.0)
    )
    np.testing.assert_array_equal(open_ended.predict(X), open_ended.predict(X, kind="latent"))
    np.testing.assert_allclose(closed.predict(X), bounded().fit(X, y).predict(X), rtol=1e-6)


def test_far_out_features_predict_the_bounds_without_overflow() -> None:
    model, _ = fitted(2)
    far = 1e8 * np.sign(model.coef_[0])[None]
    for row, bound in ((far, 3.0), (-far, 0.0)):
        assert model.predict(row)[0, 0] == bound
        assert model.predict_quantile(row, 0.01)[0, 0] == bound
        assert np.isfinite(model.predict_interval(row)).all()
    np.testing.assert_allclose(np.sum([p[0, 0] for p in model.predict_bound_proba(far)]), 1.0)
