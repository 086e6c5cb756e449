"""Marginal effects and intervals of the mean, against differences of predictions."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import (
    bounded,
    censored,
    estimate,
    jacobian,
    moved,
    numerical_covariance,
    one_task,
)

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

STEP = 1e-3


def uncensored_probability(model: TobitRegressor, X: FloatArray) -> FloatArray:
    at_lower, at_upper = model.predict_bound_proba(X)
    return 1.0 - at_lower - at_upper


PREDICTED: dict[str, Callable[[TobitRegressor, FloatArray], FloatArray]] = {
    "latent": lambda model, X: model.predict(X, kind="latent"),
    "mean": lambda model, X: model.predict(X),
    "uncensored": uncensored_probability,
}
EVERY_KIND = pytest.mark.parametrize("kind", PREDICTED)
EVERY_NOISE = pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
EVERY_BOUND = pytest.mark.parametrize(
    "bounds", [{"lower": 0.0, "upper": 3.0}, {"lower": 0.0}, {"lower": None, "upper": 3.0}], ids=str
)


def average_slopes(model: TobitRegressor, X: FloatArray, kind: str) -> FloatArray:
    """(T, D): the slope of a prediction by each feature, averaged over the rows."""
    slopes = []
    for d in range(X.shape[1]):
        shift = STEP * (np.arange(X.shape[1]) == d)
        rise = PREDICTED[kind](model, X + shift) - PREDICTED[kind](model, X - shift)
        slopes.append(np.atleast_1d(rise.mean(axis=0)) / (2.0 * STEP))
    return np.column_stack(slopes)


@cache
def with_covariance(
    noise: str, lower: float | None, upper: float | None
) -> tuple[TobitRegressor, FloatArray]:
    """A model of one task, and the covariance of its parameters by differences."""
    X, y = one_task()
    model = TobitRegressor(noise=noise, lower=lower, upper=upper).fit(X, y)
    return model, numerical_covariance(model, X, y)


@EVERY_KIND
@EVERY_NOISE
@EVERY_BOUND
def test_effects_are_average_slopes_of_predictions(
    kind: Any, noise: str, bounds: dict[str, Any]
) -> None:
    X, Y = censored()
    model = TobitRegressor(noise=noise, **bounds).fit(X, Y)
    effects = model.marginal_effects(X[:40], kind)
    np.testing.assert_allclose(
        effects["effect"], average_slopes(model, X[:40], kind).ravel(), rtol=1e-4, atol=1e-6
    )


@EVERY_KIND
@EVERY_NOISE
def test_errors_of_effects_are_the_delta_method(kind: Any, noise: str) -> None:
    X, _ = one_task()
    model, covariance = with_covariance(noise, 0.0, 3.0)

    def effects(point: FloatArray) -> FloatArray:
        return np.asarray(average_slopes(moved(model, point), X, kind)[0])

    slopes = jacobian(effects, estimate(model), 1e-3)
    variance = np.diag(slopes @ covariance @ slopes.T)
    np.testing.assert_allclose(
        model.marginal_effects(X, kind)["std_err"], np.sqrt(variance), rtol=2e-3
    )


def test_errors_of_effects_are_their_spread_over_repetitions() -> None:
    # Every task is a repetition of the same experiment.
    X, Y = repetitions(n_samples=200, n_tasks=400)
    effects = bounded().fit(X, Y).marginal_effects(X[:50])
    spread = effects["effect"].groupby("feature").std(ddof=0)
    claimed = effects["std_err"].groupby("feature").mean()
    np.testing.assert_allclose(claimed, spread, rtol=0.12)


def repetitions(n_samples: int, n_tasks: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """The same regression observed again and again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 2))
    latent = X @ [1.0, -0.5] + 0.8
    return X, np.clip(latent[:, None] + rng.normal(size=(n_samples, n_tasks)), 0.0, 3.0)


def test_latent_effects_are_the_coefficients_of_the_summary() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    effects = model.marginal_effects(X, "latent", cov_type="robust", confidence=0.8)
    summary = model.summary(cov_type="robust", confidence=0.8)
    features = summary[summary.index.get_level_values("term").str.startswith("x")]
    np.testing.assert_allclose(effects, features, rtol=1e-9)


