"""One of each estimator, settled so that it is fitted in milliseconds."""

from typing import Any

import pytest

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)

MODELS: dict[str, Any] = {
    "tobit": TobitRegressor(upper=3.0, alpha=0.05),
    "subspace": SubspaceTobitRegressor(rank=2, upper=3.0),
    "network": SubspaceNetworkRegressor(rank=2, n_layers=2, upper=3.0, joint_tuning=False),
    "cv": SubspaceNetworkCV(
        ranks=[2], alphas=[0.05], max_layers=1, cv=2, upper=3.0, random_state=0
    ),
    "auto": AutoTobitRegressor(
        members=("stack",), cv=2, noise="gaussian", upper=3.0, random_state=0
    ),
}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
