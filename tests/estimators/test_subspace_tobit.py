"""SubspaceTobitRegressor at its optimum: known answers, invariances, scikit-learn's contract."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_regressor_multioutput,
    parametrize_with_checks,
)

from deeptobit import CensoredTargets, SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.checks import EXPECTED_FAILED_CHECKS
from deeptobit.datasets import make_subspace
from deeptobit.estimators._settings import automatic_alpha
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import anmse, principal_angles
from tests.estimators.problems import SPARSE_FORMATS, assert_close

EXPECTED = EXPECTED_FAILED_CHECKS["SubspaceTobitRegressor"]
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


def data(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Four outcomes between 0 and 3 of five features that act through two directions."""
    X, Y, _ = make_subspace(
        200, 5, 4, 2, latent_sd=1.0, lower=-np.inf, sigma=0.7, random_state=seed
    )
    return X, np.clip(Y + 1.0, 0.0, 3.0)


def subspace(**options: Any) -> SubspaceTobitRegressor:
    """A model for outcomes between 0 and 3, closer to the optimum than by default."""
    defaults: dict[str, Any] = {
        "rank": 2,
        "lower": 0.0,
        "upper": 3.0,
        "solver": "batch",
        "tol": 1e-9,
    }
    return SubspaceTobitRegressor(**(defaults | options))


def fitted(model: SubspaceTobitRegressor) -> FloatArray:
    """(coef, intercept, σ) of every task, (T, D + 2)."""
    return np.column_stack([model.coef_, model.intercept_, model.sigma_])


def _expected_failures(estimator: Any) -> dict[str, str]:
    return EXPECTED if estimator.lower == 0.0 else {}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [SubspaceTobitRegressor(), SubspaceTobitRegressor(lower=None, alpha=0.1)],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_one_check_is_expected_to_fail_for_its_negative_outcomes() -> None:
    assert set(EXPECTED) == {"check_regressor_multioutput"}
    with pytest.raises(ValueError, match="lie below its lower bound"):
        check_regressor_multioutput("SubspaceTobitRegressor", SubspaceTobitRegressor())


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
@pytest.mark.parametrize("form", SPARSE_FORMATS, ids=lambda form: form.__name__)
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
    assert model.alpha_ == pytest.approx(automatic_alpha(known, len(Y), 5))


def test_missing_entries_are_filled_from_the_shared_subspace() -> None:
    X, Y, truth = make_subspace(600, 10, 8, 2, sigma=1.0, random_state=0)
    gaps = Y.copy()
    gaps[np.random.default_rng(0).random(Y.shape) < 0.5] = np.nan
    model = SubspaceTobitRegressor(rank=2).fit(X, gaps)
    correlation = np.corrcoef(model.coef_.ravel(), truth.coef.ravel())[0, 1]
    assert correlation > 0.995


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


def test_names_are_those_of_the_data_frames() -> None:
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    scores = pd.DataFrame(Y, columns=["MMSE", "ADAS", "SF36", "CDR"])
    named = subspace().fit(frame, scores)
    assert named.target_names_ == ["MMSE", "ADAS", "SF36", "CDR"]
    assert named.feature_names_in_.tolist() == list("abcde")
    assert_close(fitted(named), fitted(subspace().fit(X, Y)), 1e-9)
    with pytest.raises(ValueError, match="feature names"):
        named.transform(frame[list("edcba")])


