"""Outcomes at their bound in 99 % of the rows, against Newton's method in mpmath.

Compared: coefficients, intercept, σ and log likelihood of TobitRegressor with 6 of 600 entries
observed, on either side and with a ridge; of SubspaceTobitRegressor at full rank, where it is the
same model; and what every estimator predicts for such a task. (A low-rank model with such a task is
compared with R in ``test_reduced_rank_r.py``.)

Agreement: parameters to 1e-6, log likelihood to 1e-12 (with a ridge, where it is not at its own
maximum, to 1e-8); predicted means stay within the bounds, and average to the recorded mean within
half of it, those of the stream within all of it.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from tests.audits.exact_tobit import Exact
from tests.audits.problems import ESTIMATORS, distance, exact, relative_error, shared_subspace

N_ROWS = 600


def rare() -> tuple[FloatArray, FloatArray]:
    """Two features, and an outcome that is above 0 in one row of a hundred."""
    X, Y, _ = shared_subspace(n_rows=N_ROWS)
    bound = np.sort(Y[:, 0])[-N_ROWS // 100 - 1]
    return X[:, :2], np.maximum(Y[:, 0] - bound, 0.0)


@cache
def expected(alpha: float) -> Exact:
    return exact(*rare(), lower=0.0, alpha=alpha)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["lower", "upper"])
def test_the_optimum_is_that_of_mpmath(sign: float, alpha: float) -> None:
    X, y = rare()
    assert (y == 0.0).mean() == 0.99
    bounds: dict[str, Any] = {"upper": None} if sign > 0.0 else {"lower": None, "upper": 0.0}
    model = TobitRegressor(alpha=alpha, **bounds).fit(X, sign * y)
    reference = expected(alpha)
    mirrored = reference._replace(coef=sign * reference.coef, intercept=sign * reference.intercept)
    assert distance(model, mirrored) < 1e-6
    rtol = 1e-12 if alpha == 0.0 else 1e-8
    np.testing.assert_allclose(model.log_likelihood_, reference.log_likelihood, rtol=rtol)


def test_at_full_rank_the_low_rank_model_is_the_same() -> None:
    X, y = rare()
    other = np.maximum(shared_subspace(n_rows=N_ROWS)[1][:, 1], 0.0)
    model = SubspaceTobitRegressor(2, alpha=0.0, solver="batch", tol=1e-9)
    model.fit(X, np.column_stack([y, other]))
    assert relative_error(model.coef_[0], expected(0.0).coef) < 1e-6
    np.testing.assert_allclose(model.sigma_[0], expected(0.0).sigma, rtol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_predictions_average_to_the_recorded_mean(name: str) -> None:
    X, Y, _ = shared_subspace(n_rows=N_ROWS)
    Y[:, 0] -= np.sort(Y[:, 0])[-N_ROWS // 100 - 1]
    Y = np.clip(Y, 0.0, 4.0)
    predicted = ESTIMATORS[name](lower=0.0, upper=4.0).fit(X, Y).predict(X)
    assert predicted.min() >= 0.0
    assert predicted.max() <= 4.0
    share = 1.0 if name == "online" else 0.5
    assert abs(predicted[:, 0].mean() - Y[:, 0].mean()) <= share * Y[:, 0].mean()
