"""Every check on every estimator, baselines and a pipeline among them."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from paper import baselines
from tests.conformance.suite import Check, all_checks

SCALES: dict[str, Any] = {"lower": [0.0, -np.inf, 10.0], "upper": [30.0, np.inf, np.inf]}

QUICK: dict[str, Any] = {
    "tobit": TobitRegressor(),
    "tobit on scales": TobitRegressor(noise="student_t", alpha=0.1, **SCALES),
    "tobit in a pipeline": make_pipeline(StandardScaler(), TobitRegressor()),
    "subspace": SubspaceTobitRegressor(rank=2),
    "subspace online": SubspaceTobitRegressor(rank=2, solver="online", batch_size=8),
    "network": SubspaceNetworkRegressor(rank=2, n_layers=2, **SCALES),
    "cv on a grid": SubspaceNetworkCV(cv=2, ranks=[2], alphas=[0.1], max_layers=1),
    "intercept only": baselines.InterceptOnly(lower=0.0),
}
SLOW: dict[str, Any] = {
    "tobit before censoring": TobitRegressor(upper=30.0, prediction="latent"),
    "subspace with logistic noise": SubspaceTobitRegressor(rank=2, noise="logistic", **SCALES),
    "subspace from a random start": SubspaceTobitRegressor(
        rank=2, solver="online", start="random", step_size=1e-2
    ),
    "three layers": SubspaceNetworkRegressor(),
    "network online": SubspaceNetworkRegressor(rank=2, n_layers=2, solver="online"),
    "network stopped early": SubspaceNetworkRegressor(rank=2, n_layers=2, early_stopping=True),
    "auto": AutoTobitRegressor(cv=3, **SCALES),
    "least squares": baselines.LeastSquaresBaseline(**SCALES),
    "ridge": baselines.RidgeBaseline(**SCALES),
    "lasso": baselines.LassoBaseline(**SCALES),
    "multi-task lasso": baselines.MultiTaskLassoBaseline(**SCALES),
    "forest": baselines.ForestBaseline(cv=2, **SCALES),
    "tobit baseline": baselines.TobitBaseline(**SCALES),
    "ridge tobit": baselines.RidgeTobit(**SCALES),
    "trace norm": baselines.TraceNormBaseline(cv=2, **SCALES),
    "group lasso": baselines.GroupLassoBaseline(cv=2, **SCALES),
    "censored trace norm": baselines.TraceNormBaseline(censored=True, cv=2, **SCALES),
    "censored group lasso": baselines.GroupLassoBaseline(censored=True, cv=2, **SCALES),
    "mlp": baselines.MLPBaseline(n_layers=2, width=4, lower=0.0),
    "factorised mlp": baselines.FactorisedMLPBaseline(1, n_layers=2, width=4, lower=0.0),
    "deep": baselines.DeepBaseline("iii", rank=2, n_layers=2, width=4, lower=0.0),
}


QUICK_IN_ANOTHER_PROCESS = ("tobit", "network")  # one takes seconds to start


def _is_slow(label: str, check: str) -> bool:
    if check == "check_same_seed_across_processes":
        return label not in QUICK_IN_ANOTHER_PROCESS
    return label in SLOW or (label == "cv on a grid" and check == "check_n_jobs_changes_nothing")


def _cases() -> list[Any]:
    return [
        pytest.param(
            estimator,
            check,
            id=f"{label}-{name}",
            marks=[pytest.mark.slow] if _is_slow(label, name) else [],
        )
        for label, estimator in (QUICK | SLOW).items()
        for name, check in all_checks(estimator)
    ]


@pytest.mark.parametrize(("estimator", "check"), _cases())
def test_check(estimator: Any, check: Check) -> None:
    check(clone(estimator))
