import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeCV

from paper.baselines.base import among, inner_folds
from paper.baselines.leastsquares import Filled, Taskwise, blocks, fill


def test_blocks_part_the_tasks() -> None:
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((6, 40)) < 0.3, np.nan, 1.0)
    seen = []
    for known, tasks in blocks(Y):
        assert_array_equal(~np.isnan(Y[:, tasks]), np.tile(known[:, None], len(tasks)))
        seen += tasks.tolist()
    assert sorted(seen) == list(range(40))


def test_filling_keeps_what_is_known_and_predicts_the_rest() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    Y = X @ rng.standard_normal((3, 2))
    gaps = Y.copy()
    gaps[:10, 0] = np.nan
    filled = fill(X, gaps)
    assert_array_equal(filled[:, 1], Y[:, 1])
    assert_array_equal(filled[10:], Y[10:])
    reference = RidgeCV(np.logspace(0, 5, 10)).fit(X[10:], Y[10:, 0])
    assert_allclose(filled[:10, 0], reference.predict(X[:10]))
    assert np.isnan(gaps[:10, 0]).all()
    assert_array_equal(fill(X, Y), Y)


def test_clones_forget() -> None:
    X, Y = np.arange(6.0)[:, None], np.arange(12.0).reshape(6, 2)
    for model in (Taskwise([LinearRegression(), LinearRegression()]), Filled(LinearRegression())):
        model.fit(X, Y)
        other = clone(model)
        assert_allclose(other.fit(X, -Y).predict(X), -model.predict(X))


def test_folds_among_known_rows_count_anew() -> None:
    folds = inner_folds(12, cv=4, random_state=0)
    known = np.ones(12, dtype=np.bool_)
    known[folds[0][1][:2]] = False
    inside = among(folds, known)
    assert len(inside) == 3  # the first fold holds out one known row only
    rows = np.flatnonzero(known)
    for (train, test), (old_train, old_test) in zip(inside, folds[1:], strict=True):
        assert set(rows[test]) == set(old_test)
        assert set(rows[train]) == set(old_train) & set(rows)
