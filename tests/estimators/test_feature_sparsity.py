"""SubspaceTobitRegressor(feature_sparsity=...): features that leave for all tasks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import assert_close
from tests.estimators.subspaces import relative_gradient

FEW = settings(max_examples=5, deadline=None)
SCALES = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)
SPARSITIES = pytest.mark.parametrize("sparsity", [0.5, 1.0])


def data(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Four outcomes between 0 and 3 of three among twelve features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 12))
    latent = X[:, :3] @ rng.normal(size=(3, 2)) @ rng.normal(size=(2, 4))
    return X, np.clip(1.0 + latent + 0.7 * rng.normal(size=latent.shape), 0.0, 3.0)


def sparse(**options: Any) -> SubspaceTobitRegressor:
    defaults: dict[str, Any] = {"rank": 2, "upper": 3.0, "feature_sparsity": 0.8, "tol": 1e-8}
    return SubspaceTobitRegressor(**(defaults | options))


def fitted(model: SubspaceTobitRegressor) -> FloatArray:
    return np.column_stack([model.coef_, model.intercept_, model.sigma_])


def used(model: SubspaceTobitRegressor) -> list[int]:
    return np.flatnonzero(np.abs(model.coef_).max(axis=0)).tolist()


@SPARSITIES
def test_features_leave_with_exact_zeros_for_all_tasks(sparsity: float) -> None:
    X, Y = data()
    model = sparse(feature_sparsity=sparsity).fit(X, Y)
    present = np.abs(model.V_).max(axis=0) > 0.0
    assert present[:3].all()
    assert 3 <= present.sum() < 12
    assert model.history_["n_features_used"] == present.sum()
    np.testing.assert_array_equal(model.coef_[:, ~present], 0.0)
    assert (model.coef_[:, present] != 0.0).all()
    assert model.history_["converged"] is True
    assert model.history_["gradient_norm"] <= 1e-8
    assert relative_gradient(model, X, Y) <= 1e-6


def test_without_sparsity_nothing_changes() -> None:
    X, Y = data()
    plain = SubspaceTobitRegressor(rank=2, upper=3.0).fit(X, Y)
    np.testing.assert_array_equal(
        fitted(plain), fitted(SubspaceTobitRegressor(2, upper=3.0, feature_sparsity=0).fit(X, Y))
    )
    assert plain.V_.all()


@SPARSITIES
def test_more_alpha_leaves_fewer_features(sparsity: float) -> None:
    X, Y = data()
    counts = [
        sparse(feature_sparsity=sparsity, alpha=alpha, sigma=0.7).fit(X, Y).V_.any(axis=0).sum()
        for alpha in (1e-3, 0.1, 0.5, 1.0, 100.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (12, 0)


@FEW
@given(seed=st.integers(0, 999), scale=SCALES)
def test_units_of_features_and_targets_do_not_matter(seed: int, scale: float) -> None:
    X, Y = data(seed)
    by_feature, by_target = np.ones(12), np.ones(4)
    by_feature[[1, 7]], by_target[2] = scale, 1.0 / scale
    model = sparse().fit(X, Y)
    other = sparse(upper=3.0 * by_target).fit(X * by_feature + 1.0, Y * by_target)
    assert used(other) == used(model)
    assert_close(other.coef_ * by_feature / by_target[:, None], model.coef_, 1e-5)
    assert_close(other.sigma_ / by_target, model.sigma_, 1e-5)


def test_the_order_of_rows_features_and_tasks_does_not_matter() -> None:
    X, Y = data()
    rng = np.random.default_rng(1)
    rows, columns, tasks = (rng.permutation(n) for n in (*X.shape, Y.shape[1]))
    model, other = sparse().fit(X, Y), sparse().fit(X[rows][:, columns], Y[rows][:, tasks])
    assert_close(other.coef_, model.coef_[tasks][:, columns], 1e-5)
    assert_close(other.sigma_, model.sigma_[tasks], 1e-5)


def test_weight_two_is_the_row_twice() -> None:
    X, Y = data()
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = sparse().fit(X, Y, sample_weight=times)
    repeated = sparse().fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert used(weighted) == used(repeated)
    assert_close(fitted(weighted), fitted(repeated), 1e-5)


def test_sparse_matrices_are_dense_ones() -> None:
    X, Y = data()
    X = np.where(X > 0.0, X + 1.0, 0.0)
    dense, other = sparse().fit(X, Y), sparse().fit(csr_matrix(X), Y)
    assert used(other) == used(dense)
    assert_close(fitted(other), fitted(dense), 1e-5)


@pytest.mark.parametrize("wide", [False, True])
def test_constant_features_leave(wide: bool) -> None:
    X, Y = data()
    X = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    rows = slice(0, 10 if wide else None)
    model = sparse(alpha=0.1).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(model.V_[:, [0, -1]], 0.0)
    assert model.V_.any()


def test_missing_entries_and_limits_per_entry_are_fitted() -> None:
    X, Y = data()
    limits = np.random.default_rng(0).uniform(0.0, 1.0, Y.shape)
    recorded = np.maximum(Y, limits)
    recorded[::7, 1] = np.nan
    model = sparse().fit(X, recorded, lower=limits)
    assert set(range(3)) <= set(used(model))
    assert np.isfinite(fitted(model)).all()


@pytest.mark.parametrize("noise", ["logistic", "student_t"])
def test_other_noise_is_fitted(noise: str) -> None:
    X, Y = data()
    assert set(range(3)) <= set(used(sparse(noise=noise).fit(X, Y)))


def test_it_predicts_a_sparse_truth_better() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 60))
    latent = X[:, :5] @ rng.normal(size=(5, 3)) @ rng.normal(size=(3, 8)) / 3.0
    Y = np.maximum(latent + rng.normal(size=latent.shape), 0.0)
    scores = [
        SubspaceTobitRegressor(rank=3, feature_sparsity=sparsity)
        .fit(X[:100], Y[:100])
        .score_log(X[100:], Y[100:])
        for sparsity in (0.0, 0.5, 1.0)
    ]
    assert scores[0] + 0.02 < scores[1] < scores[2]


def test_the_batch_solver_is_taken_and_said_so() -> None:
    X, Y = data()
    history = sparse().fit(X, Y).history_
    assert (history["solver"], history["reason"]) == (
        "batch",
        "the penalty needs the batch solver",
    )
    assert sparse(solver="batch").fit(X, Y).history_["reason"] == "as asked for"


@pytest.mark.parametrize("sparsity", [-0.1, 1.1, np.nan, "some", None])
def test_a_sparsity_out_of_range_is_named(sparsity: Any) -> None:
    X, Y = data()
    with pytest.raises(ValueError, match="feature_sparsity must be a number from 0 to 1"):
        sparse(feature_sparsity=sparsity).fit(X, Y)


def test_online_learning_cannot_choose_features() -> None:
    X, Y = data()
    with pytest.raises(ValueError, match="solver='online' supports only penalty='ridge'"):
        sparse(solver="online").fit(X, Y)
    with pytest.raises(ValueError, match="partial_fit supports only penalty='ridge'"):
        sparse().partial_fit(X, Y)


def test_an_unfinished_fit_warns_with_advice() -> None:
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match=r"increase max_iter, loosen tol, or set a larger"):
        model = sparse(max_iter=1, tol=1e-14).fit(X, Y)
    assert model.history_["converged"] is False
