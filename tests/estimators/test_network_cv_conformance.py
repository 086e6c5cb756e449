"""scikit-learn's own suite on the automatic model and the search of networks."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from deeptobit import AutoTobitRegressor, SubspaceNetworkCV
from deeptobit.checks import EXPECTED_FAILED_CHECKS

DEFAULTS = [AutoTobitRegressor(), SubspaceNetworkCV()]
ESTIMATORS = [
    AutoTobitRegressor(cv=2),
    SubspaceNetworkCV(cv=2, lower=None, alphas=2, ranks=[2]),
]


def _expected(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILED_CHECKS[type(estimator).__name__] if estimator.lower == 0.0 else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(DEFAULTS, expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn_check_of_the_defaults(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
