"""Confidence intervals hold the truth as often as they say; every task is a repetition."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray

COEF = np.array([1.0, -0.5])
TRUTH = {"x0": 1.0, "x1": -0.5, "(intercept)": 0.5, "log(sigma)": 0.0}
N_SAMPLES, N_REPETITIONS = 150, 300


def draw(scale: Any = 1.0, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Latent outcomes of the same features in every column, with noise of that scale per row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, 2))
    noise = rng.normal(size=(N_SAMPLES, N_REPETITIONS))
    spread = scale(X)[:, None] if callable(scale) else scale
    return X, (X @ COEF + 0.5)[:, None] + spread * noise


def coverage(table: pd.DataFrame) -> pd.Series:
    """How often the interval of each term holds the truth."""
    truth = table.index.get_level_values("term").map(TRUTH)
    inside = (table["ci_low"] <= truth) & (truth <= table["ci_high"])
    return inside.groupby("term").mean()


@cache
def censored_model() -> TobitRegressor:
    X, latent = draw()
    return TobitRegressor(lower=0.0, upper=2.0).fit(X, np.clip(latent, 0.0, 2.0))


@pytest.mark.parametrize(("cov_type", "confidence"), [("observed", 0.8), ("robust", 0.95)])
def test_censored_coefficients_are_covered_at_the_stated_rate(
    cov_type: Any, confidence: float
) -> None:
    rates = coverage(censored_model().summary(cov_type=cov_type, confidence=confidence))
    # Three standard deviations of a share of 300, and a little for so few rows.
    slack = 3.0 * np.sqrt(confidence * (1.0 - confidence) / N_REPETITIONS) + 0.015
    assert rates.drop("log(sigma)").sub(confidence).abs().max() < slack
    assert rates["log(sigma)"] > confidence - 2.0 * slack


def test_robust_intervals_cover_where_the_noise_is_not_as_assumed() -> None:
    X, latent = draw(scale=lambda X: 0.2 + X[:, 0] ** 2, seed=1)
    model = TobitRegressor(lower=None).fit(X, latent)
    observed = coverage(model.summary())["x0"]
    robust = coverage(model.summary(cov_type="robust"))["x0"]
    assert observed < 0.8
    assert 0.85 < robust < 0.98


def test_clustered_intervals_cover_where_rows_repeat() -> None:
    X, latent = draw(seed=2)
    visits = np.repeat(np.arange(N_SAMPLES), 3)
    model = TobitRegressor(lower=0.0).fit(X[visits], np.maximum(latent[visits, :150], 0.0))
    assert coverage(model.summary(cov_type="robust"))["x0"] < 0.8
    assert 0.9 < coverage(model.summary(cov_type="cluster", groups=visits))["x0"] < 0.98


def test_tests_of_a_true_null_reject_at_their_level() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_SAMPLES, 2))
    Y = np.maximum(0.3 + rng.normal(size=(N_SAMPLES, 1000)), 0.0)
    model = TobitRegressor().fit(X, Y)
    for test in (model.wald_test(), model.likelihood_ratio_test()):
        assert 0.03 < (test["p_value"] < 0.05).mean() < 0.075
        assert 0.45 < (test["p_value"] < 0.5).mean() < 0.55
