"""Noise that vanishes and noise that drowns everything.

Compared, σ → 0: coefficients with the truth, whose error must fall in proportion to σ, and σ
itself, down to the documented floors; the Tobit also with Newton's method in mpmath. σ → ∞: every
estimator with the model without features. σ given: least squares and reduced-rank regression, which
do not depend on it.

Agreement: Tobit and mpmath to 1e-8 for σ from 1e-3 to 1e6 times the signal; least squares to 1e-9,
at reduced rank to 1e-5, for σ from 1e-6 to 1e6; coefficients within σ of the truth, and to 1e-12 of
it where there is no noise at all (low-rank models of censored outcomes: 1e-4); predictions under
pure noise no worse than the mean by more than 0.05 of the variance, on rows that were not seen.
"""

from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor, TobitRegressor
from tests.audits.problems import ESTIMATORS, distance, exact, relative_error, shared_subspace

VANISHING = [1e-1, 1e-2, 1e-3, 1e-4]


@pytest.mark.parametrize("sigma", [1e-3, 1e-2, 1e2, 1e4, 1e6])
def test_the_tobit_is_that_of_mpmath(sigma: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.maximum(X @ [1.0, -0.5] + 0.5 + sigma * rng.normal(size=60), 0.0)
    assert distance(TobitRegressor().fit(X, y), exact(X, y, 0.0)) < 1e-8


@pytest.mark.parametrize("sigma", [1e-6, 1.0, 1e6])
def test_a_given_sigma_of_any_size_leaves_least_squares_as_they_are(sigma: float) -> None:
    """Nothing censored: least squares, and their fitted values projected on two directions."""
    X, Y, _ = shared_subspace()
    centred, outcome = X - X.mean(axis=0), Y - Y.mean(axis=0)
    line = np.linalg.lstsq(centred, outcome)[0].T
    tobit = TobitRegressor(lower=None, sigma=sigma).fit(X, Y)
    assert relative_error(tobit.coef_, line) <= 1e-9
    directions = np.linalg.svd(centred @ line.T, full_matrices=False)[2][:2]
    model = SubspaceTobitRegressor(2, lower=None, alpha=0.0, sigma=sigma, solver="batch", tol=1e-9)
    model.fit(X, Y)
    assert relative_error(model.coef_, directions.T @ directions @ line) <= 1e-5


@pytest.mark.parametrize("sigma", VANISHING)
def test_errors_fall_with_the_noise(sigma: float) -> None:
    X, Y, coef = shared_subspace(sigma)
    Y = np.maximum(Y, 0.0)
    tobit = TobitRegressor().fit(X, Y)
    layer = SubspaceTobitRegressor(2, alpha=0.0, solver="batch").fit(X, Y)
    assert relative_error(tobit.coef_, coef) <= sigma
    assert relative_error(layer.coef_, coef) <= sigma
    np.testing.assert_allclose(tobit.sigma_, sigma, rtol=0.1)


@pytest.mark.parametrize("lower", [None, 0.0])
@pytest.mark.parametrize("name", ["tobit", "one layer", "network"])
def test_without_noise_the_truth_is_found(name: str, lower: float | None) -> None:
    model: Any = {
        "tobit": TobitRegressor(lower=lower),
        "one layer": SubspaceTobitRegressor(2, alpha=0.0, solver="batch", lower=lower),
        "network": SubspaceNetworkRegressor(2, 1, alpha=0.0, solver="batch", lower=lower),
    }[name]
    X, Y, coef = shared_subspace(0.0)
    Y = Y if lower is None else np.maximum(Y, lower)
    model.fit(X, Y)
    # Of a low-rank model the floor of σ is higher, and entries next to their bound feel it.
    tolerance = 1e-12 if lower is None or name == "tobit" else 1e-4
    assert relative_error(model.coef_, coef) <= tolerance
    assert relative_error(model.predict(X, kind="clip"), Y) <= tolerance
    assert (model.sigma_ > 0.0).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_without_noise_every_estimator_predicts_what_is_there(name: str) -> None:
    X, Y, _ = shared_subspace(0.0)
    Y = np.clip(Y, 0.0, 4.0)
    model = ESTIMATORS[name](upper=4.0).fit(X[:150], Y[:150])
    assert (model.sigma_ > 0.0).all()
    assert np.isfinite(model.score_log(X[150:], Y[150:]))
    assert model.score(X[150:], Y[150:]) > 0.9


@pytest.mark.parametrize("sigma", [1e2, 1e6])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "tobit"])
def test_under_noise_alone_the_mean_is_predicted(name: str, sigma: float) -> None:
    X, Y, _ = shared_subspace(sigma, n_rows=400)
    Y = np.clip(Y, 0.0, 3.0 * sigma)
    model = ESTIMATORS[name](upper=3.0 * sigma).fit(X[:200], Y[:200])
    assert model.score(X[200:], Y[200:]) > -0.05
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_allclose(model.sigma_ / sigma, 1.0, atol=0.25)
