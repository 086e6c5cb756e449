from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from deeptobit.arrays import FloatArray
from deeptobit.targets import CensoredTargets

MANY_BELOW = np.where(np.arange(20)[:, None] % 3 == 1, [1.0, -2.0], [1.0, 5.0])


def test_a_value_at_its_bound_is_censored_there_and_nan_is_missing() -> None:
    Y = np.array([[0, 30], [12, np.nan], [30, 0]])
    targets = CensoredTargets.from_bounds(Y, lower=0, upper=[30, 31])
    np.testing.assert_array_equal(targets.low, [[-np.inf, 30], [12, np.nan], [30, -np.inf]])
    np.testing.assert_array_equal(targets.high, [[0, 30], [12, np.nan], [np.inf, 0]])
    np.testing.assert_array_equal(targets.at_lower, [[True, False], [False, False], [False, True]])
    np.testing.assert_array_equal(targets.at_upper, [[False, False], [False, False], [True, False]])
    np.testing.assert_array_equal(targets.missing, [[False, False], [False, True], [False, False]])
    np.testing.assert_array_equal(targets.observed, [[False, True], [True, False], [False, False]])
    np.testing.assert_array_equal(targets.values, Y)


def test_bounds_per_entry_decide_where_given() -> None:
    targets = CensoredTargets.from_bounds([0.2, 0.2], entry_lower=[0.2, 0.1])
    np.testing.assert_array_equal(targets.low, [[-np.inf], [0.2]])
    np.testing.assert_array_equal(targets.high, [[0.2], [0.2]])
    np.testing.assert_array_equal(targets.lower, [-np.inf])


