"""The Tobit against Newton's method in mpmath, at 50 digits.

Compared: coefficients, intercept, σ and log likelihood of TobitRegressor at its default tolerance,
for outcomes without bounds, with one and with two, and with a ridge. (Against R, with standard
errors and tests: ``tests/estimators/test_tobit_r.py``, to 1e-6.)

Agreement: parameters to 1e-7, log likelihood to 1e-13, both relative. With a ridge the log
likelihood is not at its own maximum, and agrees to 1e-10.
"""

import numpy as np
import pytest

from deeptobit import TobitRegressor
from tests.audits.problems import censored, distance, exact, shared_subspace

BOUNDS = [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 4.0), (0.0, 4.0)]


@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_the_optimum_is_that_of_mpmath(lower: float, upper: float, alpha: float) -> None:
    X, Y, _ = shared_subspace(n_rows=40)
    X, y = X[:, :2] * [1.0, 30.0] + [0.0, 5.0], censored(Y[:, 0])
    model = TobitRegressor(lower=lower, upper=upper, alpha=alpha).fit(X, y)
    reference = exact(X, y, lower, upper, alpha=alpha)
    assert distance(model, reference) < 1e-7
    rtol = 1e-13 if alpha == 0.0 else 1e-10
    np.testing.assert_allclose(model.log_likelihood_, reference.log_likelihood, rtol=rtol)
