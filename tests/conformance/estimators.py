"""One estimator of each class, and of each way to fit it, as the conformance tests take them."""

from typing import Any

import numpy as np
import pytest

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)

SCALES: dict[str, Any] = {"lower": [0.0, -np.inf, 10.0], "upper": [30.0, np.inf, np.inf]}

ESTIMATORS: dict[str, Any] = {
    "tobit": TobitRegressor(),
    "tobit on scales": TobitRegressor(noise="student_t", alpha=0.1, **SCALES),
    "mixed": MixedTobitRegressor(**SCALES),
    "subspace": SubspaceTobitRegressor(rank=2),
    "subspace online": SubspaceTobitRegressor(rank=2, solver="online", batch_size=8),
    "network": SubspaceNetworkRegressor(rank=2, n_layers=2, **SCALES),
    "cv": SubspaceNetworkCV(cv=2, ranks=[2], alphas=[0.1], max_layers=1),
    "auto": AutoTobitRegressor(cv=2, random_state=0, **SCALES),
}
SLOW: dict[str, Any] = {
    "three layers": SubspaceNetworkRegressor(),
    "default cv": SubspaceNetworkCV(cv=3, **SCALES),
}


def every(*names: str) -> pytest.MarkDecorator:
    """Run a test on the estimators of these names; on all of them if none is given."""
    chosen = {name: ESTIMATORS[name] for name in names or ESTIMATORS}
    slow = {} if names else SLOW
    cases = [pytest.param(estimator, id=name) for name, estimator in chosen.items()]
    cases += [pytest.param(slow[name], id=name, marks=pytest.mark.slow) for name in slow]
    return pytest.mark.parametrize("estimator", cases)


EVERY_ESTIMATOR = every()
EVERY_STREAM = every("subspace", "subspace online", "network")
