"""The stacked layer: its rank, its scores, and rows that were held out more than once."""

import numpy as np
from sklearn.model_selection import RepeatedKFold

from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.auto.folds import HeldOutFolds, make_folds
from deeptobit.auto.path import EvidenceMember
from deeptobit.auto.stack import fit_stack, truncate_rank
from deeptobit.likelihood import Gaussian
from deeptobit.targets import CensoredTargets

ONES = np.ones(4)


def _layer(strengths: list[float]) -> tuple[EvidenceMember, FloatArray]:
    """A layer of four tasks with components of the given strengths, and features around 5."""
    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    V, _ = np.linalg.qr(rng.normal(size=(6, 4)))
    coef = (U[:, : len(strengths)] * strengths) @ V[:, : len(strengths)].T
    return EvidenceMember(coef, ONES, ONES, 1.0), 5.0 + rng.normal(size=(300, 6))


def test_what_has_a_rank_keeps_it_and_its_scores() -> None:
    member, X = _layer([2.0, 1.0])
    layer = truncate_rank(member, X, np.ones(300), fit_intercept=True)
    assert layer.U.shape == (4, 2)
    np.testing.assert_allclose(layer.coef, member.coef, atol=1e-12)
    np.testing.assert_allclose(layer.latent(X), X @ member.coef.T + 1.0)


def test_a_weak_component_is_cut_and_the_mean_row_keeps_its_scores() -> None:
    member, X = _layer([2.0, 1.0, 0.01])
    layer = truncate_rank(member, X, np.ones(300), fit_intercept=True)
    assert layer.U.shape == (4, 2)
    centre = X.mean(axis=0, keepdims=True)
    np.testing.assert_allclose(layer.latent(centre), centre @ member.coef.T + 1.0)
    through = truncate_rank(member, X, np.ones(300), fit_intercept=False)
    np.testing.assert_array_equal(through.intercept, member.intercept)


def test_a_task_with_weak_effects_keeps_its_direction() -> None:
    rng = np.random.default_rng(2)
    coef = np.zeros((7, 8))
    coef[:6, :4] = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
    coef[6, 4:] = 1e-3 * rng.normal(size=4)
    member = EvidenceMember(coef, np.ones(7), np.ones(7), 1.0)
    layer = truncate_rank(member, rng.normal(size=(300, 8)), np.ones(300), fit_intercept=True)
    assert layer.U.shape == (7, 3)
    np.testing.assert_allclose(layer.coef[6], coef[6], atol=1e-5)


def test_a_fit_keeps_the_effect_of_one_weak_outcome_beside_thirty_strong_ones() -> None:
    """Its share of the variance of all scores is below a thousandth, so that it was once cut."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 6))
    strong = X[:, :4] @ rng.normal(size=(4, 2)) @ rng.normal(size=(2, 30))
    strong += 0.3 * rng.normal(size=strong.shape)
    weak = np.sqrt(0.03) * X[:, 5] + rng.normal(size=1000)
    Y = np.column_stack([strong, weak])
    model = AutoTobitRegressor(members=("stack",), cv=2, random_state=0, lower=None).fit(X, Y)
    assert model.rank_ == 3
    np.testing.assert_allclose(model.coef_[-1], [0.0, 0.0, 0.0, 0.0, 0.0, 0.17], atol=0.05)


def test_no_effect_at_all_is_one_empty_component() -> None:
    member, X = _layer([0.0])
    layer = truncate_rank(member, X, np.ones(300), fit_intercept=True)
    assert layer.U.shape == (4, 1)
    np.testing.assert_array_equal(layer.coef, 0.0)


def test_rows_may_be_held_out_twice_or_never() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    Y = np.maximum(X[:, :2] + rng.normal(size=(80, 2)), 0.0)
    targets = CensoredTargets.from_bounds(Y, 0.0)
    repeated = RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)
    once = [(np.arange(40), np.arange(40, 60))]
    for cv in (repeated, once):
        held_out = HeldOutFolds(targets, np.ones(80), make_folds(80, cv, None, 0), Gaussian())
        stack = fit_stack(
            X,
            held_out,
            (Gaussian(),),
            fit_intercept=True,
            standardize=True,
            scoring="r2",
            n_jobs=None,
        )
        assert stack.scores.mean() > 0.2
        assert stack.layer.coef[0, 0] > 0.5
