"""Trees grown on gradients and curvatures, boosted on the likelihood, and scored out of fold."""

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from deeptobit.arrays import FloatArray
from deeptobit.auto import Fold, HeldOutFolds, TreeTable, make_folds
from deeptobit.auto.kernels import add_tree, grow_tree
from deeptobit.auto.trees import TREES, Bins, Entries, Growth, boost, tree_memory
from deeptobit.likelihood import Gaussian, Logistic, evaluate
from deeptobit.targets import CensoredTargets

WHOLE = Growth(leaves=6, rate=1.0, rounds=5, patience=5, least=5.0, ridge=0.0)


def draw(n_rows: int = 300, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Few different values of each feature, so that bins lose nothing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, size=(n_rows, 4)).astype(np.float64)
    y = np.sin(X[:, 0] / 4.0) + (X[:, 1] > 10) * X[:, 2] / 10.0 + 0.3 * rng.normal(size=n_rows)
    return X, y


def grow(X: FloatArray, gradient: FloatArray, curvature: FloatArray, growth: Growth) -> Any:
    """Values of one tree at the rows it was grown on, and its nodes."""
    bins = Bins.build(X)
    *_, node, number = memory = tree_memory(len(X), bins.edges, growth)
    rows = np.arange(len(X), dtype=np.int32)
    n = grow_tree(bins.codes, bins.n_bins, rows, gradient, curvature, growth, memory)
    values = np.zeros(len(X))
    add_tree(bins.codes, bins.n_bins, node[:n], number[:n], growth.rate, values)
    return values, node[:n]


def entries_of(X: FloatArray, targets: CensoredTargets, weight: FloatArray | None = None) -> Any:
    bins = Bins.build(X)
    weight = np.ones(len(X)) if weight is None else weight
    start = np.zeros(targets.shape)
    return bins, Entries(bins.codes, targets.low, targets.high, weight, start)


def test_bins_say_what_thresholds_say() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 5, 500), np.ones(500)])
    X[::7, 0] = np.nan
    bins = Bins.build(X, 16)
    for feature in range(3):
        n, known = bins.n_bins[feature], ~np.isnan(X[:, feature])
        assert (bins.codes[~known, feature] == n).all()
        for cut in range(n - 1):
            left = bins.codes[known, feature] <= cut
            np.testing.assert_array_equal(left, X[known, feature] <= bins.edges[feature, cut])
    assert bins.n_bins.tolist()[1:] == [5, 1]
    shares = np.bincount(bins.codes[~np.isnan(X[:, 0]), 0])
    assert shares.max() < 2 * shares.min()


def test_a_tree_of_squared_errors_is_that_of_scikit_learn() -> None:
    X, y = draw()
    values, _ = grow(X, -y, np.ones(len(y)), WHOLE)
    tree = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=5).fit(X, y)
    np.testing.assert_allclose(values, tree.predict(X), rtol=1e-9)


def test_a_weight_of_two_is_a_row_twice() -> None:
    X, y = draw(100)
    weight: FloatArray = 1.0 + (np.arange(100) % 2).astype(np.float64)
    twice = np.repeat(np.arange(100), weight.astype(int))
    values, _ = grow(X, -weight * y, weight, WHOLE)
    repeated, _ = grow(X[twice], -y[twice], np.ones(len(twice)), WHOLE)
    np.testing.assert_allclose(repeated, values[twice], rtol=1e-9)


@pytest.mark.parametrize("where", [0.0, 3.0])
def test_missing_values_go_where_they_belong(where: float) -> None:
    X = np.repeat([[0.0], [1.0], [2.0], [np.nan]], 20, axis=0)
    y = np.repeat([0.0, 0.0, 3.0, where], 20)
    values, node = grow(X, -y, np.ones(80), WHOLE._replace(leaves=2))
    np.testing.assert_allclose(values, y)
    assert node[0, 2] == (where == 0.0)


def test_boosting_lowers_the_censored_likelihood_until_the_judge_says_no() -> None:
    X, y = draw(900)
    targets = CensoredTargets.from_bounds(
        np.column_stack([y, -y]), lower=[0.2, None], outside="clip"
    )
    bins, entries = entries_of(X, targets)
    half = np.arange(900) % 2 == 0
    free = np.ones(2, dtype=np.bool_)
    done = boost(bins, entries.of(half), entries.of(~half), np.ones(2), free, TREES, Gaussian())
    assert (done.rounds > 10).all()
    assert (done.sigma[done.rounds - 1, [0, 1]] < 0.5).all()


