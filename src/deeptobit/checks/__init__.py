"""Checks that ship with the package: what scikit-learn's own suite may find, and why.

``EXPECTED_FAILED_CHECKS`` maps a class name to {check: reason}, in the form that
``sklearn.utils.estimator_checks.check_estimator(expected_failed_checks=...)`` takes. It holds only
what follows from the contract of the estimators.
"""

_NEGATIVE = "the check's outcomes are negative, and values below lower = 0 are refused by default"
_TOO_FEW_ROWS = "the check has fewer rows than features; with alpha = 0 that is refused"

EXPECTED_FAILED_CHECKS: dict[str, dict[str, str]] = {
    "SubspaceNetworkCV": {"check_regressor_multioutput": _NEGATIVE},
    "SubspaceNetworkRegressor": {"check_regressor_multioutput": _NEGATIVE},
    "SubspaceTobitRegressor": {"check_regressor_multioutput": _NEGATIVE},
    "TobitRegressor": {
        "check_regressor_multioutput": _NEGATIVE,
        "check_sample_weight_equivalence_on_dense_data": _TOO_FEW_ROWS,
        "check_sample_weight_equivalence_on_sparse_data": _TOO_FEW_ROWS,
    },
}

__all__ = ["EXPECTED_FAILED_CHECKS"]
