import pickle
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_validate, train_test_split
from sklearn.utils import _safe_indexing, check_consistent_length, indexable, resample, shuffle

from deeptobit.targets import CensoredTargets

Y = np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 5.0], [6.0, 7.0]])
UPPER = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, np.inf]])


@pytest.fixture
def targets() -> CensoredTargets:
    return CensoredTargets.from_bounds(Y, lower=0, entry_upper=UPPER, names=["a", "b"])


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, 3),
        slice(None, None, -2),
        np.array([True, False, False, True]),
        np.array([3, 0, 0]),
        [2, 1],
        np.array([], dtype=np.intp),
    ],
)
def test_rows_are_selected_as_in_an_array(targets: CensoredTargets, rows: Any) -> None:
    part = targets[rows]
    assert part.shape == Y[rows].shape
    assert len(part) == len(Y[rows])
    np.testing.assert_array_equal(part.values, Y[rows])
    np.testing.assert_array_equal(part.at_lower, targets.at_lower[rows])
    np.testing.assert_array_equal(part.upper_bounds, UPPER[rows])
    np.testing.assert_array_equal(part.lower, targets.lower)
    assert part.names == ("a", "b")


@pytest.mark.parametrize("row", [2, -1, np.int64(0)])
def test_one_row_keeps_two_axes(targets: CensoredTargets, row: int) -> None:
    assert targets[row].shape == (1, 2)
    assert targets[row].ndim == 2
    np.testing.assert_array_equal(targets[row].values, Y[[row]])


def test_a_row_too_far_is_an_index_error(targets: CensoredTargets) -> None:
    with pytest.raises(IndexError):
        targets[4]


@pytest.mark.parametrize("name", ["low", "high", "lower", "upper"])
def test_arrays_are_read_only_in_the_whole_and_in_its_parts(
    targets: CensoredTargets, name: str
) -> None:
    for part in (targets, targets[1:], targets[[0, 1]], targets[0]):
        with pytest.raises(ValueError, match="read-only"):
            getattr(part, name)[...] = 0.0


@pytest.mark.parametrize(
    "again", [copy, deepcopy, lambda targets: pickle.loads(pickle.dumps(targets))]
)
def test_copies_are_as_read_only_as_what_they_copy(targets: CensoredTargets, again: Any) -> None:
    other = again(targets)
    assert vars(other).keys() == vars(targets).keys()
    for name in ("low", "high", "lower", "upper", "entry_upper"):
        np.testing.assert_array_equal(getattr(other, name), getattr(targets, name))
        with pytest.raises(ValueError, match="read-only"):
            getattr(other, name)[...] = 0.0
    assert (other.names, other.entry_lower, other.one_dimensional) == (("a", "b"), None, False)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], "1 row, 2 targets: y0, y1; all observed"),
        (
            [[0.0, 1.0, 2.0, np.nan]] * 1500,
            [[0.0, 2.0, np.inf, np.nan]] * 1500,
            "1,500 rows, 4 targets: y0, y1, y2, …; 25 % at upper, 25 % intervals, 25 % missing",
        ),
        (np.r_[-np.inf, np.ones(299)], np.ones(300), "300 rows, 1 target: y; <1 % at lower"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "0 rows, 2 targets: y0, y1"),
    ],
)
def test_a_line_tells_rows_targets_and_shares(low: Any, high: Any, expected: str) -> None:
    assert repr(CensoredTargets.from_intervals(low, high)) == f"CensoredTargets({expected})"


@pytest.mark.parametrize(
    "ask",
    [
        np.asarray,
        lambda targets: np.array(targets, dtype=np.float64, copy=True),
        np.isnan,
        lambda targets: np.ones((4, 2)) - targets,
        lambda targets: r2_score(targets, Y),
        lambda targets: LinearRegression().fit(np.ones((4, 1)), targets),
    ],
    ids=range(6),
)
def test_it_is_no_array_and_says_what_is(targets: CensoredTargets, ask: Any) -> None:
    with pytest.raises(TypeError, match=r"is not an array: .* its \.values hold y or the bound it"):
        ask(targets)


@pytest.mark.parametrize(("given", "one_dimensional"), [(Y[:, 0], True), (Y[:, :1], False)])
def test_1d_outcomes_are_remembered_through_selection(given: Any, one_dimensional: bool) -> None:
    targets = CensoredTargets.from_bounds(given)
    assert targets.one_dimensional is one_dimensional
    assert targets[1:].one_dimensional is one_dimensional
    assert targets.shape == (4, 1)