def test_trees_of_given_number_repeat_those_that_were_judged() -> None:
    X, y = draw()
    bins, entries = entries_of(X, CensoredTargets.from_bounds(y, lower=0.0, outside="clip"))
    free, growth = np.ones(1, dtype=np.bool_), TREES._replace(rounds=8)
    first = boost(bins, entries, entries, np.ones(1), free, growth, Logistic())
    again = boost(bins, entries, None, first.sigma, free, growth, Logistic(), np.array([8]))
    for (node, number), (other, numbers) in zip(first.grown[0], again.grown[0], strict=True):
        np.testing.assert_array_equal(node, other)
        np.testing.assert_array_equal(number, numbers)


def test_the_first_leaf_is_a_newton_step() -> None:
    X, y = draw()
    targets = CensoredTargets.from_bounds(y, lower=0.0, outside="clip")
    bins, entries = entries_of(np.zeros_like(X), targets)  # nothing to split by
    sigma, free = np.full((1, 1), 0.7), np.ones(1, dtype=np.bool_)
    done = boost(bins, entries, None, sigma, free, WHOLE, Gaussian(), np.array([1]))
    at = evaluate(Gaussian(), targets.low, targets.high, np.zeros(targets.shape), sigma[0])
    expected = -at.latent.sum() / at.latent_latent.sum()
    assert done.grown[0][0][1][0, 3] == pytest.approx(expected)


def table_of(folds: list[Fold], groups: Any = None, n_rows: int = 400) -> TreeTable:
    X, y = draw(n_rows)
    targets = CensoredTargets.from_bounds(np.column_stack([y, y[::-1]]), lower=0.0, outside="clip")
    held_out = HeldOutFolds(targets, np.ones(n_rows), folds, Gaussian())
    return TreeTable.build(X, held_out, groups, fit_intercept=True)


@pytest.mark.parametrize("n_folds", [1, 4])
def test_rows_are_scored_by_trees_that_have_not_seen_them(n_folds: int) -> None:
    people = np.arange(400) // 4
    folds = make_folds(400, 4, people)[:n_folds]
    table = table_of(folds, people)
    parts = table._parts()
    assert np.sort(np.concatenate([part.test for part in parts])).tolist() == list(range(400))
    for part in parts:
        assert not np.intersect1d(people[part.train], people[part.test]).size
    if n_folds == 1:
        assert all(not np.intersect1d(part.train, folds[0].test).size for part in parts)
    forest = table.grow(None, None, "")
    assert forest is not None
    assert forest.scores.shape == (400, len(forest.trees.tasks))
    y = np.maximum(draw(400)[1], 0.0)
    left = np.square(np.maximum(forest.scores[:, 0], 0.0) - y).mean()
    own = np.square(np.maximum(forest.trees(table.X)[:, 0], 0.0) - y).mean()
    assert own < left < 0.5 * y.var()


def test_the_probe_sees_what_scores_leave() -> None:
    table = table_of(make_folds(400, 5, None, 0))
    X, y = draw(400)
    signal = np.sin(X[:, 0] / 4.0) + (X[:, 1] > 10) * X[:, 2] / 10.0
    known = np.column_stack([signal, np.full(400, y.mean())])  # nothing of the second outcome
    start = [known[fold.test] for fold in table.held_out.folds]
    (first, second), _ = table.probe(start, np.array([0.3, 1.0]))
    assert max(first, second) < 1.0  # the features of the second stand in another order
    nothing = [np.full((len(fold.test), 2), y.mean()) for fold in table.held_out.folds]
    gain, alone = table.probe(nothing, np.ones(2))
    assert min(gain[0], alone[0]) > 5.0


def test_trees_see_little_in_noise() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(200, 20))
    targets = CensoredTargets.from_bounds(noise, lower=0.0, outside="clip")
    held_out = HeldOutFolds(targets, np.ones(200), make_folds(200, 5, None, 0), Gaussian())
    table = TreeTable.build(rng.normal(size=(200, 3)), held_out, None, fit_intercept=True)
    start = [np.zeros((len(fold.test), 20)) for fold in held_out.folds]
    gain, alone = table.probe(start, np.ones(20))
    assert (gain > 1.0).mean() < 0.5
    assert (alone < 3.0).all()
