"""Data that leave something undetermined: a warning says what, and results stay finite."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.exceptions import CensoringWarning, CollinearityWarning
from tests.estimators.models import EVERY_MODEL
from tests.estimators.problems import (
    assert_close,
    bounded,
    censored,
    estimate,
    jacobian,
    moved,
    one_task,
    parameters,
)

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

NAMES = ["age", "volume", "marker"]


@pytest.mark.parametrize("bound", [0.0, 3.0])
def test_a_task_at_one_bound_is_predicted_near_it(bound: float) -> None:
    X, Y = censored()
    Y[:, 1] = bound
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    with pytest.warns(CensoringWarning, match="'errors': every entry is censored on the same side"):
        model = bounded().fit(X, frame)
    np.testing.assert_allclose(model.predict(X)[:, 1], bound, atol=0.02)
    np.testing.assert_array_equal(model.predict(X, kind="clip")[:, 1], bound)
    assert np.isfinite(parameters(model)).all()
    assert np.isfinite(model.log_likelihood_).all()
    assert_close(parameters(model)[0], parameters(bounded().fit(X, Y[:, 0]))[0])


@EVERY_MODEL
def test_a_warning_points_to_the_line_that_fits(model: Any) -> None:
    X, Y = censored()
    Y[:, 1] = 0.0
    with pytest.warns(CensoringWarning) as caught:
        clone(model).fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_task_at_one_bound_has_no_standard_errors_but_the_others_do() -> None:
    X, Y = censored()
    Y[:, 0] = 0.0
    with pytest.warns(CensoringWarning, match="'y0'"):
        model = bounded().fit(X, Y)
    with pytest.warns(CensoringWarning, match=r"'y0': .* standard errors are NaN"):
        undetermined = model.summary()["std_err"].isna().unstack("target")
    assert undetermined["y0"].all()
    assert not undetermined["y1"].any()
    with pytest.warns(CensoringWarning, match=r"'y0': .* standard errors are NaN"):
        assert model.wald_test()["statistic"].isna().tolist() == [True, False]


def test_the_chance_of_leaving_the_bound_is_half_a_row_in_n_plus_one() -> None:
    X, _ = one_task(n_samples=99)
    with pytest.warns(CensoringWarning):
        model = TobitRegressor().fit(X, np.zeros(99))
    np.testing.assert_allclose(1.0 - model.predict_bound_proba(X)[0], 0.5 / 100.0, rtol=1e-9)


def test_rows_of_weight_zero_do_not_decide_at_which_bound_a_task_sits() -> None:
    X, _ = one_task()
    y = np.r_[0.0, np.full(len(X) - 1, 3.0)]
    weight = np.r_[0.0, np.ones(len(X) - 1)]
    with pytest.warns(CensoringWarning):
        model = bounded().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), 3.0, atol=0.02)


def test_weight_two_is_the_row_twice_for_a_task_at_one_bound() -> None:
    X, _ = one_task()
    y = np.zeros(len(X))
    with pytest.warns(CensoringWarning):
        weighted = bounded().fit(X, y, sample_weight=np.full(len(X), 2.0))
    with pytest.warns(CensoringWarning):
        repeated = bounded().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert_close(parameters(weighted), parameters(repeated))


def test_a_task_at_both_bounds_holds_sigma_and_learns_the_rest() -> None:
    X, y = one_task(n_samples=400)
    y = np.where(y > 0.7, 3.0, 0.0)
    with pytest.warns(CensoringWarning, match="every entry is at a bound, so sigma is not"):
        model = bounded().fit(X, y)
    np.testing.assert_allclose(model.sigma_, y.std(), rtol=1e-9)
    assert model.predict(X)[y == 3.0].mean() > model.predict(X)[y == 0.0].mean() + 0.5
    assert list(model.summary().loc["y"].index) == ["x0", "x1", "x2", "(intercept)"]
    slopes = jacobian(lambda point: moved(model, point).score_log(X, y), estimate(model))
    np.testing.assert_allclose(slopes[0, :-1], 0.0, atol=1e-7)


def test_entries_above_or_below_one_threshold_are_a_probit() -> None:
    # Two groups, of which 70 % and 20 % exceed 1: a saturated probit.
    above = np.r_[np.zeros(30), np.ones(70), np.zeros(80), np.ones(20)] == 1.0
    group = np.r_[np.zeros(100), np.ones(100)][:, None]
    targets = CensoredTargets.from_intervals(
        np.where(above, 1.0, -np.inf), np.where(above, np.inf, 1.0)
    )
    with pytest.warns(CensoringWarning, match="sigma is not determined"):
        model = TobitRegressor().fit(group, targets)
    latent = model.predict([[0.0], [1.0]], kind="latent")
    np.testing.assert_allclose((latent - 1.0) / model.sigma_, norm.ppf([0.7, 0.2]), rtol=1e-6)


def thresholds(seed: int = 0) -> tuple[Any, CensoredTargets]:
    """All that is known of η + 0.7ε is whether it exceeds a threshold that differs by row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 1))
    latent = 2.0 * X[:, 0] + 1.0 + 0.7 * rng.normal(size=3000)
    threshold = rng.normal(1.0, 2.0, size=3000)
    low = np.where(latent > threshold, threshold, -np.inf)
    high = np.where(latent > threshold, np.inf, threshold)
    return X, CensoredTargets.from_intervals(low, high)


