"""Ill-conditioned features against Newton's method in mpmath, at 50 digits.

Features that agree up to one part in ``condition`` determine a coefficient up to rounding times
that number, whatever the algorithm. Compared: coefficients, fitted scores and σ.

Agreement, alpha = 0: coefficients to 1e-15 · condition² (at least 1e-7), scores to 1e-7, up to a
condition of 1e5. Beyond 3e5 the direction is dropped with a warning that names the columns; scores
still agree with the optimum without it. With alpha > 0: all to 1e-6, for every condition, without a
warning. Low-rank models end at a relative gradient below 1e-6; streams, networks and
cross-validation score as they do without the copied feature, to 0.05.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import CollinearityWarning
from tests.audits.exact_tobit import Exact
from tests.audits.problems import (
    ESTIMATORS,
    censored,
    distance,
    exact,
    relative_error,
    shared_subspace,
)

CONDITIONS = [1e2, 1e4, 1e5, 1e6, 1e8, 1e10, 1e12]


def nearly_collinear(condition: float) -> tuple[FloatArray, FloatArray]:
    """Outcomes, and three features: the last is the first but for a share of 1/condition."""
    X, Y, _ = shared_subspace(n_rows=60)
    return np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 2] / condition]), censored(Y)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e5])
@pytest.mark.filterwarnings("ignore:features .* are nearly linearly dependent")
def test_resolved_directions_have_the_coefficients_of_mpmath(condition: float) -> None:
    X, Y = nearly_collinear(condition)
    model = TobitRegressor(upper=4.0).fit(X, Y[:, 0])
    reference = exact(X, Y[:, 0], 0.0, 4.0)
    scores = X @ reference.coef + reference.intercept
    assert relative_error(model.coef_[0], reference.coef) < max(1e-15 * condition**2, 1e-7)
    assert relative_error(model.predict(X, kind="latent"), scores) < 1e-7
    np.testing.assert_allclose(model.sigma_, reference.sigma, rtol=1e-7)


@cache
def optimum_without_the_copy() -> Exact:
    X, Y = nearly_collinear(CONDITIONS[0])
    return exact(X[:, :2], Y[:, 0], 0.0, 4.0)


@pytest.mark.parametrize("condition", CONDITIONS[3:])
def test_unresolved_directions_are_dropped_with_a_warning(condition: float) -> None:
    X, Y = nearly_collinear(condition)
    with pytest.warns(CollinearityWarning, match="'x0', 'x2' are constant or linearly dependent"):
        model = TobitRegressor(upper=4.0).fit(X, Y[:, 0])
    reference = optimum_without_the_copy()
    scores = X[:, :2] @ reference.coef + reference.intercept
    assert relative_error(model.predict(X, kind="latent"), scores) < 10.0 / condition + 1e-7
    np.testing.assert_allclose(model.coef_[0, [0, 2]], 0.5 * reference.coef[0], rtol=1e-4)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_ridge_determines_everything(condition: float) -> None:
    X, Y = nearly_collinear(condition)
    model = TobitRegressor(upper=4.0, alpha=0.01).fit(X, Y[:, 0])
    assert distance(model, exact(X, Y[:, 0], 0.0, 4.0, alpha=0.01)) < 1e-6


@pytest.mark.parametrize("alpha", [0.0, "auto"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_low_rank_models_reach_their_optimum(condition: float, alpha: Any) -> None:
    X, Y = nearly_collinear(condition)
    model = SubspaceTobitRegressor(2, upper=4.0, alpha=alpha, solver="batch").fit(X, Y)
    assert model.history_["converged"]
    assert model.history_["gradient_norm"] <= 1e-6
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("condition", CONDITIONS[::3])
@pytest.mark.parametrize("name", ["online", "network", "auto"])
def test_networks_and_streams_predict_as_without_the_copy(name: str, condition: float) -> None:
    X, Y = nearly_collinear(condition)
    model = ESTIMATORS[name](upper=4.0).fit(X, Y)
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.score(X, Y), score_without_the_copy(name), atol=0.05)


@cache
def score_without_the_copy(name: str) -> float:
    X, Y = nearly_collinear(CONDITIONS[0])
    return float(ESTIMATORS[name](upper=4.0).fit(X[:, :2], Y).score(X[:, :2], Y))
