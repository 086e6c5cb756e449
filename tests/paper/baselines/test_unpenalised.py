import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.exceptions import CensoringWarning
from paper.baselines import LeastSquaresBaseline, TobitBaseline

from_bounds = CensoredTargets.from_bounds


def test_every_task_is_the_unpenalised_tobit_where_the_data_determine_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    Y = np.maximum(X @ rng.standard_normal((3, 2)) + rng.standard_normal((80, 2)), 0.0)
    model = TobitBaseline().fit(X, from_bounds(Y, 0))
    reference = TobitRegressor(lower=0).fit(X, Y)
    assert_array_equal(model.alpha_, 0.0)
    assert_allclose(model.coef_, reference.coef_)
    assert_allclose(model.predict(X), reference.predict(X))


def test_a_task_that_the_data_do_not_determine_gets_a_ridge_and_is_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    Y = X[:, :3] + rng.standard_normal((60, 3)) + 1.0
    Y[:, 1] = np.where(np.arange(60) < 8, Y[:, 1].max(), -1.0)
    Y = np.maximum(Y, -1.0)
    with pytest.warns(CensoringWarning, match=r"target\(s\) 'y1' have too few values between"):
        model = TobitBaseline().fit(X, from_bounds(Y, -1))
    assert_array_equal(model.alpha_, [0.0, 0.001, 0.0])
    assert np.abs(model.coef_).max() < 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)
        alone = TobitBaseline().fit(X, from_bounds(Y[:, [0, 2]], -1))
    assert_allclose(model.coef_[[0, 2]], alone.coef_)


def test_a_feature_that_varies_only_where_a_task_is_censored_does_not_run_away() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = np.maximum(X[:, 0] + rng.standard_normal(60), 0.0)
    X[:, 1] = (y == 0.0) & (rng.random(60) < 0.5)
    with pytest.warns(CensoringWarning, match="a ridge of"):
        model = TobitBaseline().fit(X, from_bounds(y, 0))
    assert np.abs(model.coef_).max() < 100.0


def test_more_features_than_rows() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 30)), rng.standard_normal(20)
    with pytest.warns(CensoringWarning, match="'y'"):
        tobit = TobitBaseline().fit(X, from_bounds(y, -5))
    assert np.isfinite(tobit.predict(X)).all()
    least = LeastSquaresBaseline().fit(X, from_bounds(y))
    assert_allclose(least.predict(X)[:, 0], y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    shortest = np.linalg.pinv(Z) @ (y - y.mean())
    assert_allclose(Z @ shortest + y.mean(), least.predict(X)[:, 0])
    assert least.sigma_[0] > 0.3  # of rows held out, though it fits its own exactly


def test_least_squares_with_gaps_is_that_of_every_task_on_its_rows() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 4))
    Y[:10, 0] = Y[30:, 2] = np.nan
    model = LeastSquaresBaseline().fit(X, from_bounds(Y))
    for task in range(4):
        known = ~np.isnan(Y[:, task])
        reference = LinearRegression().fit(X[known], Y[known, task])
        assert_allclose(model.predict(X)[:, task], reference.predict(X), atol=1e-10)
