"""Single against double precision.

Compared: models of features in float32 with models of the same numbers in float64, and with models
of the float64 features that they were rounded from, which is what rounding to 7 digits does.
Outcomes in float32 likewise.

Agreement of coefficients, σ and predictions, relative to the largest: 1e-12 for the same numbers,
because a model is computed in double precision whatever it is given; 1e-6 for rounded ones, here of
features around 0. Predictions for float32 features are float32, and agree with those for float64
features to 1e-6.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.audits.problems import (
    ESTIMATORS,
    LOWER,
    UPPER,
    censored,
    relative_error,
    shared_subspace,
)

EVERY_ESTIMATOR = pytest.mark.parametrize("name", ESTIMATORS)
KINDS = pytest.mark.parametrize("kind", ["mean", "clip", "latent"])


@cache
def fitted(name: str, features: str) -> Any:
    """A model of features that are doubles, doubles rounded to 7 digits, or singles."""
    X, Y, _ = shared_subspace()
    single = X.astype(np.float32)
    given = {"double": X, "rounded": single.astype(np.float64), "single": single}[features]
    return ESTIMATORS[name](lower=LOWER, upper=UPPER).fit(given, censored(Y))


def assert_same(found: Any, expected: Any, tolerance: float) -> None:
    X = shared_subspace()[0]
    assert relative_error(found.coef_, expected.coef_) <= tolerance
    assert relative_error(found.sigma_, expected.sigma_) <= tolerance
    assert relative_error(found.predict(X), expected.predict(X)) <= tolerance


@EVERY_ESTIMATOR
def test_singles_are_learned_as_doubles_are(name: str) -> None:
    assert_same(fitted(name, "single"), fitted(name, "rounded"), 1e-12)


@EVERY_ESTIMATOR
def test_seven_digits_of_the_features_are_enough(name: str) -> None:
    assert_same(fitted(name, "single"), fitted(name, "double"), 1e-6)


@KINDS
@EVERY_ESTIMATOR
def test_predictions_of_singles_are_singles(name: str, kind: str) -> None:
    X, model = shared_subspace()[0], fitted(name, "double")
    expected, found = model.predict(X, kind=kind), model.predict(X.astype(np.float32), kind=kind)
    assert found.dtype == np.float32
    assert expected.dtype == np.float64
    assert relative_error(found, expected) <= 1e-6


@EVERY_ESTIMATOR
def test_outcomes_in_single_precision_are_outcomes(name: str) -> None:
    X, Y, _ = shared_subspace()
    model = ESTIMATORS[name](lower=LOWER, upper=UPPER)
    model.fit(X, censored(Y).astype(np.float32))
    assert_same(model, fitted(name, "double"), 1e-6)