def test_describe_counts_each_kind_and_names_each_target() -> None:
    low = [[0.0, -np.inf], [1.0, 1.0], [2.0, np.nan], [3.0, 2.0]]
    high = [[0.5, 0.0], [1.0, np.inf], [np.inf, np.nan], [3.0, 2.0]]
    table = CensoredTargets.from_intervals(low, high, lower=[None, 0], upper=9).describe()
    assert table.index.tolist() == ["y0", "y1"]
    assert table["entries"].tolist() == [4, 3]
    assert table["missing"].tolist() == [0, 1]
    assert table["at_lower"].tolist() == pytest.approx([0.0, 1 / 3])
    assert table["at_upper"].tolist() == pytest.approx([1 / 4, 1 / 3])
    assert table["interval"].tolist() == pytest.approx([1 / 4, 0.0])
    assert table["lower"].tolist() == [-np.inf, 0.0]
    assert table["upper"].tolist() == [9.0, 9.0]


def test_describe_shows_bounds_that_differ_from_row_to_row_as_nan() -> None:
    table = CensoredTargets.from_bounds(
        np.ones((2, 2)), lower=-5, entry_upper=[[2.0, 3.0], [2.0, 4.0]]
    ).describe()
    np.testing.assert_array_equal(table["upper"], [2.0, np.nan])
    np.testing.assert_array_equal(table["lower"], [-5.0, -5.0])


def test_describe_of_a_target_that_was_never_recorded() -> None:
    table = CensoredTargets.from_bounds([[np.nan, 1.0]] * 3, lower=0).describe()
    assert table["entries"].tolist() == [0, 3]
    assert table.loc["y0", "at_lower"] == 0.0


def test_train_test_split_cuts_features_and_targets_alike(targets: CensoredTargets) -> None:
    X = np.arange(4)
    X_train, X_test, train, test = train_test_split(X, targets, test_size=2, random_state=0)
    np.testing.assert_array_equal(train.values, Y[X_train])
    np.testing.assert_array_equal(test.values, Y[X_test])
    np.testing.assert_array_equal(test.upper_bounds, UPPER[X_test])


def test_tools_of_scikit_learn_select_rows(targets: CensoredTargets) -> None:
    X = np.arange(4)
    check_consistent_length(X, targets)
    assert indexable(X, targets)[1] is targets
    np.testing.assert_array_equal(_safe_indexing(targets, np.array([2, 0])).values, Y[[2, 0]])
    np.testing.assert_array_equal(_safe_indexing(targets, X > 1).values, Y[2:])
    for tool in (shuffle, resample):
        rows, chosen = tool(X, targets, random_state=0)
        np.testing.assert_array_equal(chosen.values, Y[rows])


class RowNumbers(BaseEstimator):  # type: ignore[misc]
    """Scores 1 where the rows of X and of the targets belong together."""

    def fit(self, X: Any, y: CensoredTargets) -> "RowNumbers":
        assert isinstance(y, CensoredTargets)
        np.testing.assert_array_equal(y.values, Y[X[:, 0]])
        return self

    def score(self, X: Any, y: CensoredTargets) -> float:
        return float(np.array_equal(y.values, Y[X[:, 0]], equal_nan=True))


def test_cross_validation_slices_targets(targets: CensoredTargets) -> None:
    X = np.arange(4)[:, None]
    cv = KFold(n_splits=4, shuffle=True, random_state=0)
    found = cross_validate(RowNumbers(), X, targets, cv=cv, error_score="raise")
    assert found["test_score"].tolist() == [1.0] * 4


@pytest.mark.parametrize("rows", [(slice(None), 0), np.ones((2, 2), dtype=bool)])
def test_only_rows_can_be_selected(rows: object) -> None:
    targets = CensoredTargets.from_bounds([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(IndexError, match="indexed by rows only"):
        targets[rows]


def test_no_rows_can_still_be_described() -> None:
    targets = CensoredTargets.from_bounds([[1.0]], entry_lower=[[0.5]])
    assert targets[:0].describe().loc["y", "entries"] == 0


def test_bounds_per_entry_are_read_only() -> None:
    targets = CensoredTargets.from_bounds([[1.0]], entry_lower=[[0.5]])
    with pytest.raises(ValueError, match="read-only"):
        targets.lower_bounds[0, 0] = 0.0
