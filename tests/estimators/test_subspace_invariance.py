"""SubspaceTobitRegressor on the same data in another form: units, order, weights, gaps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from deeptobit import CensoredTargets
from deeptobit.estimators.inputs import automatic_alpha
from tests.estimators.problems import SPARSE_FORMATS, assert_close
from tests.estimators.subspaces import data, fitted, subspace

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

VARIANTS: dict[str, dict[str, Any]] = {
    "auto": {},
    "alpha": {"alpha": 0.02},
    "logistic": {"noise": "logistic"},
    "sigma": {"sigma": 1.3},
    "no intercept": {"fit_intercept": False},
}
EVERY_MODEL = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
FEW = settings(max_examples=10, deadline=None)
SEEDS = st.integers(0, 9_999)
SCALES = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)


@FEW
@given(seed=SEEDS, scale=SCALES, alpha=st.sampled_from(["auto", 0.0, 0.1]))
def test_rescaling_a_feature_rescales_its_coefficient_alone(
    seed: int, scale: float, alpha: Any
) -> None:
    X, Y = data(seed)
    units = np.array([1.0, scale, 1.0, 1.0, 1.0])
    model, other = subspace(alpha=alpha).fit(X, Y), subspace(alpha=alpha).fit(X * units, Y)
    assert_close(other.coef_ * units, model.coef_, 1e-5)
    assert_close(other.intercept_, model.intercept_, 1e-5)
    assert_close(other.sigma_, model.sigma_, 1e-5)
    assert_close(other.predict(X * units), model.predict(X), 1e-5)


@FEW
@given(seed=SEEDS, shift=st.floats(-1e4, 1e4), alpha=st.sampled_from(["auto", 0.0, 0.1]))
def test_shifting_a_feature_moves_the_intercept_alone(seed: int, shift: float, alpha: Any) -> None:
    X, Y = data(seed)
    shifts = np.array([0.0, 0.0, shift, 0.0, 0.0])
    model, other = subspace(alpha=alpha).fit(X, Y), subspace(alpha=alpha).fit(X + shifts, Y)
    assert_close(other.coef_, model.coef_, 1e-5)
    assert_close(other.sigma_, model.sigma_, 1e-5)
    assert_close(other.predict(X + shifts), model.predict(X), 1e-5)


@FEW
@given(seed=SEEDS, scale=SCALES, alpha=st.sampled_from(["auto", 0.0, 0.1]))
def test_rescaling_a_target_with_its_bounds_rescales_its_results(
    seed: int, scale: float, alpha: Any
) -> None:
    X, Y = data(seed)
    units = np.array([1.0, scale, 1.0, 1.0])
    model = subspace(alpha=alpha).fit(X, Y)
    other = subspace(alpha=alpha, upper=3.0 * units).fit(X, Y * units)
    assert_close(fitted(other) / units[:, None], fitted(model), 1e-5)
    assert_close(other.U_ @ other.V_ / units[:, None], model.coef_, 1e-5)
    assert_close(other.predict(X) / units, model.predict(X), 1e-5)


@EVERY_MODEL
def test_permuting_rows_changes_nothing(variant: dict[str, Any]) -> None:
    X, Y = data()
    order = np.random.default_rng(1).permutation(len(X))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    first = subspace(**variant).fit(X, Y, sample_weight=weight)
    second = subspace(**variant).fit(X[order], Y[order], sample_weight=weight[order])
    assert_close(fitted(second), fitted(first), 1e-5)


@EVERY_MODEL
def test_permuting_tasks_permutes_the_results(variant: dict[str, Any]) -> None:
    X, Y = data()
    order = np.array([2, 0, 3, 1])
    first, second = subspace(**variant).fit(X, Y), subspace(**variant).fit(X, Y[:, order])
    assert_close(fitted(second), fitted(first)[order], 1e-5)
    assert_close(second.predict(X), first.predict(X)[:, order], 1e-5)


@EVERY_MODEL
def test_weight_two_is_the_row_twice_and_weight_zero_none(variant: dict[str, Any]) -> None:
    X, Y = data()
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = subspace(**variant).fit(X, Y, sample_weight=times)
    repeated = subspace(**variant).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-12)
    assert_close(fitted(weighted), fitted(repeated), 1e-5)


@EVERY_MODEL
def test_the_left_of_y_is_the_right_of_minus_y(variant: dict[str, Any]) -> None:
    X, Y = data()
    left = subspace(upper=None, **variant).fit(X, Y)
    right = subspace(lower=None, upper=0.0, **variant).fit(X, -Y)
    assert_close(-right.coef_, left.coef_, 1e-5)
    assert_close(right.sigma_, left.sigma_, 1e-5)
    assert_close(-right.predict(X), left.predict(X), 1e-5)
    assert_close(right.predict_bound_proba(X)[1], left.predict_bound_proba(X)[0], 1e-5)


@EVERY_MODEL
@pytest.mark.parametrize("form", SPARSE_FORMATS[:2], ids=lambda form: form.__name__)
def test_sparse_features_are_dense_features(form: Any, variant: dict[str, Any]) -> None:
    X, Y = data()
    X = np.where(X > 0.0, X + 1.0, 0.0)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    dense = subspace(**variant).fit(X, Y, sample_weight=weight)
    sparse = subspace(**variant).fit(form(X), Y, sample_weight=weight)
    assert_close(fitted(sparse), fitted(dense), 1e-5)
    assert_close(sparse.predict(form(X)), dense.predict(X), 1e-5)
    assert_close(sparse.transform(form(X)), form(X) @ sparse.V_.T)


def test_without_a_penalty_a_row_without_outcomes_is_a_row_left_out() -> None:
    X, Y = data()
    known = np.random.default_rng(0).random(len(X)) < 0.7
    model = subspace(alpha=0.0).fit(X, np.where(known[:, None], Y, np.nan))
    assert_close(fitted(model), fitted(subspace(alpha=0.0).fit(X[known], Y[known])), 1e-5)


def test_missing_entries_are_intervals_without_ends() -> None:
    X, Y = data()
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    targets = CensoredTargets.from_bounds(Y, lower=0, upper=3)
    model = subspace().fit(X, Y)
    low = np.where(np.isnan(Y), np.nan, targets.low)
    by_intervals = subspace().fit(
        X, CensoredTargets.from_intervals(low, targets.high, lower=0, upper=3)
    )
    assert np.isfinite(fitted(model)).all()
    assert_close(fitted(by_intervals), fitted(model), 1e-9)
    known = (~np.isnan(Y)).sum(axis=0)
    tried = model.history_["alphas"]
    assert tried[0]["alpha"] == pytest.approx(automatic_alpha(known, len(Y), 5))


def test_limits_per_entry_are_those_of_censored_targets() -> None:
    X, Y = data()
    limits = np.random.default_rng(0).uniform(0.0, 1.0, Y.shape)
    recorded = np.maximum(Y, limits)
    model = subspace().fit(X, recorded, lower=limits)
    low = np.where(recorded == limits, -np.inf, recorded)
    high = np.where(recorded == 3.0, np.inf, recorded)
    low = np.where(recorded == 3.0, 3.0, low)
    other = subspace().fit(X, CensoredTargets.from_intervals(low, high, lower=0.0, upper=3.0))
    assert_close(fitted(other), fitted(model), 1e-8)


def test_a_fit_repeats_itself() -> None:
    X, Y = data()
    first, second = subspace().fit(X, Y), subspace().fit(X, Y)
    again = second.fit(X, Y)
    np.testing.assert_array_equal(fitted(first), fitted(again))
    np.testing.assert_array_equal(first.U_, clone(first).fit(X, Y).U_)


def test_single_precision_is_answered_in_single_precision() -> None:
    X, Y = data()
    model = subspace().fit(X.astype(np.float32), Y)
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    assert_close(fitted(model), fitted(subspace().fit(X, Y)), 1e-4)
