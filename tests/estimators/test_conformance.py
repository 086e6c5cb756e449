"""scikit-learn's own suite, on the default and on every variant that takes another path."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from deeptobit import TobitRegressor
from deeptobit.checks import EXPECTED_FAILED_CHECKS
from deeptobit.likelihood import StudentT

EXPECTED = EXPECTED_FAILED_CHECKS["TobitRegressor"]
ESTIMATORS = [
    TobitRegressor(),
    TobitRegressor(alpha=0.1, lower=None),
    TobitRegressor(alpha=0.1, lower=None, noise="logistic"),
    TobitRegressor(alpha=0.1, lower=None, noise="student_t"),
    TobitRegressor(alpha=0.1, lower=None, noise=StudentT(df=7)),
    TobitRegressor(alpha=0.1, lower=None, sigma=1.0),
    TobitRegressor(alpha=0.1, lower=None, fit_intercept=False),
    TobitRegressor(alpha=0.1, lower=None, standardize=False),
    TobitRegressor(alpha=0.1, lower=-500.0, upper=500.0, outside="clip", prediction="clip"),
]


def _expected(estimator: Any) -> dict[str, str]:
    """Failures may be expected of the default alone."""
    return EXPECTED if estimator.alpha == 0.0 else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """What became of every check of the default estimator."""
    results = check_estimator(
        TobitRegressor(), expected_failed_checks=EXPECTED, on_skip=None, on_fail=None
    )
    return {result["check_name"]: result for result in results}


def test_exactly_the_expected_checks_fail(outcomes: dict[str, dict[str, Any]]) -> None:
    status = {name: result["status"] for name, result in outcomes.items()}
    assert {name for name in status if status[name] == "xfail"} == set(EXPECTED)
    assert "failed" not in status.values()


@pytest.mark.parametrize("check", EXPECTED)
def test_an_expected_failure_has_the_stated_reason(
    check: str, outcomes: dict[str, dict[str, Any]]
) -> None:
    messages = {
        "the check's outcomes are negative": "lie below its lower bound",
        "fewer rows than features": "cannot determine 30 features without a penalty",
    }
    error = outcomes[check]["exception"]
    assert isinstance(error, ValueError)
    stated = [message for reason, message in messages.items() if reason in EXPECTED[check]]
    assert len(stated) == 1
    assert stated[0] in str(error)


@pytest.mark.parametrize(
    ("lower", "positive"),
    [(0.0, True), ([0.0, 2.0], True), (-1.0, False), ([0, -1], False), (None, False)],
)
def test_outcomes_are_tagged_positive_when_every_lower_bound_is(lower: Any, positive: bool) -> None:
    assert TobitRegressor(lower=lower).__sklearn_tags__().target_tags.positive_only is positive