def test_inputs_are_not_modified() -> None:
    X, Y = data()
    Y[3, 1] = np.nan
    weight = np.ones(len(X))
    copies = [array.copy() for array in (X, Y, weight)]
    for array in (X, Y, weight):
        array.flags.writeable = False
    model = subspace().fit(X, Y, sample_weight=weight)
    model.predict(X)
    model.transform(X)
    for array, copy in zip((X, Y, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_one_outcome_may_be_one_dimensional() -> None:
    X, Y = data()
    flat, column = subspace().fit(X, Y[:, 0]), subspace().fit(X, Y[:, [0]])
    assert flat.rank_ == 1
    assert flat.predict(X).shape == (len(X),)
    assert column.predict(X).shape == (len(X), 1)
    assert flat.coef_.shape == (1, 5)
    assert_close(fitted(flat), fitted(column), 1e-12)


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


@pytest.mark.parametrize("rank", [1, 2, 4, 9])
def test_coefficients_are_the_product_of_the_factors(rank: int) -> None:
    X, Y = data()
    model = subspace(rank=rank).fit(X, Y)
    used = min(rank, 4)
    assert model.rank_ == used
    assert model.U_.shape == (4, used)
    assert model.V_.shape == (used, 5)
    assert_close(model.U_ @ model.V_, model.coef_, 1e-12)
    latent = model.transform(X)
    assert latent.shape == (len(X), used)
    assert_close(latent, X @ model.V_.T, 1e-12)
    expected = latent @ model.U_.T + model.intercept_
    assert_close(model.predict(X, kind="latent"), expected, 1e-10)
    assert_close(model.transform(X, layer=0), latent, 1e-12)


def test_redundant_features_leave_components_empty() -> None:
    X, Y = data()
    model = subspace(rank=4).fit(np.column_stack([X[:, 0], X[:, 0], np.ones(len(X))]), Y)
    assert model.rank_ == 3
    assert model.U_.shape == (4, 3)
    assert np.linalg.matrix_rank(model.coef_) == 1
    assert_close(model.coef_[:, 0], model.coef_[:, 1])
    assert_close(model.coef_[:, 2], 0.0)


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_at_full_rank_without_penalty_every_task_is_a_tobit(noise: str, missing: bool) -> None:
    X, Y = data()
    if missing:
        Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    model = subspace(rank=4, alpha=1e-8, noise=noise).fit(X, Y)
    tobit = TobitRegressor(lower=0.0, upper=3.0, noise=noise).fit(X, Y)
    assert_close(model.coef_, tobit.coef_, 1e-3)
    assert_close(model.intercept_, tobit.intercept_, 1e-3)
    assert_close(model.sigma_, tobit.sigma_, 1e-3)
    assert_close(model.predict_quantile(X, [0.1, 0.5]), tobit.predict_quantile(X, [0.1, 0.5]), 1e-2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_predicts_almost_as_well_as_the_truth(seed: int) -> None:
    X, Y, truth = make_subspace(1500, 40, 20, 3, sigma=3.0, random_state=seed)
    model = SubspaceTobitRegressor(rank=3).fit(X[:1200], Y[:1200])
    oracle = anmse(Y[1200:], truth.predict(X[1200:]))
    assert anmse(Y[1200:], model.predict(X[1200:], kind="clip")) < 1.05 * oracle
    assert np.cos(principal_angles(truth.U, model.U_)).min() > 0.99
    np.testing.assert_allclose(model.sigma_, 3.0, rtol=0.15)
    assert model.history_["gradient_norm"] <= 1e-5


@pytest.mark.parametrize("shape", [(40, 60, 5), (100, 30, 10), (300, 10, 3), (1000, 20, 20)])
def test_on_pure_noise_automatic_alpha_stays_near_the_intercepts(
    shape: tuple[int, int, int],
) -> None:
    n_samples, n_features, n_tasks = shape
    rng = np.random.default_rng(n_samples)
    X = rng.normal(size=(n_samples + 2000, n_features))
    Y = np.maximum(rng.normal(size=(n_samples + 2000, n_tasks)), 0.0)
    rows, held_out = slice(n_samples), slice(n_samples, None)
    scores = [
        SubspaceTobitRegressor(alpha=alpha)
        .fit(X[rows], Y[rows])
        .score_log(X[held_out], Y[held_out])
        for alpha in ("auto", 1e6)
    ]
    assert scores[0] > scores[1] - 0.02


def test_sigma_is_that_of_the_residuals_of_a_small_cohort() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2060, 3))
    X = hidden @ rng.normal(size=(3, 40)) + 0.3 * rng.normal(size=(2060, 40))
    Y = hidden @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(2060, 5))
    model = SubspaceTobitRegressor(rank=5, lower=None).fit(X[:60], Y[:60])
    assert model.score(X[60:], Y[60:]) > 0.9
    residuals = (Y - model.predict(X))[60:].std(axis=0)
    assert (model.sigma_ < 2.0 * residuals).all()


