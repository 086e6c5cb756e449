"""R² and mean log density, against scikit-learn, SciPy and the likelihood of the fit."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import r2_score

from deeptobit import CensoredTargets
from deeptobit.metrics import censored_log_score, centred_anmse
from tests.estimators.problems import bounded, censored, one_task


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_score_is_r2_of_the_mean(n_tasks: int) -> None:
    X, Y = censored(n_tasks=n_tasks)
    model = bounded().fit(X, Y)
    weight = np.random.default_rng(0).uniform(size=len(X))
    np.testing.assert_allclose(model.score(X, Y), r2_score(Y, model.predict(X)), rtol=1e-10)
    np.testing.assert_allclose(
        model.score(X, Y, sample_weight=weight),
        r2_score(Y, model.predict(X), sample_weight=weight),
        rtol=1e-10,
    )


def test_score_is_one_minus_the_centred_anmse() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    expected = 1.0 - float(centred_anmse(Y, model.predict(X)))
    np.testing.assert_allclose(model.score(X, Y), expected, rtol=1e-12)


def test_score_takes_the_mean_whatever_predict_returns() -> None:
    X, Y = censored()
    scores = [bounded(prediction=kind).fit(X, Y).score(X, Y) for kind in ("mean", "latent", "clip")]
    assert scores == [scores[0]] * 3


def test_score_skips_missing_entries() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    Y[::3, 1] = np.nan
    known = ~np.isnan(Y[:, 1])
    expected = np.mean(
        [
            r2_score(Y[:, 0], model.predict(X)[:, 0]),
            r2_score(Y[known, 1], model.predict(X)[known, 1]),
        ]
    )
    np.testing.assert_allclose(model.score(X, Y), expected, rtol=1e-10)


@pytest.mark.parametrize("noise", ["gaussian", "logistic", "student_t"])
def test_score_log_is_the_log_likelihood_per_row_on_the_training_data(noise: str) -> None:
    X, y = one_task()
    model = bounded(noise=noise).fit(X, y)
    np.testing.assert_allclose(len(X) * model.score_log(X, y), model.log_likelihood_[0], rtol=1e-10)


def test_weighted_score_log_is_the_weighted_log_likelihood() -> None:
    X, y = one_task()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = bounded(alpha=0.1).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        weight.sum() * model.score_log(X, y, sample_weight=weight),
        model.log_likelihood_[0],
        rtol=1e-10,
    )


def test_score_log_averages_over_entries_then_over_tasks() -> None:
    X, Y = censored()
    Y[::2, 1] = np.nan
    model = bounded().fit(X, Y)
    counts = (~np.isnan(Y)).sum(axis=0)
    expected = np.mean(model.log_likelihood_ / counts)
    np.testing.assert_allclose(model.score_log(X, Y), expected, rtol=1e-10)
    metric = censored_log_score(
        Y, model.predict(X, kind="latent"), model.sigma_, lower=0.0, upper=3.0
    )
    np.testing.assert_allclose(model.score_log(X, Y), -float(metric), rtol=1e-12)


def test_score_log_counts_each_kind_of_entry_by_its_probability() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    rows = X[:4]
    eta, sigma = model.predict(rows, kind="latent"), model.sigma_[0]
    low, high = [-np.inf, 3.0, 1.0, 1.5], [0.0, np.inf, 2.0, 1.5]
    targets = CensoredTargets.from_intervals(low, high)
    expected = np.mean(
        [
            norm.logcdf(0.0, eta[0], sigma),
            norm.logsf(3.0, eta[1], sigma),
            np.log(norm.cdf(2.0, eta[2], sigma) - norm.cdf(1.0, eta[2], sigma)),
            norm.logpdf(1.5, eta[3], sigma),
        ]
    )
    np.testing.assert_allclose(model.score_log(rows, targets), expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["score", "score_log"])
def test_scores_take_limits_per_row(method: str) -> None:
    X, Y = censored()
    limits = np.random.default_rng(0).uniform(0.0, 1.0, Y.shape)
    Y = np.maximum(Y, limits)
    model = bounded().fit(X, Y, lower=limits)
    targets = CensoredTargets.from_bounds(Y, 0.0, 3.0, entry_lower=limits)
    given = getattr(model, method)(X, Y, lower=limits)
    np.testing.assert_allclose(getattr(model, method)(X, targets), given, rtol=1e-12)
    if method == "score":
        expected = r2_score(Y, model.predict(X, lower=limits))
    else:
        expected = np.mean(model.log_likelihood_) / len(X)
    np.testing.assert_allclose(given, expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["score", "score_log"])
@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (lambda Y: Y[:10], "X has 150 rows but Y has 10"),
        (lambda Y: Y[:, :1], r"y has 1 target\(s\), but the model was fitted to 2"),
        (lambda Y: Y + 1.0, "'errors': .* lie above its upper bound|'MMSE': .* above its upper"),
        (lambda Y: np.full_like(Y, np.nan), "MMSE"),
    ],
    ids=["rows", "tasks", "outside", "missing"],
)
def test_scores_refuse_outcomes_that_do_not_fit(method: str, Y: Any, message: str) -> None:
    X, outcomes = censored()
    model = bounded().fit(X, pd.DataFrame(outcomes, columns=["MMSE", "errors"]))
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, Y(outcomes))


@pytest.mark.parametrize("method", ["score", "score_log"])
def test_scores_refuse_columns_in_another_order(method: str) -> None:
    X, Y = censored()
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    model = bounded().fit(X, frame)
    with pytest.raises(ValueError, match=r"columns of y are errors, MMSE, but .* fitted to MMSE"):
        getattr(model, method)(X, frame[["errors", "MMSE"]])


def test_a_better_model_scores_better_on_new_data() -> None:
    X, Y = censored(n_samples=2000)
    full = bounded().fit(X[:1000], Y[:1000])
    partial = bounded().fit(X[:1000, :1], Y[:1000])
    assert full.score(X[1000:], Y[1000:]) > partial.score(X[1000:, :1], Y[1000:]) + 0.05
    assert full.score_log(X[1000:], Y[1000:]) > partial.score_log(X[1000:, :1], Y[1000:]) + 0.05
