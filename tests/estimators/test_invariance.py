"""What must not change a fit, or must change it in a known way."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import CollinearityWarning
from tests.estimators.problems import (
    SPARSE_FORMATS,
    assert_close,
    bounded,
    censored,
    one_task,
    parameters,
)

SEEDS = st.integers(0, 9_999)
SCALES = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)
SHIFTS = st.floats(-1e4, 1e4)
FEW = settings(max_examples=15, deadline=None)
EVERY_MODEL = pytest.mark.parametrize(
    "model",
    [
        {},
        {"alpha": 0.1},
        {"noise": "logistic"},
        {"sigma": 1.3},
        {"fit_intercept": False, "alpha": 0.05},
    ],
    ids=["ml", "ridge", "logistic", "sigma", "no intercept"],
)


@FEW
@given(seed=SEEDS, scale=SCALES, alpha=st.sampled_from([0.0, 0.1]))
def test_rescaling_a_feature_rescales_its_coefficient_alone(
    seed: int, scale: float, alpha: float
) -> None:
    X, Y = censored(seed)
    units = np.array([1.0, scale, 1.0])
    model, other = bounded(alpha=alpha).fit(X, Y), bounded(alpha=alpha).fit(X * units, Y)
    assert_close(other.coef_ * units, model.coef_)
    assert_close(other.intercept_, model.intercept_)
    assert_close(other.sigma_, model.sigma_)
    assert_close(other.predict(X * units), model.predict(X))


@FEW
@given(seed=SEEDS, shift=SHIFTS, alpha=st.sampled_from([0.0, 0.1]))
def test_shifting_a_feature_moves_the_intercept_alone(
    seed: int, shift: float, alpha: float
) -> None:
    X, Y = censored(seed)
    shifts = np.array([0.0, shift, 0.0])
    model, other = bounded(alpha=alpha).fit(X, Y), bounded(alpha=alpha).fit(X + shifts, Y)
    assert_close(other.coef_, model.coef_)
    assert_close(other.predict(X + shifts), model.predict(X))
    assert_close(other.sigma_, model.sigma_)


@FEW
@given(seed=SEEDS, scale=SCALES, alpha=st.sampled_from([0.0, 0.1]))
def test_rescaling_a_target_with_its_bounds_rescales_its_results(
    seed: int, scale: float, alpha: float
) -> None:
    X, Y = censored(seed)
    units = np.array([1.0, scale])
    model = bounded(alpha=alpha).fit(X, Y)
    other = TobitRegressor(lower=0.0, upper=3.0 * units, alpha=alpha).fit(X, Y * units)
    assert_close(parameters(other) / units[:, None], parameters(model))
    assert_close(other.predict(X) / units, model.predict(X))
    np.testing.assert_allclose(other.score(X, Y * units), model.score(X, Y), rtol=1e-6)


@FEW
@given(seed=SEEDS, shift=SHIFTS)
def test_shifting_a_target_with_its_bounds_shifts_its_predictions(seed: int, shift: float) -> None:
    X, Y = censored(seed)
    model = bounded().fit(X, Y)
    other = TobitRegressor(lower=shift, upper=3.0 + shift).fit(X, Y + shift)
    assert_close(other.coef_, model.coef_)
    assert_close(other.predict(X) - shift, model.predict(X))


@EVERY_MODEL
def test_the_left_of_y_is_the_right_of_minus_y(model: dict[str, Any]) -> None:
    X, Y = censored()
    left = TobitRegressor(lower=0.0, **model).fit(X, Y)
    right = TobitRegressor(lower=None, upper=0.0, **model).fit(X, -Y)
    assert_close(-right.coef_, left.coef_)
    assert_close(right.sigma_, left.sigma_)
    np.testing.assert_allclose(right.log_likelihood_, left.log_likelihood_, rtol=1e-9)
    assert_close(-right.predict(X), left.predict(X))
    assert_close(right.predict_bound_proba(X)[1], left.predict_bound_proba(X)[0])


@EVERY_MODEL
def test_permuting_rows_changes_nothing(model: dict[str, Any]) -> None:
    X, Y = censored()
    order = np.random.default_rng(1).permutation(len(X))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    first = bounded(**model).fit(X, Y, sample_weight=weight)
    second = bounded(**model).fit(X[order], Y[order], sample_weight=weight[order])
    assert_close(parameters(second), parameters(first))
    np.testing.assert_allclose(second.log_likelihood_, first.log_likelihood_, rtol=1e-9)


@EVERY_MODEL
def test_permuting_tasks_permutes_the_results(model: dict[str, Any]) -> None:
    X, Y = censored(n_tasks=5)
    order = np.array([3, 0, 4, 2, 1])
    first, second = bounded(**model).fit(X, Y), bounded(**model).fit(X, Y[:, order])
    assert_close(parameters(second), parameters(first)[order])
    assert_close(second.predict(X), first.predict(X)[:, order])


@EVERY_MODEL
def test_many_tasks_at_once_are_each_alone(model: dict[str, Any]) -> None:
    X, Y = censored(n_tasks=6)
    together = bounded(**model).fit(X, Y)
    alone = np.vstack([parameters(bounded(**model).fit(X, y)) for y in Y.T])
    assert_close(parameters(together), alone)


@EVERY_MODEL
def test_weight_two_is_the_row_twice(model: dict[str, Any]) -> None:
    X, Y = censored()
    times = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = bounded(**model).fit(X, Y, sample_weight=times)
    repeated = bounded(**model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert_close(parameters(weighted), parameters(repeated))
    np.testing.assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)
    np.testing.assert_allclose(weighted.summary(), repeated.summary(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(weighted.bic(), repeated.bic(), rtol=1e-9)


@EVERY_MODEL
def test_weight_zero_is_the_row_left_out(model: dict[str, Any]) -> None:
    X, Y = censored()
    kept = np.random.default_rng(0).random(len(X)) < 0.7
    wild = np.where(kept[:, None], X, 1e3)  # must not leak through mean, scale or count either
    weighted = bounded(**model).fit(wild, Y, sample_weight=kept.astype(float))
    dropped = bounded(**model).fit(X[kept], Y[kept])
    assert_close(parameters(weighted), parameters(dropped))
    np.testing.assert_allclose(weighted.summary(), dropped.summary(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(weighted.aic(), dropped.aic(), rtol=1e-9)


def test_only_the_ratios_of_weights_matter_for_the_estimates() -> None:
    X, Y = censored()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = bounded(alpha=0.1).fit(X, Y, sample_weight=weight)
    other = bounded(alpha=0.1).fit(X, Y, sample_weight=1e-3 * weight)
    assert_close(parameters(other), parameters(model))
    np.testing.assert_allclose(other.log_likelihood_, 1e-3 * model.log_likelihood_, rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"noise": "logistic"}, {"sigma": 1.3}])
def test_missing_entries_are_rows_left_out_of_their_task(settings: dict[str, Any]) -> None:
    X, Y = censored(n_tasks=3)
    known = np.random.default_rng(0).random(Y.shape) < [1.0, 0.8, 0.4]
    model = bounded(**settings).fit(X, np.where(known, Y, np.nan))
    alone = [bounded(**settings).fit(X[k], y[k]) for k, y in zip(known.T, Y.T, strict=True)]
    expected = np.vstack([parameters(one) for one in alone])
    assert_close(parameters(model), expected)
    likelihoods = [one.log_likelihood_[0] for one in alone]
    np.testing.assert_allclose(model.log_likelihood_, likelihoods, rtol=1e-9)
    errors = np.concatenate([one.summary()["std_err"] for one in alone])
    np.testing.assert_allclose(model.summary()["std_err"], errors, rtol=1e-5)
    np.testing.assert_allclose(model.bic(), [one.bic()[0] for one in alone], rtol=1e-9)


def test_missing_entries_of_one_task_do_not_touch_the_others() -> None:
    X, Y = censored(n_tasks=3)
    gaps = Y.copy()
    gaps[::2, 1] = np.nan
    full, partial = bounded(alpha=0.1).fit(X, Y), bounded(alpha=0.1).fit(X, gaps)
    assert_close(parameters(partial)[[0, 2]], parameters(full)[[0, 2]])
    assert np.abs(partial.coef_[1] - full.coef_[1]).max() > 0.01


@EVERY_MODEL
@pytest.mark.parametrize("form", SPARSE_FORMATS[:2], ids=lambda form: form.__name__)
def test_sparse_features_are_dense_features(form: Any, model: dict[str, Any]) -> None:
    X, Y = censored()
    X = np.where(X > 0.0, X + 1.0, 0.0)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    dense = bounded(**model).fit(X, Y, sample_weight=weight)
    sparse = bounded(**model).fit(form(X), Y, sample_weight=weight)
    assert_close(parameters(sparse), parameters(dense))
    assert_close(sparse.predict(form(X)), dense.predict(X))
    np.testing.assert_allclose(sparse.summary(), dense.summary(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(
        sparse.marginal_effects(form(X)), dense.marginal_effects(X), rtol=1e-5, atol=1e-8
    )


@pytest.mark.parametrize("form", [np.asarray, *SPARSE_FORMATS[:1]])
def test_years_that_depend_on_one_another_are_known_as_such(form: Any) -> None:
    """Birth and age give the year, in a sparse matrix too, whose columns are not centred."""
    X, Y = censored()
    age = np.random.default_rng(0).normal(70.0, 5.0, len(X))
    X = np.column_stack([X, age, 2000.0 - age])
    with pytest.warns(CollinearityWarning):
        model = bounded().fit(form(X), Y)
    np.testing.assert_allclose(model.coef_[:, -1], -model.coef_[:, -2], atol=1e-8)


def test_a_wide_sparse_matrix_is_its_dense_self() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60)) * (rng.random((40, 60)) < 0.3)
    y = np.clip(X[:, 0] + rng.normal(size=40), 0.0, 3.0)
    dense = bounded(alpha=0.3).fit(X, y)
    for form in SPARSE_FORMATS:
        sparse = bounded(alpha=0.3).fit(form(X), y)
        assert_close(parameters(sparse), parameters(dense))


def test_a_fit_repeats_itself() -> None:
    X, Y = censored(n_tasks=4)
    first, second = bounded().fit(X, Y), bounded().fit(X, Y)
    assert_close(parameters(first), parameters(second), 1e-9)
    assert_close(first.summary(), second.summary(), 1e-9)


def test_collinear_copies_of_the_columns_change_no_prediction() -> None:
    X, y = one_task()
    model = bounded(alpha=0.1).fit(X, y)
    # A ridge shared by two copies is half as strong on their sum.
    doubled = bounded(alpha=0.2).fit(np.hstack([X, X]), y)
    assert_close(doubled.coef_[:, :3] + doubled.coef_[:, 3:], model.coef_)
    assert_close(doubled.predict(np.hstack([X, X])), model.predict(X))


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_an_orthogonal_change_of_features_without_standardising_changes_no_prediction(
    alpha: float,
) -> None:
    X, Y = censored()
    rotation: FloatArray = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    model = bounded(alpha=alpha, standardize=False).fit(X, Y)
    turned = bounded(alpha=alpha, standardize=False).fit(X @ rotation, Y)
    assert_close(turned.coef_ @ rotation.T, model.coef_)
    assert_close(turned.sigma_, model.sigma_)