def test_automatic_alpha_leaves_a_signal_where_most_outcomes_are_missing() -> None:
    X, Y, _ = make_subspace(1300, 12, 12, 2, sigma=1.0, latent_sd=2.0, random_state=0)
    held_out = X[300:], Y[300:]
    Y = Y[:300].copy()
    Y[np.random.default_rng(0).random(Y.shape) < 0.7] = np.nan
    scores = [
        SubspaceTobitRegressor(2, alpha=alpha).fit(X[:300], Y).score(*held_out)
        for alpha in ("auto", 0.1, 0.3)
    ]
    assert scores[0] > max(scores) - 0.05


def test_automatic_alpha_vanishes_as_rows_are_added() -> None:
    def alpha(n_rows: float, n_features: int = 50, n_tasks: int = 20) -> float:
        return automatic_alpha(np.full(n_tasks, n_rows), n_rows, n_features)

    alphas = [alpha(n) for n in (1e1, 1e2, 1e4, 1e8, 1e12)]
    assert alphas == sorted(alphas, reverse=True)
    assert alphas[-1] < 1e-5
    np.testing.assert_allclose(alpha(4e12), 0.5 * alphas[-1], rtol=1e-6)
    X, Y = data()
    assert subspace().fit(X, Y).alpha_ == pytest.approx(alpha(200, 5, 4))
    assert subspace(alpha=0.25).fit(X, Y).alpha_ == 0.25


@pytest.mark.parametrize(
    ("solver", "reason"), [("auto", "small enough to go to the optimum"), ("batch", "as asked for")]
)
def test_history_says_what_was_done_and_how_it_ended(solver: str, reason: str) -> None:
    X, Y = data()
    model = subspace(solver=solver, tol=1e-6).fit(X, Y)
    history = model.history_
    expected = "solver reason objective gradient_norm certificate alpha_max converged course"
    assert set(history) >= set(expected.split())
    assert history["solver"] == "batch"
    assert reason in history["reason"]
    assert history["converged"] is True
    assert 0.0 <= history["gradient_norm"] <= 1e-6
    assert np.isfinite(history["objective"])
    assert model.n_iter_ >= 1


