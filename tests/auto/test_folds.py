"""Folds from everything that scikit-learn calls cv, and scores of held-out rows."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneGroupOut

from deeptobit import AutoTobitRegressor
from deeptobit.auto.folds import Fold, HeldOutFolds, check_folds, make_folds
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import censored_log_score, centred_anmse
from deeptobit.targets import CensoredTargets


def test_a_number_splits_all_rows_once_and_by_the_seed() -> None:
    folds = make_folds(10, 3, None, 0)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(10))
    again, other = make_folds(10, 3, None, 0), make_folds(10, 3, None, 1)
    assert all((a.test == b.test).all() for a, b in zip(folds, again, strict=True))
    assert any((a.test != b.test).any() for a, b in zip(folds[1:], other[1:], strict=True))


def test_groups_stay_together() -> None:
    groups = np.array(["a", "b", "c", "d"]).repeat(5)
    for cv in (3, LeaveOneGroupOut()):
        for train, test in make_folds(20, cv, groups, 0):
            assert not set(groups[train]) & set(groups[test])


def test_splitters_iterables_and_masks_are_folds() -> None:
    pairs = [(np.arange(2, 6), np.arange(2)), (np.arange(3), np.arange(3, 6))]
    masks = [(np.isin(np.arange(6), a), np.isin(np.arange(6), b)) for a, b in pairs]
    for cv in (iter(pairs), masks):
        found = make_folds(6, cv)
        assert [fold.test.tolist() for fold in found] == [[0, 1], [3, 4, 5]]
    assert len(make_folds(6, KFold(4))) == 4


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ("five", "cv must be 'auto', a number of folds, a splitter, or pairs .*; got 'five'"),
        (2.5, "cv must be 'auto', a number of folds, a splitter, or pairs .*; got 2.5"),
        ([], "cv has no folds"),
    ],
)
def test_what_is_no_fold_is_refused(cv: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_folds(6, cv)


@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (1, None, "cv must be at least 2; got 1"),
        (-3, None, "cv must be at least 2; got -3"),
        (7, None, "cv=7 needs at least 7 rows, and there are 6; choose a smaller cv"),
        (4, list("aabbcc"), "cv=4 needs at least 4 groups, and there are 3; choose a smaller cv"),
        (2, list("aab"), r"groups must hold one label per row \(6\); got shape \(3,\)"),
        (2, [None, *"abcde"], r"groups is missing in row 0 \(1 such rows\)"),
        (KFold(7), None, r"cv=KFold\(n_splits=7, .* cannot split 6 rows without groups: Cannot"),
        (LeaveOneGroupOut(), None, r"cv=LeaveOneGroupOut\(\) cannot split 6 rows without groups: "),
        (LeaveOneGroupOut(), ["a"] * 6, r"cannot split 6 rows with groups: The groups parameter"),
    ],
)
def test_folds_that_rows_or_groups_do_not_suffice_for(cv: Any, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_folds(6, cv, groups)


def test_a_search_names_its_cv() -> None:
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="cv=5 needs at least 5 rows, and there are 4"):
        AutoTobitRegressor(cv=5).fit(X, X)


def test_a_task_needs_entries_in_every_fold() -> None:
    Y = np.ones((6, 2))
    Y[1:, 1] = np.nan
    targets = CensoredTargets.from_bounds(Y, names=["one", "rare"])
    with pytest.raises(ValueError, match="'rare' has no entry in the training rows of fold 0"):
        check_folds(targets, np.ones(6), [Fold(np.arange(3, 6), np.arange(3))])
    with pytest.raises(ValueError, match="fold 0 holds out no known entry"):
        check_folds(targets[:, ...], np.r_[np.ones(5), 0.0], [Fold(np.arange(5), np.array([5]))])


def test_scores_are_those_of_the_metrics() -> None:
    rng = np.random.default_rng(0)
    Y = np.clip(rng.normal(size=(50, 3)), -0.5, 1.0)
    Y[::7, 1] = np.nan
    targets = CensoredTargets.from_bounds(Y, -0.5, 1.0)
    everything = Fold(np.arange(50), np.arange(50))
    weight = rng.uniform(0.5, 2.0, 50)
    held_out = HeldOutFolds(targets, weight, [everything], Gaussian())
    latent, sigma = rng.normal(size=(50, 3)), np.array([1.0, 0.5, 2.0])
    mean = Predictive(Gaussian(), latent, sigma, -0.5, 1.0).mean()
    expected = 1.0 - float(centred_anmse(targets, mean, sample_weight=weight))
    assert held_out.score(everything, latent, sigma, "r2") == pytest.approx(expected)
    per_task = censored_log_score(
        targets, latent, sigma, sample_weight=weight, multioutput="raw_values"
    )
    entries = weight @ ~targets.missing
    assert held_out.score(everything, latent, sigma, "log") == pytest.approx(
        -float(np.average(per_task, weights=entries))
    )


def test_many_rows_hold_out_one_part_of_whole_groups() -> None:
    (fold,) = make_folds(30_000, "auto", None, 0)
    assert len(fold.test) == 4000
    assert len(np.union1d(*fold)) == 30_000
    groups = np.arange(6000) // 3
    (fold,) = make_folds(6000, "auto", groups, 0)
    assert len(fold.test) == 1200
    assert not np.isin(groups[fold.test], groups[fold.train]).any()
    assert len(make_folds(5000, "auto", None, 0)) == 5
