"""Trees as arrays: walks, contributions and what is refused."""

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from deeptobit.arrays import FloatArray
from deeptobit.network import Trees

N_FEATURES = 4


@pytest.fixture(scope="module")
def rows() -> FloatArray:
    return np.random.default_rng(0).normal(size=(60, N_FEATURES))


@pytest.fixture(scope="module")
def regressors(rows: FloatArray) -> list[DecisionTreeRegressor]:
    rng = np.random.default_rng(1)
    outcomes = rows[:, 0] * rows[:, 1] + rows[:, 2] + rng.normal(size=len(rows))
    return [
        DecisionTreeRegressor(max_leaf_nodes=n, random_state=0).fit(rows, outcomes)
        for n in (7, 3, 9)
    ]


@pytest.fixture(scope="module")
def trees(regressors: list[DecisionTreeRegressor]) -> Trees:
    """Trees of scikit-learn: two of the first output, one of the second."""
    grown = []
    for one in regressors:
        tree, inner = one.tree_, one.tree_.feature >= 0
        grown.append((
            np.where(inner, tree.feature, -1), np.where(inner, tree.threshold, 0.0),
            np.where(inner, tree.children_left, 0), np.where(inner, tree.children_right, 0),
            tree.feature >= 1, tree.value.ravel(), tree.weighted_n_node_samples,
        ))  # fmt: skip
    return Trees.join(grown, output=[0, 0, 1], start=[1.0, -2.0], tasks=[3, 0])


def test_scores_are_those_of_the_library_that_grew_the_trees(
    trees: Trees, regressors: list[DecisionTreeRegressor], rows: FloatArray
) -> None:
    X = rows.astype(np.float32).astype(float)  # as scikit-learn reads them
    first, second, third = (one.predict(X) for one in regressors)
    expected = np.column_stack([1.0 + first + second, third - 2.0])
    np.testing.assert_allclose(trees(X), expected, rtol=1e-12)


def _expectation(trees: Trees, tree: int, x: FloatArray, known: set[int]) -> float:
    """The value of a tree if only some features are known, averaged over shares of rows."""

    def at(node: int) -> float:
        feature = trees.feature[node]
        if feature < 0:
            return float(trees.value[node])
        left, right = trees.left[node], trees.right[node]
        if feature in known:
            return at(left if x[feature] <= trees.threshold[node] else right)
        shares = trees.cover[[left, right]] / trees.cover[node]
        return float(shares @ [at(left), at(right)])

    return at(trees.first[tree])


def test_contributions_are_shapley_values_by_definition(trees: Trees, rows: FloatArray) -> None:
    found = trees.contributions(rows[:3])
    expected = np.zeros_like(found)
    for row, x in enumerate(rows[:3]):
        for tree, output in enumerate(trees.output):
            for feature in range(N_FEATURES):
                others = [d for d in range(N_FEATURES) if d != feature]
                for size in range(N_FEATURES):
                    weight = factorial(size) * factorial(N_FEATURES - 1 - size)
                    for known in combinations(others, size):
                        gain = _expectation(trees, tree, x, {*known, feature})
                        gain -= _expectation(trees, tree, x, set(known))
                        expected[row, output, feature] += weight / factorial(N_FEATURES) * gain
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_contributions_sum_to_the_score(trees: Trees, rows: FloatArray) -> None:
    total = trees.means() + trees.contributions(rows).sum(axis=2)
    np.testing.assert_allclose(total, trees(rows), atol=1e-12)


def test_changes_are_differences_of_scores(trees: Trees, rows: FloatArray) -> None:
    width = np.array([0.5, 1.0, 0.2, 3.0])
    expected = []
    for feature in range(N_FEATURES):
        step = 0.5 * width * (np.arange(N_FEATURES) == feature)
        expected.append((trees(rows + step) - trees(rows - step)) / width[feature])
    found = trees.changes(rows, width)
    np.testing.assert_allclose(found, np.stack(expected, axis=-1), atol=1e-12)


def test_missing_features_take_the_side_of_their_node(trees: Trees) -> None:
    missing = np.full((1, N_FEATURES), np.nan)
    first = trees.first[0]
    while trees.feature[first] >= 0:
        first = trees.left[first] if trees.missing_left[first] else trees.right[first]
    alone = Trees.join(
        [tuple(getattr(trees, name)[: trees.first[1]] for name in (
            "feature", "threshold", "left", "right", "missing_left", "value", "cover"))],
        output=[0], start=[0.0], tasks=[0],
    )  # fmt: skip
    assert alone(missing)[0, 0] == trees.value[first]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 0, "not behind it"),  # a cycle
        ("left", 10_000, "not behind it"),
        ("right", 1, "no parent, or two"),
        ("value", np.inf, "not finite"),
        ("threshold", np.nan, "not finite"),
        ("cover", -1.0, "below 0"),
        ("output", 2, "no outcome"),
        ("first", 1, "do not follow"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(
    trees: Trees, field: str, value: float, message: str
) -> None:
    array = getattr(trees, field).copy()
    array[0] = value
    with pytest.raises(ValueError, match=message):
        replace(trees, **{field: array})


def test_arrays_of_other_lengths_are_refused(trees: Trees) -> None:
    for field in ("value", "tasks", "output"):
        with pytest.raises(ValueError, match=r"differ|follow"):
            replace(trees, **{field: getattr(trees, field)[:-1]})
