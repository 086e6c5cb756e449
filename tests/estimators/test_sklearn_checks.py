"""scikit-learn's own suite on one estimator of each class."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.checks import EXPECTED_FAILED_CHECKS

ESTIMATORS = [
    TobitRegressor(),
    MixedTobitRegressor(),
    SubspaceTobitRegressor(),
    SubspaceNetworkRegressor(),
    SubspaceNetworkCV(cv=2, ranks=[2], alphas=[0.1], max_layers=1),
    AutoTobitRegressor(cv=2),
]
EXPECTED = [
    pytest.param(estimator, check, reason, id=f"{type(estimator).__name__}-{check}")
    for estimator in ESTIMATORS
    for check, reason in EXPECTED_FAILED_CHECKS[type(estimator).__name__].items()
]


def _expected(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILED_CHECKS[type(estimator).__name__]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([SubspaceNetworkCV()], expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn_check_of_the_defaults(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize(("estimator", "check", "reason"), EXPECTED)
def test_an_expected_failure_has_its_stated_reason_and_no_other(
    estimator: Any, check: str, reason: str
) -> None:
    message = (
        "lie below its lower bound"
        if "negative" in reason
        else "cannot determine 30 features without a penalty"
    )
    run, name = getattr(estimator_checks, check), type(estimator).__name__
    with pytest.raises(ValueError, match=message):
        run(name, clone(estimator))
    penalty = {"alpha": 0.1} if isinstance(estimator, TobitRegressor) else {}
    run(name, clone(estimator).set_params(lower=-500.0, outside="clip", **penalty))


@pytest.mark.parametrize(
    ("lower", "positive"),
    [(0.0, True), ([0.0, 2.0], True), (-1.0, False), ([0, -1], False), (None, False)],
)
def test_outcomes_are_tagged_positive_when_every_lower_bound_is(lower: Any, positive: bool) -> None:
    assert TobitRegressor(lower=lower).__sklearn_tags__().target_tags.positive_only is positive
