"""scikit-learn's own suite on every baseline."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from paper.baselines import networks as _network_training
from paper.baselines.leastsquares import (
    ForestBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
)
from paper.baselines.networks import DeepBaseline, FactorisedMLPBaseline, MLPBaseline
from paper.baselines.penalised import GroupLassoBaseline, TraceNormBaseline
from paper.baselines.tobit import InterceptOnly, RidgeTobit, TobitBaseline

QUICK = [InterceptOnly(), LeastSquaresBaseline()]
TUNED = [
    RidgeBaseline(),
    LassoBaseline(cv=2),
    MultiTaskLassoBaseline(cv=2),
    ForestBaseline(cv=2),
    TobitBaseline(),
    RidgeTobit(cv=2),
    TraceNormBaseline(cv=2),
    GroupLassoBaseline(cv=2),
    TraceNormBaseline(censored=True, cv=2),
    GroupLassoBaseline(censored=True, cv=2),
]
NETWORKS = [
    MLPBaseline(n_layers=2, width=4),
    FactorisedMLPBaseline(1, n_layers=2, width=4),
    DeepBaseline(rank=1, n_layers=2, width=4),
]


@parametrize_with_checks(QUICK)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(TUNED)  # type: ignore[untyped-decorator]
def test_scikit_learn_check_of_tuned_baselines(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores on the handful of rows that some checks bring
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(NETWORKS)  # type: ignore[untyped-decorator]
def test_scikit_learn_check_of_networks(
    estimator: Any, check: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_network_training, "_MAX_EPOCHS", 40)
    check(estimator)