def test_the_course_has_a_record_per_newton_step() -> None:
    X, Y = data()
    model = subspace().fit(X, Y)
    course = model.history_["course"]
    assert [step.n_iter for step in course] == list(range(1, model.n_iter_ + 1))
    assert course[-1].objective == model.history_["objective"]
    assert course[-1].gradient_norm == model.history_["gradient_norm"]
    assert np.diff([step.objective for step in course]).max() < 1e-9
    assert course[-1].subspace_change < 1e-4


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_is_shown_when_asked_for(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = data()
    model = subspace(verbose=verbose).fit(X, Y)
    captured = capsys.readouterr()
    assert not captured.out
    assert (f"\r{model.n_iter_} Newton steps, objective" in captured.err) is bool(verbose)
    assert captured.err.endswith("\n" if verbose else "")


def test_history_holds_the_certificate_and_the_largest_useful_alpha() -> None:
    X, Y = data()
    largest = subspace(rank=4, sigma=0.7).fit(X, Y).history_["alpha_max"]
    empty = subspace(rank=4, sigma=0.7, alpha=1.02 * largest).fit(X, Y)
    assert np.abs(empty.coef_).max() < 1e-6
    assert empty.history_["certificate"] <= 1.0
    some = subspace(rank=4, sigma=0.7, alpha=0.9 * largest).fit(X, Y)
    assert np.abs(some.coef_).max() > 1e-3
    assert some.history_["certificate"] <= 1.001


def test_an_unfinished_fit_warns_with_advice() -> None:
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match=r"after 1 Newton steps \(relative gradient norm"):
        model = subspace(max_iter=1).fit(X, Y)
    assert model.history_["converged"] is False
    assert np.isfinite(fitted(model)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a whole number, at least 1"),
        ({"rank": 2.5}, "rank must be a whole number, at least 1"),
        ({"rank": "all"}, "rank must be a whole number, at least 1"),
        ({"alpha": -0.1}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"alpha": "cv"}, "alpha must be 'auto' or a number"),
        ({"solver": "newton"}, "solver must be 'auto', 'batch' or 'online'"),
        ({"sigma": -1.0}, "sigma must be positive"),
        ({"prediction": "median"}, "median"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be a whole number, at least 1"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named(options: dict[str, Any], message: str) -> None:
    X, Y = data()
    with pytest.raises(ValueError, match=message):
        subspace(**options).fit(X, Y)


def test_a_layer_that_does_not_exist_is_named() -> None:
    X, Y = data()
    with pytest.raises(ValueError, match="layer must be 0 or -1, got 1"):
        subspace().fit(X, Y).transform(X, layer=1)
    with pytest.raises(NotFittedError):
        subspace().transform(X)


def test_fewer_rows_than_features_need_a_penalty() -> None:
    X, Y, _ = make_subspace(30, 50, 4, 2, random_state=0)
    with pytest.raises(ValueError, match="cannot determine 50 features without a penalty"):
        SubspaceTobitRegressor(rank=2, alpha=0.0).fit(X, Y)
    model = SubspaceTobitRegressor(rank=2).fit(X, Y)
    assert np.isfinite(fitted(model)).all()


@pytest.mark.parametrize("sigma", [0.8, [0.5, 1.0, 1.5, 2.0]])
def test_a_given_sigma_is_kept(sigma: Any) -> None:
    X, Y = data()
    assert_close(subspace(sigma=sigma).fit(X, Y).sigma_, np.broadcast_to(sigma, 4), 1e-12)


@pytest.mark.parametrize("noise", ["logistic", "student_t"])
def test_other_noise_is_fitted(noise: str) -> None:
    X, Y = data()
    model = subspace(noise=noise).fit(X, Y)
    assert np.isfinite(fitted(model)).all()
    assert model.score(X, Y) > 0.3
    null = subspace(noise=noise, alpha=1e6).fit(X, Y)
    assert model.score_log(X, Y) > null.score_log(X, Y) + 0.1


def test_a_task_at_its_bound_throughout_warns_and_stays_finite() -> None:
    X, Y = data()
    Y[:, 2] = 0.0
    with pytest.warns(CensoringWarning, match="every entry is censored on the same side"):
        model = subspace().fit(X, Y)
    assert np.isfinite(fitted(model)).all()
    assert model.predict(X)[:, 2].max() < 0.1
    assert_close(model.coef_[2], 0.0)


def test_a_pickled_model_predicts_the_same() -> None:
    X, Y = data()
    model = subspace().fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))


def test_scaling_in_a_pipeline_changes_nothing() -> None:
    X, Y = data()
    piped = make_pipeline(StandardScaler(), subspace()).fit(100.0 * X, Y)
    assert_close(piped.predict(100.0 * X), subspace().fit(X, Y).predict(X), 1e-5)
    reduced = make_pipeline(subspace(), TobitRegressor(upper=3.0)).fit(X, Y)
    assert reduced[-1].coef_.shape == (4, 2)


def test_grid_search_finds_the_true_rank() -> None:
    X, Y, _ = make_subspace(300, 10, 8, 3, sigma=1.0, random_state=0)
    grid = {"rank": [1, 2, 3]}
    search = GridSearchCV(SubspaceTobitRegressor(), grid, cv=KFold(3)).fit(X, Y)
    assert search.best_params_ == {"rank": 3}
    means = search.cv_results_["mean_test_score"]
    assert means.tolist() == sorted(means)


def test_coordinates_are_named_after_the_class() -> None:
    X, Y = data()
    model = subspace().fit(X, Y).set_output(transform="pandas")
    names = ["subspacetobitregressor0", "subspacetobitregressor1"]
    frame = model.transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == names
    assert model.get_feature_names_out().tolist() == names
