"""Features that tell censored from observed entries perfectly."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.estimators.diagnosis import separating_direction
from deeptobit.exceptions import CensoringWarning, SeparationWarning
from tests.estimators.problems import assert_close, bounded, censored, one_task

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

NAMES = ["age", "volume", "ward"]


def separated(n_samples: int = 200, n_wards: int = 8) -> tuple[pd.DataFrame, FloatArray]:
    """A ward in which every outcome is at the lower bound 0."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 3))
    X[:, 2] = np.arange(n_samples) < n_wards
    y = np.maximum(X[:, 0] + rng.normal(size=n_samples), 0.0)
    y[:n_wards] = 0.0
    return pd.DataFrame(X, columns=NAMES), y


@pytest.mark.parametrize(
    ("n_samples", "settings"),
    [
        (200, {}),
        (200, {"noise": "logistic"}),
        (200, {"standardize": False}),
        (200, {"sigma": 1.0}),
        (200, {"noise": "student_t"}),
        (200, {"tol": 1e-4}),
        (5000, {}),
    ],
    ids=str,
)
def test_a_dummy_of_censored_rows_alone_is_named(n_samples: int, settings: dict[str, Any]) -> None:
    X, y = separated(n_samples)
    with pytest.warns(SeparationWarning, match=r"target 'y': .*\('ward'\) separates censored from"):
        model = TobitRegressor(**settings).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_[0, 2] < -3.0
    np.testing.assert_allclose(model.predict(X)[:8], 0.0, atol=1e-3)


def test_the_other_coefficients_are_those_without_the_separated_rows() -> None:
    X, y = separated()
    with pytest.warns(SeparationWarning):
        model = TobitRegressor().fit(X, y)
    rest = TobitRegressor().fit(X.iloc[8:, :2], y[8:])
    assert_close(model.coef_[:, :2], rest.coef_, 1e-5)
    assert_close(model.sigma_, rest.sigma_, 1e-5)
    assert_close(model.log_likelihood_, rest.log_likelihood_, 1e-5)


def test_separation_at_the_upper_bound_is_named_too() -> None:
    X, y = separated()
    with pytest.warns(SeparationWarning, match="'ward'"):
        model = TobitRegressor(lower=None, upper=0.0).fit(X, -y)
    assert model.coef_[0, 2] > 3.0


def test_only_the_separated_target_is_named() -> None:
    X, y = separated()
    other = np.maximum(y + np.random.default_rng(0).normal(size=len(y)), 0.0)
    Y = pd.DataFrame({"MMSE": other, "errors": y})
    with pytest.warns(SeparationWarning) as caught:
        TobitRegressor().fit(X, Y)
    assert ["'errors'" in str(warning.message) for warning in caught] == [True]


@pytest.mark.parametrize("X", ["slope", "two tails"])
def test_a_measured_feature_that_separates_is_named(X: str) -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(200, 2))
    if X == "slope":  # positive only where y is at its bound
        features[:, 1] = np.where(rng.random(200) < 0.3, np.abs(features[:, 1]), 0.0)
        y = np.maximum(features[:, 0] + rng.normal(size=200), 0.0)
        y[features[:, 1] > 0.0] = 0.0
        with pytest.warns(SeparationWarning, match="'x1'"):
            TobitRegressor().fit(features, y)
    else:  # every entry at the bound that the sign of the feature says
        y = np.where(features[:, 1] > 0.0, 3.0, 0.0)
        with pytest.warns(CensoringWarning), pytest.warns(SeparationWarning, match="'x1'"):
            bounded().fit(features, y)


def test_a_ridge_ends_separation() -> None:
    X, y = separated()
    model = TobitRegressor(alpha=0.1).fit(X, y)
    assert -3.0 < model.coef_[0, 2] < -0.5


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_data_have_no_separating_direction(seed: int) -> None:
    X, Y = censored(seed)
    problem: Any = bounded().fit(X, Y)._trained.problem
    assert [separating_direction(problem, task) for task in range(2)] == [None, None]


def test_data_without_censoring_have_no_separating_direction() -> None:
    X, y = one_task()
    problem: Any = TobitRegressor(lower=None).fit(X, y)._trained.problem
    assert separating_direction(problem, 0) is None


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_separating_direction_moves_censored_scores_outward_alone(fit_intercept: bool) -> None:
    X, y = separated()
    model = TobitRegressor(alpha=0.1, fit_intercept=fit_intercept).fit(X, y)
    problem: Any = model._trained.problem
    direction = separating_direction(problem, 0)
    assert direction is not None
    rows = np.vstack([block.dense() for _, block in problem.features.blocks()])
    change = rows @ direction[:-1] + direction[-1]
    np.testing.assert_allclose(change[y > 0.0], 0.0, atol=1e-7)
    assert (change[y == 0.0] < 1e-7).all()
    assert (change[:8] < -0.01).all()
    assert fit_intercept or direction[-1] == 0.0
