"""Outcomes at scale 1e12, shifted by 1e9, and in a unit that is a power of two.

Compared: coefficients, intercepts, σ and predictions of every estimator with those of the same
outcomes around 1, after the units are taken back.

Agreement: bit for bit in units of 2⁻⁴⁰, which change the exponent of every number and round
nothing; 1e-9 for 1e12; 1e-6 of the largest for a shift by 1e9, at which a double has
seven digits behind the point left. The same for features, and for models that go on learning.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.arrays import FloatArray
from tests.audits.problems import (
    ESTIMATORS,
    LOWER,
    UPPER,
    censored,
    relative_error,
    shared_subspace,
)

EVERY_ESTIMATOR = pytest.mark.parametrize("name", ESTIMATORS)
UNITS = {2.0**-40: 0.0, 1e12: 1e-9}
EVERY_UNIT = pytest.mark.parametrize("unit", UNITS)
SHIFT = 1e9


def data() -> tuple[FloatArray, FloatArray]:
    X, Y, _ = shared_subspace()
    return X, censored(Y)


@cache
def plain(name: str) -> Any:
    return ESTIMATORS[name](lower=LOWER, upper=UPPER).fit(*data())


@EVERY_UNIT
@EVERY_ESTIMATOR
def test_outcomes_in_other_units(name: str, unit: float) -> None:
    (X, Y), tolerance = data(), UNITS[unit]
    model = ESTIMATORS[name](lower=LOWER * unit, upper=UPPER * unit).fit(X, Y * unit)
    for attribute in ("coef_", "intercept_", "sigma_"):
        found, expected = getattr(model, attribute) / unit, getattr(plain(name), attribute)
        assert relative_error(found, expected) <= tolerance, attribute
    for kind in ("mean", "clip", "latent"):
        found, expected = model.predict(X, kind=kind) / unit, plain(name).predict(X, kind=kind)
        assert relative_error(found, expected) <= tolerance, kind


@EVERY_ESTIMATOR
def test_outcomes_of_another_origin(name: str) -> None:
    X, Y = data()
    model = ESTIMATORS[name](lower=LOWER + SHIFT, upper=UPPER + SHIFT).fit(X, Y + SHIFT)
    for attribute in ("coef_", "sigma_"):
        found, expected = getattr(model, attribute), getattr(plain(name), attribute)
        assert relative_error(found, expected) <= 1e-6, attribute
    for kind in ("mean", "clip", "latent"):
        found, expected = model.predict(X, kind=kind) - SHIFT, plain(name).predict(X, kind=kind)
        assert relative_error(found, expected) <= 1e-6, kind


@EVERY_UNIT
@EVERY_ESTIMATOR
def test_features_in_other_units(name: str, unit: float) -> None:
    (X, Y), tolerance = data(), UNITS[unit]
    model = ESTIMATORS[name](lower=LOWER, upper=UPPER).fit(X * unit, Y)
    assert relative_error(model.coef_ * unit, plain(name).coef_) <= tolerance
    assert relative_error(model.predict(X * unit), plain(name).predict(X)) <= tolerance


@EVERY_ESTIMATOR
def test_features_of_another_origin(name: str) -> None:
    X, Y = data()
    near = np.round(X * 2.0**20) / 2.0**20
    expected = ESTIMATORS[name](lower=LOWER, upper=UPPER).fit(near, Y)
    model = ESTIMATORS[name](lower=LOWER, upper=UPPER).fit(near + SHIFT, Y)
    assert relative_error(model.coef_, expected.coef_) <= 1e-6
    assert relative_error(model.predict(near + SHIFT), expected.predict(near)) <= 1e-6


@EVERY_UNIT
@pytest.mark.parametrize("name", ["batch", "network"])
def test_a_model_that_goes_on_learning_knows_no_units(name: str, unit: float) -> None:
    assert relative_error(continued(name, unit), continued(name, 1.0)) <= UNITS[unit]


@cache
def continued(name: str, unit: float) -> FloatArray:
    X, Y = data()
    model = ESTIMATORS[name](lower=0.0, upper=UPPER * unit).fit(X[:100], Y[:100] * unit)
    return np.asarray(model.partial_fit(X[100:], Y[100:] * unit).predict(X) / unit)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_a_search_over_penalties_and_depths_knows_no_units(unit: float) -> None:
    np.testing.assert_array_equal(chosen(unit), chosen(1.0))


@cache
def chosen(unit: float) -> FloatArray:
    X, Y = data()
    model = SubspaceNetworkCV(alphas=3, ranks=[1, 2], cv=2, upper=UPPER * unit, random_state=0)
    return np.asarray(model.fit(X, Y * unit).predict(X) / unit)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_a_network_that_was_tuned_knows_no_units(unit: float) -> None:
    """Tuning amplifies what rounds differently, but powers of two do not round."""
    np.testing.assert_array_equal(tuned(unit), tuned(1.0))


@cache
def tuned(unit: float) -> FloatArray:
    X, Y = data()
    model = SubspaceNetworkRegressor(2, 2, lower=0.0, upper=UPPER * unit, joint_tuning=True)
    return np.asarray(model.fit(X, Y * unit).predict(X) / unit)