def test_thresholds_that_differ_by_row_determine_sigma() -> None:
    X, targets = thresholds()
    model = TobitRegressor().fit(X, targets)
    np.testing.assert_allclose(parameters(model), [[2.0, 1.0, 0.7]], atol=0.15)


def test_a_given_sigma_is_not_reported_as_undetermined() -> None:
    X, targets = thresholds()
    model = TobitRegressor(sigma=0.7).fit(X, targets)
    np.testing.assert_allclose(parameters(model), [[2.0, 1.0, 0.7]], atol=0.15)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_duplicate_columns_are_named_and_share_their_coefficient(form: Any) -> None:
    X, Y = censored()
    with pytest.warns(CollinearityWarning, match=r"features 'x0', 'x3' are constant or linearly"):
        model = bounded().fit(form(np.column_stack([X, X[:, 0]])), Y)
    plain = bounded().fit(X, Y)
    assert_close(model.coef_[:, [0, 3]], 0.5 * plain.coef_[:, [0, 0]])
    assert_close(model.coef_[:, 1:3], plain.coef_[:, 1:])
    assert_close(model.sigma_, plain.sigma_)
    assert_close(model.aic(), plain.aic())


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (np.asarray, 0.0),
        (np.asarray, 0.1),
        (np.asarray, 1e6),
        (csr_array, 0.1),
        (csr_array, 100.0),
        (csr_array, 1e4),
        (csr_array, 1e6),
    ],
)
def test_a_constant_column_is_named_and_gets_no_coefficient(form: Any, value: float) -> None:
    X, Y = censored()
    constant = np.full(len(X), value)
    with pytest.warns(CollinearityWarning, match=r"features 'x1' are constant"):
        model = bounded().fit(form(np.column_stack([X[:, 0], constant, X[:, 1:]])), Y)
    plain = bounded().fit(X, Y)
    np.testing.assert_allclose(model.coef_[:, 1] * value, 0.0, atol=1e-4)
    assert_close(np.delete(model.coef_, 1, axis=1), plain.coef_)
    assert_close(model.sigma_, plain.sigma_)


def test_dummies_of_every_category_are_named_as_dependent() -> None:
    X, Y = censored()
    frame = pd.DataFrame(X, columns=NAMES)
    for level, site in enumerate(["Aachen", "Bonn", "Köln"]):
        frame[site] = (np.arange(len(X)) % 3 == level).astype(float)
    with pytest.warns(CollinearityWarning, match=r"'Aachen', 'Bonn', 'Köln' .* \(1 redundant"):
        model = bounded().fit(frame, Y)
    plain = bounded().fit(frame.drop(columns="Köln"), Y)
    assert_close(model.predict(frame), plain.predict(frame.drop(columns="Köln")))


def test_columns_that_all_but_depend_on_one_another_are_named() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    X = np.column_stack([X, X[:, 1] + 1e-5 * rng.normal(size=200)])
    with pytest.warns(CollinearityWarning, match="features 'x1', 'x3' are nearly linearly dep"):
        TobitRegressor(lower=None).fit(X, y)


def test_a_ridge_needs_no_warning_of_collinearity() -> None:
    X, Y = censored()
    model = bounded(alpha=0.1).fit(np.column_stack([X, X[:, 0], np.ones(len(X))]), Y)
    assert_close(model.coef_[:, 0], model.coef_[:, 3])
    assert_close(model.coef_[:, 4], 0.0)


def test_a_constant_column_replaces_the_intercept_where_there_is_none() -> None:
    X, Y = censored()
    with_ones = bounded(fit_intercept=False).fit(np.column_stack([X, np.ones(len(X))]), Y)
    plain = bounded().fit(X, Y)
    assert_close(with_ones.coef_, np.column_stack([plain.coef_, plain.intercept_]))
    np.testing.assert_array_equal(with_ones.intercept_, 0.0)


def test_units_do_not_make_columns_dependent_when_they_are_not_standardised() -> None:
    X, Y = censored()
    units = np.array([1e6, 1.0, 1.0])
    model = bounded(standardize=False).fit(X * units, Y)
    np.testing.assert_allclose(model.coef_ * units, bounded().fit(X, Y).coef_, rtol=1e-5)