def test_without_bounds_a_mean_effect_is_the_coefficient() -> None:
    X, Y = censored()
    model = TobitRegressor(lower=None).fit(X, Y)
    np.testing.assert_allclose(model.marginal_effects(X)["effect"], model.coef_.ravel())
    np.testing.assert_allclose(model.marginal_effects(X, "uncensored")["effect"], 0.0, atol=1e-12)


def test_effects_are_named_by_target_and_feature() -> None:
    X, Y = censored()
    frame = pd.DataFrame(X, columns=["age", "volume", "marker"])
    model = bounded().fit(frame, pd.DataFrame(Y, columns=["MMSE", "errors"]))
    effects = model.marginal_effects(frame)
    assert effects.index.names == ["target", "feature"]
    assert effects.index.tolist()[2:4] == [("MMSE", "marker"), ("errors", "age")]
    with pytest.raises(ValueError, match="kind must be 'latent', 'mean' or 'uncensored'; got 'x'"):
        model.marginal_effects(frame, "x")  # type: ignore[arg-type]


@EVERY_NOISE
@EVERY_BOUND
def test_narrow_intervals_of_the_mean_are_the_delta_method(
    noise: str, bounds: dict[str, Any]
) -> None:
    model, covariance = with_covariance(noise, bounds["lower"], bounds.get("upper"))
    rows = one_task()[0][:20]

    def mean(point: FloatArray) -> FloatArray:
        return moved(model, point).predict(rows)

    slopes = jacobian(mean, estimate(model))
    error = np.sqrt(np.diag(slopes @ covariance @ slopes.T))
    low, high = model.predict_mean_interval(rows, confidence=0.01, small_sample=False)
    reach = norm.ppf(0.505) * error
    np.testing.assert_allclose(model.predict(rows) - low, reach, rtol=2e-2)
    np.testing.assert_allclose(high - model.predict(rows), reach, rtol=2e-2)


def test_intervals_of_the_mean_far_beyond_a_bound_are_finite_and_hold_the_mean() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    rows = np.outer([-1e6, -50.0, -5.0, 5.0, 50.0, 1e6], [1.0, 0.0, 0.0])
    low, high = model.predict_mean_interval(rows)
    mean = model.predict(rows)
    assert ((low >= 0.0) & (low <= mean) & (mean <= high) & (high <= 3.0)).all()


def test_intervals_of_the_mean_hold_the_truth_at_their_rate() -> None:
    X, Y = repetitions(n_samples=200, n_tasks=300, seed=1)
    latent = X[:25] @ [1.0, -0.5] + 0.8
    steps = norm.ppf((np.arange(5000) + 0.5) / 5000)
    truth = np.clip(latent[:, None] + steps, 0.0, 3.0).mean(axis=1)
    low, high = bounded().fit(X, Y).predict_mean_interval(X[:25], confidence=0.9)
    inside = (low <= truth[:, None]) & (truth[:, None] <= high)
    assert abs(inside.mean() - 0.9) < 0.02


def test_intervals_of_the_mean_shrink_with_the_data_and_stay_within_the_bounds() -> None:
    X, y = one_task(n_samples=3200)
    widths = []
    for n in (200, 800, 3200):
        low, high = bounded().fit(X[:n], y[:n]).predict_mean_interval(X)
        assert (low >= 0.0).all()
        assert (high <= 3.0).all()
        widths.append(float(np.mean(high - low)))
    np.testing.assert_allclose(np.divide(widths[:-1], widths[1:]), 2.0, rtol=0.2)


def test_intervals_of_the_mean_refuse_other_confidences_and_covariances() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1; got 90"):
        model.predict_mean_interval(X, 90)
    with pytest.raises(ValueError, match="cov_type must be"):
        model.predict_mean_interval(X, cov_type="HC3")  # type: ignore[arg-type]
    robust = model.predict_mean_interval(X, cov_type="robust", small_sample=False)
    clusters = model.predict_mean_interval(
        X, cov_type="cluster", groups=np.arange(len(X)), small_sample=False
    )
    np.testing.assert_allclose(clusters, robust, rtol=1e-9)
