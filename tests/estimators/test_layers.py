"""What every low-rank model tells of its layers."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
)
from tests.estimators.problems import censored

MODELS = {
    "layer": SubspaceTobitRegressor(2, upper=3),
    "network": SubspaceNetworkRegressor(2, 2, upper=3),
    "search": SubspaceNetworkCV(ranks=[2], alphas=[0.1], upper=3, cv=2, random_state=0),
    "auto": AutoTobitRegressor(members=("stack",), upper=3, cv=2, random_state=0),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_layers_and_history(model: Any) -> None:
    X, Y = censored()
    model = clone(model)
    assert not hasattr(model, "layers_")
    model.fit(X, Y)
    assert len(model.layers_) == model.n_layers_
    np.testing.assert_array_equal(model.layers_[0].coef, model.coef_)
    np.testing.assert_array_equal(model.layers_[-1].sigma, model.sigma_)
    assert {"solver", "reason"} <= set(model.history_)


@pytest.mark.parametrize("name", ["network", "search", "auto"])
def test_stages_within_limits_of_their_own(name: str) -> None:
    X, Y = censored()
    model: Any = clone(MODELS[name]).fit(X, Y)
    limits = np.full(Y.shape, 1.0)
    *_, last = model.staged_predict(X, upper=limits)
    np.testing.assert_array_equal(last, model.predict(X, upper=limits))
