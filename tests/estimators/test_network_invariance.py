"""What must not change the predictions of a network: units, orders, weights, formats.

Tuning goes downhill in many steps on an objective with kinks, and amplifies what differs at its
start: layers grown to tol = 1e-9 agree to 1e-15 there and to 1e-7 after 70 steps; at the default
tol they agree to 1e-10, and predictions to a few hundredths of a standard deviation.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from tests.estimators.problems import SPARSE_FORMATS, assert_close
from tests.estimators.test_network import data, network

CASES: dict[str, tuple[dict[str, Any], float]] = {
    "tuned": ({"tol": 1e-9}, 1e-3),
    "grown": ({"joint_tuning": False}, 1e-6),
    "naive": ({"joint_tuning": False, "skip_connection": False}, 1e-6),
    "sparsity": ({"joint_tuning": False, "feature_sparsity": 0.5}, 1e-4),
    "calibrated": ({"joint_tuning": False, "sigma": "calibrate"}, 1e-6),
}
EVERY_CASE = pytest.mark.parametrize("case", CASES)


def settings(case: str) -> tuple[dict[str, Any], float]:
    options, tolerance = CASES[case]
    return {"upper": 8.0, "outside": "clip"} | options, tolerance


@cache
def _reference(case: str) -> FloatArray:
    X, Y = data()
    model = network(**settings(case)[0]).fit(X, Y)
    assert model.history_["tuning"]["kept"] is (case == "tuned")
    return model.predict(X)


def reference(case: str) -> FloatArray:
    """Predictions of the model of the data as they are."""
    return _reference(case).copy()


@EVERY_CASE
def test_units_and_origins_of_features(case: str) -> None:
    X, Y = data()
    options, tolerance = settings(case)
    moved = X * np.array([1e3, 1.0, 0.01, 7.0]) + np.array([0.0, 5.0, -1.0, 100.0])
    assert_close(network(**options).fit(moved, Y).predict(moved), reference(case), tolerance)


@EVERY_CASE
def test_units_and_origins_of_targets_with_their_bounds(case: str) -> None:
    X, Y = data()
    options, tolerance = settings(case)
    units, origins = np.array([1e3, 1.0, 0.01, 7.0, 1.0, 1.0]), np.array([1.0, 0, -3, 0, 0, 9])
    options |= {"lower": origins, "upper": 8.0 * units + origins}
    predictions = network(**options).fit(X, Y * units + origins).predict(X)
    assert_close((predictions - origins) / units, reference(case), tolerance)


@EVERY_CASE
def test_orders_of_rows_features_and_targets(case: str) -> None:
    X, Y = data()
    options, tolerance = settings(case)
    rng = np.random.default_rng(0)
    rows, columns, tasks = (rng.permutation(n) for n in (*X.shape, Y.shape[1]))
    model = network(**options).fit(X[rows][:, columns], Y[rows][:, tasks])
    assert_close(model.predict(X[:, columns]), reference(case)[:, tasks], tolerance)


@EVERY_CASE
def test_a_weight_is_the_number_of_times_a_row_is_there(case: str) -> None:
    X, Y = data()
    options, tolerance = settings(case)
    times = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = network(**options).fit(X, Y, sample_weight=times)
    repeated = network(**options).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert_close(weighted.predict(X), repeated.predict(X), tolerance)


def test_at_the_default_tolerance_tuned_predictions_change_by_little() -> None:
    X, Y = data()
    model = network().fit(X, Y)
    predictions = model.predict(X)
    assert model.history_["tuning"]["kept"]
    moved = X * np.array([1e3, 1.0, 0.01, 7.0])
    weight = np.full(len(X), 1.0)
    others = (
        network().fit(moved, Y).predict(moved),
        network().fit(X[::-1], Y[::-1], sample_weight=weight).predict(X),
    )
    for other in others:
        assert (np.abs(other - predictions).max(axis=0) < 0.1 * predictions.std(axis=0)).all()


@EVERY_CASE
@pytest.mark.parametrize("form", SPARSE_FORMATS[:1], ids=lambda form: form.__name__)
def test_sparse_features(case: str, form: Any) -> None:
    X, Y = data()
    X = np.where(X > -0.5, X + 1.0, 0.0)
    options, tolerance = settings(case)
    dense, sparse = network(**options).fit(X, Y), network(**options).fit(form(X), Y)
    assert_close(sparse.predict(form(X)), dense.predict(X), tolerance)
    for stage in (0, 1):
        assert_close(sparse.transform(form(X), stage), sparse.transform(X, stage), 1e-10)


@pytest.mark.parametrize("case", ["tuned", "grown"])
def test_single_precision_is_answered_in_single_precision(case: str) -> None:
    X, Y = data()
    single = X.astype(np.float32)
    model = network(**settings(case)[0]).fit(single, Y.astype(np.float32))
    predictions = model.predict(single)
    assert predictions.dtype == np.float32
    assert next(model.staged_predict(single)).dtype == np.float32
    assert model.coef_.dtype == np.float64
    assert_close(predictions, reference(case), 0.02)


def test_a_fit_repeats_itself_to_the_bit() -> None:
    X, Y = data(200)
    model = network(joint_tuning=True).fit(X, Y)
    first = model.predict(X)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), first)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), first)


def test_inputs_are_not_modified() -> None:
    X, Y = data(150)
    Y[3, 1] = np.nan
    arrays = X, Y, np.ones(150), np.zeros_like(Y)
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    model = network(joint_tuning=True).fit(X, Y, sample_weight=arrays[2], lower=arrays[3])
    model.predict(X)
    model.transform(X)
    list(model.staged_predict(X))
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
