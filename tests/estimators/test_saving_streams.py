"""A loaded model goes on with ``partial_fit`` as from a fitted one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.likelihood import StudentT
from tests.estimators.problems import censored
from tests.estimators.saved import assert_same, round_trip

X, Y = censored(n_samples=1300, n_features=4, n_tasks=3)
LAYER, NETWORK = SubspaceTobitRegressor, SubspaceNetworkRegressor


@pytest.mark.parametrize(
    "model",
    [
        LAYER(2, upper=3.0),
        LAYER(2, upper=3.0, alpha=0.3, feature_sparsity=0.9),
        NETWORK(2, 2, upper=3.0, joint_tuning=False),
        NETWORK(2, 2, upper=3.0, skip_connection=False),
    ],
    ids=["layer", "sparse", "network", "without skip connection"],
)
def test_a_fitted_model_goes_on_exactly(model: Any, tmp_path: Path) -> None:
    model.fit(X[:150], Y[:150])
    again = round_trip(model, tmp_path)
    for rows in (slice(150, 151), slice(151, 900)):
        model.partial_fit(X[rows], Y[rows])
        again.partial_fit(X[rows], Y[rows])
    assert model.n_iter_ == again.n_iter_ == 900
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize(
    "model",
    [
        LAYER(2, upper=3.0),
        LAYER(2, upper=3.0, noise=StudentT(5), sigma=1.0, batch_size=8),
        NETWORK(2, 2, upper=3.0),
    ],
    ids=["layer", "batches", "network"],
)
@pytest.mark.parametrize("n_before", [100, 700])
def test_a_stream_goes_on_as_from_a_fitted_model(model: Any, n_before: int, tmp_path: Path) -> None:
    """The solver stays behind, with the rows that waited for their block; the model does not."""
    model = clone(model).partial_fit(X[:n_before], Y[:n_before])
    again = round_trip(model, tmp_path)
    assert_same(model.predict(X), again.predict(X))
    assert X[n_before - 1, 0].tobytes() not in (tmp_path / "a.model").read_bytes()
    before = again.score(X[1000:], Y[1000:])
    again.partial_fit(X[n_before:1000], Y[n_before:1000])
    assert again.n_iter_ == 1000
    assert again.score(X[1000:], Y[1000:]) > before - 0.02


def test_rows_count_however_often_a_model_is_saved(tmp_path: Path) -> None:
    model = LAYER(2, upper=3.0).fit(X[:200], Y[:200])
    for start in range(200, 1000, 200):
        rows = slice(start, start + 200)
        model = round_trip(model.partial_fit(X[rows], Y[rows]), tmp_path)
    assert model.n_iter_ == 1000
    assert model._rows_behind.weight == 1000.0
    np.testing.assert_allclose(model._rows_behind.mean_squares, (X[:1000] ** 2).mean(axis=0))
