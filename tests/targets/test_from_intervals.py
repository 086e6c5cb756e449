from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit.targets import CensoredTargets

LOW = [[1.0, -np.inf], [2.0, 3.0], [np.nan, -np.inf]]
HIGH = [[1.0, 0.0], [np.inf, 5.0], [np.nan, np.inf]]


def test_every_kind_of_entry_in_one_matrix() -> None:
    targets = CensoredTargets.from_intervals(LOW, HIGH)
    np.testing.assert_array_equal(targets.observed, [[True, False], [False, False], [False, False]])
    np.testing.assert_array_equal(targets.at_lower, [[False, True], [False, False], [False, False]])
    np.testing.assert_array_equal(targets.at_upper, [[False, False], [True, False], [False, False]])
    np.testing.assert_array_equal(targets.has_value, [[True, True], [True, False], [False, False]])
    np.testing.assert_array_equal(targets.missing, [[False, False], [False, False], [True, True]])
    np.testing.assert_array_equal(targets.values, [[1.0, 0.0], [2.0, 4.0], [np.nan, np.nan]])


def test_an_interval_that_holds_everything_is_missing_at_both_ends() -> None:
    targets = CensoredTargets.from_intervals([-np.inf], [np.inf])
    assert np.isnan(targets.low).all()
    assert np.isnan(targets.high).all()


def test_bounds_of_the_scale_are_for_predictions_only() -> None:
    targets = CensoredTargets.from_intervals(LOW, HIGH, lower=0, upper={"y1": 30})
    np.testing.assert_array_equal(targets.lower, [0, 0])
    np.testing.assert_array_equal(targets.upper, [np.inf, 30])
    np.testing.assert_array_equal(targets.low, CensoredTargets.from_intervals(LOW, HIGH).low)


def test_an_exact_value_outside_the_scale_is_refused() -> None:
    message = r"'y1': 1 value\(s\) lie above its upper bound \(row 1; .* or open their intervals on"
    with pytest.raises(ValueError, match=message):
        CensoredTargets.from_intervals(
            [[1.0, -np.inf], [2.0, 4.0]], [[1.0, 3.0], [2.0, 4.0]], upper=3
        )


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (pd.DataFrame(LOW, columns=["a", "b"]), pd.DataFrame(HIGH, columns=["a", "b"])),
        (pd.DataFrame(LOW, columns=["a", "b"]), HIGH),
    ],
)
def test_names_come_from_low(low: Any, high: Any) -> None:
    assert CensoredTargets.from_intervals(low, high).names == ("a", "b")


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0, 2, 5], [1, 1, 4], r"'y': 2 interval\(s\) are empty .* \(rows 1, 2; .* \[2, 1\]\)"),
        ([0, np.nan], [1, 4], r"1 interval\(s\) are empty or half missing \(row 1; .* \[nan, 4\]"),
        ([0.0], [np.nan], r"half missing \(row 0; the first is \[0, nan\]\)"),
        ([np.inf], [np.inf], r"the first is \[inf, inf\]"),
        ([-np.inf], [-np.inf], r"the first is \[-inf, -inf\]"),
        ([[0, 1], [0, 9]], [[1, 1], [1, 1]], r"'y1': .* low must not exceed high"),
        ([[1.0], [2.0]], [[1.0]], r"low has shape \(2, 1\) but high has \(1, 1\)"),
        ([[1.0, 2.0]], [1.0, 2.0], r"low has shape \(1, 2\) but high has \(2, 1\)"),
        (["low"], [1.0], "low must hold numbers .* found 'low' at row 0"),
        ([1.0], None, "high is None"),
    ],
)
def test_impossible_intervals_are_refused(low: Any, high: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CensoredTargets.from_intervals(low, high)


def test_inputs_are_never_modified_nor_shared() -> None:
    low, high = np.array([1.0, -np.inf]), np.array([2.0, np.inf])
    targets = CensoredTargets.from_intervals(low, high)
    np.testing.assert_array_equal(low, [1.0, -np.inf])
    low[:] = 0.0
    assert targets.low[0, 0] == 1.0
    assert high.flags.writeable


def test_columns_in_another_order_are_refused() -> None:
    low = pd.DataFrame({"a": [1.0], "b": [2.0]})
    high = pd.DataFrame({"b": [2.0], "a": [1.0]})
    with pytest.raises(ValueError, match="the columns of low and high differ: a, b against b, a"):
        CensoredTargets.from_intervals(low, high)
