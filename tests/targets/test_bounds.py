from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit.targets import BoundsLike, CensoredTargets, entry_bounds, task_bounds

NAMES = ("MMSE", "errors")


@pytest.mark.parametrize(
    ("lower", "expected"),
    [
        (None, [-np.inf, -np.inf]),
        (0, [0.0, 0.0]),
        (np.float32(0.5), [0.5, 0.5]),
        ([0, -1], [0.0, -1.0]),
        ((0, None), [0.0, -np.inf]),
        (np.array([0.0, -np.inf]), [0.0, -np.inf]),
        ({"MMSE": 0, "errors": -1}, [0.0, -1.0]),
        ({"errors": -1}, [-np.inf, -1.0]),
        ({"MMSE": None}, [-np.inf, -np.inf]),
        ({}, [-np.inf, -np.inf]),
        (pd.Series({"errors": -1, "MMSE": 0}), [0.0, -1.0]),
        (pd.Series({"errors": -1}), [-np.inf, -1.0]),
        (pd.Series([0, -1]), [0.0, -1.0]),
    ],
)
def test_every_way_to_write_lower_bounds(lower: BoundsLike, expected: list[float]) -> None:
    low, high = task_bounds(lower, None, NAMES)
    np.testing.assert_array_equal(low, expected)
    np.testing.assert_array_equal(high, [np.inf, np.inf])


@pytest.mark.parametrize(
    ("upper", "expected"),
    [(30, [30, 30]), ([30, None], [30, np.inf]), ({"errors": 7}, [np.inf, 7])],
)
def test_every_way_to_write_upper_bounds(upper: BoundsLike, expected: list[float]) -> None:
    low, high = task_bounds(None, upper, NAMES)
    np.testing.assert_array_equal(low, [-np.inf, -np.inf])
    np.testing.assert_array_equal(high, expected)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (
            {"MSME": 0},
            None,
            r"lower names unknown target\(s\) 'MSME'; the targets are 'MMSE', 'errors'",
        ),
        ({7: 0}, None, r"lower names unknown target\(s\) '7'; the targets are"),
        (None, {"a": 1, "MMSE": 2, "b": 3}, r"upper names unknown target\(s\) 'a', 'b'"),
        (0, [30, 0], "target 'errors': the lower bound 0 is not below the upper bound 0"),
        ([5, 0], 3, "target 'MMSE': the lower bound 5 is not below the upper bound 3"),
        (np.inf, None, "target 'MMSE': the lower bound inf is not below the upper bound inf"),
        ([0, 0, 0], None, r"lower must be .* one value per target \(2\); got 3 values"),
        (None, [[1, 2]], r"upper must be .* got 2 values of shape \(1, 2\)"),
        ([0, np.nan], None, "lower bound of target 'errors' is NaN; use None for an open side"),
        (None, np.nan, "upper bound of target 'MMSE' is NaN"),
        (np.ma.masked_equal([0, -999], -999), None, "lower bound of target 'errors' is NaN; use"),
        ("zero", None, "lower must hold numbers or None; got 'zero'"),
        (None, {"MMSE": "thirty"}, "upper must hold numbers or None"),
    ],
)
def test_wrong_task_bounds_are_refused(lower: Any, upper: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_bounds(lower, upper, NAMES)


COLUMNS = ("0", "1", "2")


@pytest.mark.parametrize(
    ("upper", "expected"),
    [
        ({0: 6.0}, [6, np.inf, np.inf]),
        ({np.int64(2): 6.0, "0": 5}, [5, np.inf, 6]),
        (pd.Series({2: 6.0, 0: 5.0}), [5, np.inf, 6]),
        (pd.Series([4.0, 5.0, 6.0]), [4, 5, 6]),
        (pd.Series({2: 4.0, 1: 5.0, 0: 6.0}), [6, 5, 4]),
        (pd.Series({7: 4.0, 8: 5.0, 9: 6.0}), [4, 5, 6]),
    ],
)
def test_numbers_name_the_columns_that_are_numbers(upper: Any, expected: list[float]) -> None:
    targets = CensoredTargets.from_bounds(pd.DataFrame(np.ones((2, 3))), upper=upper)
    assert targets.names == COLUMNS
    np.testing.assert_array_equal(targets.upper, expected)


@pytest.mark.parametrize("upper", [{0: 6.0, "0": 5.0}, pd.Series([6.0, 5.0], index=["0", "0"])])
def test_a_target_that_is_named_twice_is_refused(upper: Any) -> None:
    with pytest.raises(ValueError, match="upper names target '0' twice"):
        task_bounds(None, upper, COLUMNS)


def test_entry_bounds_are_copied_and_1d_ones_serve_a_single_task() -> None:
    given = np.array([0.5, 0.1])
    bounds = entry_bounds(given, 2, ["y"], "lower")
    np.testing.assert_array_equal(bounds, [[0.5], [0.1]])
    bounds[:] = 7.0
    np.testing.assert_array_equal(given, [0.5, 0.1])


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (np.zeros(3), r"lower must have the shape of Y, \(3, 2\); got \(3,\)"),
        (np.zeros((2, 3)), r"must have the shape of Y, \(3, 2\); got \(2, 3\)"),
        (np.zeros((3, 2, 1)), r"got \(3, 2, 1\)"),
        ([[0, 0], [0, np.nan], [0, 0]], "lower is NaN in row 1, column 1; write -inf or inf"),
        (
            np.ma.masked_equal([[0, 0], [0, 0], [0, -999]], -999),
            "lower is NaN in row 2, column 1; write -inf or inf",
        ),
        (
            pd.DataFrame(np.zeros((3, 2)), columns=["b", "a"]),
            "columns of lower are b, a, but the targets are a, b, in this order",
        ),
    ],
)
def test_wrong_entry_bounds_are_refused(bound: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entry_bounds(bound, 3, ["a", "b"], "lower")


def test_entry_bounds_replace_the_tasks_bounds() -> None:
    targets = CensoredTargets.from_bounds(
        [[0.5, 3.0], [0.5, 3.0]],
        lower=0.5,
        upper=9.0,
        entry_lower=[[0.5, 0.0], [0.1, 3.0]],
        entry_upper=[[4.0, 3.0], [4.0, 4.0]],
    )
    np.testing.assert_array_equal(targets.at_lower, [[True, False], [False, True]])
    np.testing.assert_array_equal(targets.at_upper, [[False, True], [False, False]])
    np.testing.assert_array_equal(targets.lower_bounds, [[0.5, 0.0], [0.1, 3.0]])
    np.testing.assert_array_equal(targets.upper_bounds, [[4.0, 3.0], [4.0, 4.0]])
    np.testing.assert_array_equal(targets.lower, [0.5, 0.5])
    np.testing.assert_array_equal(targets[1:].lower_bounds, [[0.1, 3.0]])
    np.testing.assert_array_equal(targets[[0]].upper_bounds, [[4.0, 3.0]])


def test_entry_bounds_out_of_order_name_target_count_and_rows() -> None:
    with pytest.raises(ValueError, match=r"'y1': .* not below .* in 2 row\(s\) \(rows 0, 2\)"):
        CensoredTargets.from_bounds(
            np.ones((3, 2)), lower=0, upper=2, entry_upper=[[2, 0], [2, 2], [2, -1]]
        )
