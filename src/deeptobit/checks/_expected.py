"""What scikit-learn's own suite may find, and why."""

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
"""By class name {check: reason}, as ``check_estimator(expected_failed_checks=...)`` takes it."""