@pytest.mark.parametrize("origin", [0.0, 2000.0, 1e6])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_column_that_is_constant_where_a_task_is_known_is_named(form: Any, origin: float) -> None:
    X, Y = censored()
    X[:75, 0] = 1.1
    X[:, 0] += origin
    Y[75:, 0] = np.nan
    with pytest.warns(CollinearityWarning, match=r"is known only in rows in which .*'x0' do not"):
        model = bounded().fit(form(X), Y)
    np.testing.assert_allclose(model.coef_[0, 0], 0.0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:features 'x3' are constant")
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_column_that_is_constant_everywhere_is_named_once(form: Any) -> None:
    for value in (0.1, 7.7, 1e9 + 0.1):
        X, Y = censored(n_samples=700)
        Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
        bounded().fit(form(np.column_stack([X, np.full(700, value)])), Y)


def test_fewer_rows_than_features_ask_for_a_penalty() -> None:
    X, Y = censored(n_samples=4, n_features=6)
    with pytest.raises(ValueError, match=r"4 row\(s\).* cannot determine 6 features.*alpha > 0"):
        bounded().fit(X, Y)
    assert np.isfinite(bounded(alpha=0.1).fit(X, Y).predict(X)).all()


def test_rows_of_weight_zero_do_not_determine_features() -> None:
    X, Y = censored(n_samples=20, n_features=6)
    with pytest.raises(ValueError, match=r"4 row\(s\).* cannot determine 6 features"):
        bounded().fit(X, Y, sample_weight=np.r_[np.ones(4), np.zeros(16)])


def test_a_task_with_fewer_entries_than_features_is_named() -> None:
    X, Y = censored()
    Y[2:, 1] = np.nan
    with pytest.raises(ValueError, match="target 'y1' has 2 entries for 3 features"):
        bounded().fit(X, Y)


def test_a_task_without_an_entry_is_named() -> None:
    X, Y = censored()
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    frame["errors"] = np.nan
    with pytest.raises(ValueError, match=r"target 'errors' has no entry \(all are missing\)"):
        bounded().fit(X, frame)


def test_a_task_whose_only_entries_weigh_nothing_is_named() -> None:
    X, Y = censored()
    Y[1:, 0] = np.nan
    with pytest.raises(ValueError, match=r"'y0' has no entry .* or have weight 0"):
        bounded(alpha=0.1).fit(X, Y, sample_weight=np.r_[0.0, np.ones(len(X) - 1)])


@pytest.mark.parametrize("upper", [None, 3.0])
def test_an_exactly_fitted_task_ends_at_the_floor_of_sigma(upper: Any) -> None:
    X, _ = one_task()
    coef = np.array([1.0, 2.0, -0.5])
    y = np.clip(X @ coef + 0.5, -np.inf if upper is None else 0.0, upper)
    model = TobitRegressor(lower=None if upper is None else 0.0, upper=upper).fit(X, y)
    np.testing.assert_allclose(model.sigma_, 1e-6 * y.std(), rtol=1e-6)
    np.testing.assert_allclose(model.coef_[0], coef, rtol=1e-5)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)
    assert np.isfinite(model.log_likelihood_).all()
    assert np.isfinite(model.score_log(X, y))


@pytest.mark.parametrize("value", [0.0, 7.0, -1e8])
def test_a_constant_outcome_without_bounds_is_predicted_as_it_is(value: float) -> None:
    X, _ = one_task()
    model = TobitRegressor(lower=None).fit(X, np.full(len(X), value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9, atol=1e-9)
    assert (model.sigma_ > 0.0).all()


def test_too_few_steps_are_reported_with_the_targets() -> None:
    X, Y = censored()
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    with pytest.warns(ConvergenceWarning, match=r"1 Newton steps for target\(s\) 'MMSE', 'errors'"):
        model = bounded(max_iter=1).fit(X, frame)
    assert not model.history_["converged"].any()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "noise",
    [
        "gaussian",
        "logistic",
    ],
)
def test_one_observed_entry_among_censored_ones_is_solved_with_a_ridge(noise: str) -> None:
    rng = np.random.default_rng(41)
    X = rng.normal(size=(30, 1))
    y = np.clip(10.0 * X[:, 0] - 5.0 + rng.normal(size=30), 0.0, 0.5)
    assert ((y > 0.0) & (y < 0.5)).sum() == 1
    model = TobitRegressor(upper=0.5, noise=noise, alpha=0.01).fit(X, y)
    assert model.history_["converged"].all()


def test_history_tells_of_every_task_how_it_converged() -> None:
    X, Y = censored(n_tasks=4)
    model = bounded(tol=1e-7).fit(X, Y)
    assert model.history_["converged"].tolist() == [True] * 4
    assert model.history_["gradient_norm"].max() <= 1e-7
    assert model.n_iter_ == model.history_["n_iter"].max() <= 20
