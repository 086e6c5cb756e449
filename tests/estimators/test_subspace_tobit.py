"""SubspaceTobitRegressor at its optimum: known answers, its course, what it refuses."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.estimators.inputs import automatic_alpha
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import anmse, principal_angles
from tests.estimators.problems import assert_close
from tests.estimators.subspaces import data, fitted, subspace

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)


def test_missing_entries_are_filled_from_the_shared_subspace() -> None:
    X, Y, truth = make_subspace(600, 10, 8, 2, sigma=1.0, random_state=0)
    gaps = Y.copy()
    gaps[np.random.default_rng(0).random(Y.shape) < 0.5] = np.nan
    model = SubspaceTobitRegressor(rank=2).fit(X, gaps)
    correlation = np.corrcoef(model.coef_.ravel(), truth.coef.ravel())[0, 1]
    assert correlation > 0.995


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
    tried = subspace().fit(X, Y).history_["alphas"]
    assert tried[0]["alpha"] == pytest.approx(alpha(200, 5, 4))
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
    assert (f"\r{model.n_iter_} Newton steps, gradient" in captured.err) is bool(verbose)
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
    with pytest.raises(ValueError, match="layer must lie from -1 to 0; got 1"):
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
