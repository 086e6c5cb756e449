"""Rows without a weight or an outcome count as if they were not there."""

from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor, datasets
from deeptobit.arrays import FloatArray

MODELS = {
    "layer": SubspaceTobitRegressor(2, upper=6.0, solver="online"),
    "network": SubspaceNetworkRegressor(2, 2, upper=6.0, solver="online"),
}


def _rows() -> tuple[FloatArray, FloatArray]:
    X, Y, _ = datasets.make_subspace(
        900, 5, 3, 2, sigma=1.0, latent_sd=2.5, upper=6.0, random_state=0
    )
    return X, Y


def _fitted(model: Any, X: FloatArray, Y: FloatArray, **weights: FloatArray) -> FloatArray:
    return np.asarray(model.fit(X, Y, **weights).predict(_rows()[0]))


@pytest.mark.parametrize("silent", [slice(0, 600), slice(600, 900), slice(0, 900, 2)])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_fit_does_not_see_them(model: Any, silent: slice) -> None:
    X, Y = _rows()
    told = np.ones(900, dtype=bool)
    told[silent] = False
    expected = _fitted(model, X[told], Y[told])
    unknown = np.where(told[:, None], Y, np.nan)
    np.testing.assert_array_equal(_fitted(model, X, unknown), expected)
    wild = np.where(told[:, None], X, 1e3 * X)
    np.testing.assert_array_equal(
        _fitted(model, wild, Y, sample_weight=told.astype(float)), expected
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_fitted_model_goes_on_without_them(model: Any) -> None:
    X, Y = _rows()
    seen = slice(0, 500)
    expected = model.fit(X[seen], Y[seen]).partial_fit(X[700:], Y[700:]).predict(X)
    late = np.where(np.arange(500, 900)[:, None] < 700, np.nan, Y[500:])
    found = model.fit(X[seen], Y[seen]).partial_fit(X[500:], late).predict(X)
    np.testing.assert_array_equal(found, expected)