def test_without_bounds_every_number_is_observed() -> None:
    targets = CensoredTargets.from_bounds([[-1e99, 0.0], [1e99, np.nan]])
    np.testing.assert_array_equal(targets.observed, [[True, True], [True, False]])


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=8))
def test_clipping_gives_what_the_clipped_values_give(scores: list[float]) -> None:
    clipped = CensoredTargets.from_bounds(scores, -1, 1, outside="clip")
    expected = CensoredTargets.from_bounds(np.clip(scores, -1, 1), -1, 1)
    np.testing.assert_array_equal(clipped.low, expected.low)
    np.testing.assert_array_equal(clipped.high, expected.high)
    np.testing.assert_array_equal(clipped.values.ravel(), np.clip(scores, -1, 1))


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[1, 5], [2, -3]], r"'y1': 1 value\(s\) lie below its lower bound \(row 1; the first is"),
        ([[1, -0.5]], "the first is -0.5, the bound 0"),
        ([[11, 5], [2, 3], [10.5, 3]], r"'y0': 2 value\(s\) lie above its upper bound \(rows 0, 2"),
        (MANY_BELOW, r"'y1': 7 value\(s\) .* \(rows 1, 4, 7, 10, 13, …; the first is -2"),
        ([[1, -3]], "outside='clip'"),
    ],
)
def test_a_value_outside_its_bounds_is_refused(Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CensoredTargets.from_bounds(Y, lower=0, upper=10)


def test_a_value_outside_its_own_bound_is_refused_with_that_bound() -> None:
    with pytest.raises(ValueError, match=r"\(row 1; the first is 0.2, the bound 0.3\)"):
        CensoredTargets.from_bounds([0.2, 0.2], entry_lower=[0.1, 0.3])


def test_outside_takes_two_words() -> None:
    with pytest.raises(ValueError, match="outside must be 'raise' or 'clip'; got 'ignore'"):
        CensoredTargets.from_bounds([1.0], outside="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (None, "Y is None: this requires y to be passed"),
        ([[1, 2], [3, np.inf]], "infinity or a value too large: target 'y1', row 1"),
        ([-np.inf, 2], "target 'y', row 0.*from_intervals"),
        ([[1, "mild"], [2, 3]], "numbers .NaN where missing.; found 'mild' at row 0, column 1"),
        ([1.0, "severe"], "found 'severe' at row 1$"),
        (np.zeros((2, 2, 2)), "Y must be 1-d or 2-d .* got 3 dimensions"),
        (5.0, "got 0 dimensions"),
        (np.zeros((3, 0)), "Y has no column: there is no target to learn"),
        (np.ones(3) + 1j, "Complex data not supported in Y"),
    ],
)
def test_outcomes_that_are_not_numbers_are_refused(Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CensoredTargets.from_bounds(Y)


def test_sparse_outcomes_are_refused() -> None:
    sparse: Any = csr_array(np.eye(3))
    with pytest.raises(TypeError, match="Y is sparse; pass a dense array"):
        CensoredTargets.from_bounds(sparse)


def test_what_is_no_table_is_named() -> None:
    thing: Any = "MMSE.csv"
    with pytest.raises(ValueError, match=r"Y must hold numbers .*; got 'MMSE\.csv'"):
        CensoredTargets.from_bounds(thing)


def test_names_of_targets_differ() -> None:
    with pytest.raises(ValueError, match=r"target names must differ; 'MMSE' occur\(s\) twice"):
        CensoredTargets.from_bounds(np.ones((3, 2)), names=["MMSE", "MMSE"])


def test_as_many_names_as_targets() -> None:
    with pytest.raises(ValueError, match=r"Y has 2 target\(s\) but 1 name\(s\) were given"):
        CensoredTargets.from_bounds(np.ones((3, 2)), names=["a"])


@pytest.mark.parametrize(
    ("Y", "names", "expected"),
    [
        ([1.0, 2.0], None, ("y",)),
        ([[1.0, 2.0]], None, ("y0", "y1")),
        ([[1.0, 2.0]], ["a", "b"], ("a", "b")),
        (pd.DataFrame({"MMSE": [1.0], 3: [2.0]}), None, ("MMSE", "3")),
        (pd.DataFrame({"MMSE": [1.0]}), ["mine"], ("mine",)),
        (pd.Series([1.0, 2.0], name="MMSE"), None, ("MMSE",)),
        (pd.Series([1.0, 2.0]), None, ("y",)),
    ],
)
def test_names_come_from_the_data_or_the_caller(
    Y: Any, names: list[str] | None, expected: tuple[str, ...]
) -> None:
    assert CensoredTargets.from_bounds(Y, names=names).names == expected


def test_bounds_by_name_meet_the_columns_of_a_frame() -> None:
    frame = pd.DataFrame({"MMSE": [30, 20], "errors": [0, 3]})
    targets = CensoredTargets.from_bounds(frame, {"errors": 0}, {"MMSE": 30})
    np.testing.assert_array_equal(targets.at_lower, [[False, True], [False, False]])
    np.testing.assert_array_equal(targets.at_upper, [[True, False], [False, False]])


@pytest.mark.parametrize(
    "missing",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"a": [1.0, np.nan]}, dtype="float32"),
        [[1.0], [None]],
    ],
)
def test_every_way_to_write_missing(missing: Any) -> None:
    targets = CensoredTargets.from_bounds(missing)
    np.testing.assert_array_equal(targets.missing, [[False], [True]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_never_modified_nor_shared(order: Any) -> None:
    Y = np.array([[0.0, 1.0], [2.0, np.nan]], order=order)
    bounds: list[FloatArray] = [np.zeros(2), np.full(2, 5.0), np.full((2, 2), 0.0)]
    before = [array.copy() for array in (Y, *bounds)]
    targets = CensoredTargets.from_bounds(Y, bounds[0], bounds[1], entry_lower=bounds[2])
    for array, copy in zip((Y, *bounds), before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert array.flags.writeable
    Y[:], bounds[0][:] = 9.0, 9.0
    np.testing.assert_array_equal(targets.values, before[0])
    np.testing.assert_array_equal(targets.lower, [0.0, 0.0])
