"""Rows that lie outside the data that a model was fitted to."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from deeptobit import AutoTobitRegressor, SubspaceTobitRegressor, TobitRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.estimators.inputs import feature_limits


def data(n_samples: int = 200) -> tuple[FloatArray, FloatArray]:
    """Volume in ml, and a flag that one row in a hundred has."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(6.0, 1.0, n_samples), np.arange(n_samples) % 100 == 0])
    return X, np.clip(5.0 + 2.0 * X[:, :1] + rng.normal(size=(n_samples, 2)), 0.0, 30.0)


def outside(model: Any, X: Any) -> list[Any]:
    found = model.predict_distribution(X)["outside_the_data"]
    assert str(found.dtype) == "boolean"
    return list(found.iloc[::2])  # two targets


@pytest.mark.parametrize(
    "model",
    [
        TobitRegressor(upper=30.0),
        SubspaceTobitRegressor(1, upper=30.0),
        AutoTobitRegressor(upper=30.0, members=["stack"], cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_another_unit_is_outside_and_a_rare_flag_is_not(model: Any, tmp_path: Path) -> None:
    X, Y = data()
    model.fit(X, Y)
    new = [[6.0, 0.0], [6.0, 1.0], [6800.0, 0.0], [8.9, 0.0]]
    assert outside(model, new) == [False, False, True, False]
    model.save(tmp_path / "a.model")
    assert outside(load(tmp_path / "a.model"), new) == [False, False, True, False]


def test_sparse_rows_streams_and_few_rows_have_no_percentiles() -> None:
    X, Y = data()
    models = (
        TobitRegressor(upper=30.0).fit(csr_array(X), Y),
        SubspaceTobitRegressor(1, upper=30.0).partial_fit(X, Y),
        TobitRegressor(upper=30.0).fit(X[:15, :1], Y[:15]),
    )
    for model in models:
        assert outside(model, [[6800.0, 0.0][: model.n_features_in_]]) == [pd.NA]
    known = TobitRegressor(upper=30.0).fit(X, Y)
    assert known.fit(csr_array(X), Y).predict_distribution(X[:1])["outside_the_data"].isna().all()


def test_limits_are_those_of_a_normal_distribution() -> None:
    X = np.random.default_rng(0).normal(70.0, 8.0, size=(20_000, 2))
    X[::7, 1] = np.nan
    for below, above in np.transpose(feature_limits(X)):
        assert below == pytest.approx(70.0 - 3.5 * 8.0, abs=6.0)
        assert above == pytest.approx(70.0 + 3.5 * 8.0, abs=6.0)
