"""Networks on data with gaps, too few rows, no bounds, odd units, features that leave."""

from typing import Any

import numpy as np
import pytest

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace
from tests.estimators.problems import assert_close
from tests.estimators.test_network import data, grown, network

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)


def test_missing_intervals_and_censored_targets_are_understood() -> None:
    X, Y = data(200)
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    model = grown().fit(X, Y)
    assert_close(grown().fit(X, CensoredTargets.from_bounds(Y, 0.0)).predict(X), model.predict(X))
    assert np.isfinite(model.score(X, Y))
    rounded = CensoredTargets.from_bounds(np.nan_to_num(Y), 0.0)
    wide = CensoredTargets.from_intervals(
        rounded.low - 0.3 * rounded.observed, rounded.high + 0.3 * rounded.observed, lower=0.0
    )
    assert np.isfinite(grown().fit(X, wide).predict(X)).all()


def test_a_constant_feature_changes_nothing() -> None:
    X, Y = data(200)
    model = grown(alpha=0.02, tol=1e-7).fit(X, Y)
    wider = grown(alpha=0.02, tol=1e-7).fit(np.column_stack([X, np.full(200, 3.0)]), Y)
    assert_close(wider.predict(np.column_stack([X, np.full(200, 3.0)])), model.predict(X), 1e-5)
    assert_close(wider.coef_[:, -1], 0.0)


def test_fewer_rows_than_features() -> None:
    X, Y, _ = make_subspace(30, 50, 4, 2, random_state=0)
    model = SubspaceNetworkRegressor(rank=2).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    assert (model.sigma_ > 0.01 * Y.std(axis=0)).all()
    with pytest.raises(ValueError, match="cannot determine 50 features without a penalty"):
        SubspaceNetworkRegressor(rank=2, alpha=0.0).fit(X, Y)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_scales_at_their_floor_do_not_hold_a_layer_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(11, 12))
    Y = X @ rng.normal(size=(12, 5))
    model = SubspaceNetworkRegressor(n_layers=2, lower=-1e4, joint_tuning=False).fit(X, Y)
    assert [layer["converged"] for layer in model.history_["layers"]] == [True, True]


@pytest.mark.parametrize(("n_features", "n_tasks", "rank_"), [(1, 6, 1), (4, 1, 1), (4, 6, 4)])
def test_the_rank_is_capped(n_features: int, n_tasks: int, rank_: int) -> None:
    X, Y = data(150)
    model = network(rank=9).fit(X[:, :n_features], Y[:, :n_tasks])
    assert model.rank_ == rank_
    assert model.U_.shape == (n_tasks, rank_)
    assert [layer.V.shape for layer in model.layers_] == [
        (rank_, n_features),
        (rank_, n_tasks + n_features),
    ]
    assert_close(model.U_ @ model.V_, model.coef_, 1e-12)


def test_without_any_bound_depth_is_warned_of() -> None:
    X, Y = data(100)
    with pytest.warns(UserWarning, match="no target has a bound, so that the network is linear"):
        grown(lower=None).fit(X, Y)
    grown(lower=None, n_layers=1).fit(X, Y)
    grown(lower=None, upper=[np.inf] * 5 + [1e3]).fit(X, Y)


def test_features_of_any_size_are_finite() -> None:
    X, Y = data(150)
    model = network(joint_tuning=True).fit(X * np.array([1e-8, 1.0, 1e8, 1e3]) + 1e3, Y * 1e6)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X * np.array([1e-8, 1.0, 1e8, 1e3]) + 1e3, Y * 1e6) > 0.3


def test_features_that_left_do_not_come_back_by_tuning() -> None:
    X, Y = data()
    wider = np.column_stack([X, np.random.default_rng(0).normal(size=(400, 8))])
    options: dict[str, Any] = {"feature_sparsity": 0.8, "alpha": 0.3}
    before = grown(**options).fit(wider, Y)
    after = network(joint_tuning=True, **options).fit(wider, Y)
    assert after.history_["tuning"]["kept"]
    away = np.abs(before.coef_).max(axis=0) == 0.0
    assert away[4:].sum() >= 4
    assert away[:4].sum() <= 1
    np.testing.assert_array_equal(np.abs(after.coef_).max(axis=0) == 0.0, away)
    course = after.history_["tuning"]["objective"]
    assert course[-1] <= course[0]
