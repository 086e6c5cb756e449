from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LassoCV, RidgeCV

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from paper.baselines.base import Baseline, inner_folds
from paper.baselines.leastsquares import (
    ForestBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
)
from paper.baselines.penalised import GroupLassoBaseline, TraceNormBaseline
from paper.baselines.tobit import InterceptOnly, RidgeTobit, TobitBaseline

ALL: list[Callable[..., Baseline]] = [
    InterceptOnly,
    LeastSquaresBaseline,
    RidgeBaseline,
    LassoBaseline,
    MultiTaskLassoBaseline,
    ForestBaseline,
    TobitBaseline,
    RidgeTobit,
    TraceNormBaseline,
    GroupLassoBaseline,
    partial(TraceNormBaseline, censored=True),
    partial(GroupLassoBaseline, censored=True),
]
LOWER, UPPER = [0.0, -np.inf, 10.0], [5.0, np.inf, np.inf]


def _problem(missing: float = 0.0, n_rows: int = 100) -> tuple[FloatArray, FloatArray]:
    """Standard features; scores between 0 and 5, unbounded, and from 10."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    latent = X @ rng.standard_normal((4, 3)) * [1, 10, 3] + [2, 500, 11]
    latent += rng.standard_normal((n_rows, 3)) * [1, 10, 3]
    Y = np.clip(latent, LOWER, UPPER)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


@pytest.mark.parametrize("kind", ALL)
def test_missing_outcomes_are_skipped_and_bounds_are_kept(kind: Callable[..., Baseline]) -> None:
    X, Y = _problem(missing=0.2)
    untouched = Y.copy()
    model = kind(lower=LOWER, upper=UPPER, cv=2).fit(X[:80], Y[:80])
    point = model.predict(X[80:])
    assert point.shape == (20, 3)
    assert np.isfinite(point).all()
    assert ((point >= LOWER) & (point <= UPPER)).all()
    assert (model.sigma_ > 0.0).all()
    if kind is not InterceptOnly:
        assert model.score(X[80:], Y[80:]) > 0.2
    assert_array_equal(Y, untouched)
    assert_array_equal(clone(model).fit(X[:80], Y[:80]).predict(X[80:]), point)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not ForestBaseline])
def test_an_outcome_in_other_units_is_predicted_in_those(kind: Callable[..., Baseline]) -> None:
    X, Y = _problem()
    model = kind(lower=LOWER, upper=UPPER).fit(X, Y)
    lower, upper = np.multiply(LOWER, 1e4) + 7, np.multiply(UPPER, 1e4) + 7
    scaled = kind(lower=lower, upper=upper).fit(X * 1e-3, Y * 1e4 + 7)
    assert_allclose(scaled.predict(X * 1e-3), model.predict(X) * 1e4 + 7, rtol=1e-4)
    assert_allclose(scaled.sigma_, model.sigma_ * 1e4, rtol=1e-4)


def test_ridge_is_that_of_scikit_learn() -> None:
    X, Y = _problem()
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    folds = inner_folds(len(X), random_state=0)
    reference = RidgeCV(np.logspace(0, 5, 30), cv=folds).fit(X, Y)
    assert_allclose(RidgeBaseline().fit(X, Y).predict(X), reference.predict(X), atol=1e-10)


def test_a_task_with_gaps_is_fitted_to_its_own_rows() -> None:
    X, Y = _problem()
    y = (Y[:, 0] - Y[:60, 0].mean()) / Y[:60, 0].std()
    with_gaps = np.column_stack([np.where(np.arange(100) < 60, y, np.nan), Y[:, 1]])
    folds = inner_folds(60, random_state=1)
    folds = [(np.r_[train, 60:100], test) for train, test in folds]
    reference = LassoCV(
        alphas=30, eps=0.02, cv=[(train[train < 60], test) for train, test in folds]
    ).fit(X[:60], y[:60])
    tuned = LassoBaseline(cv=folds).fit(X, with_gaps)
    assert_allclose(tuned.predict(X)[:, 0], reference.predict(X), atol=1e-3)


def test_sigma_is_that_of_errors_on_rows_not_seen() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 50)), 3.0 * rng.standard_normal((60, 1))
    model = RidgeBaseline().fit(X, Y)
    in_sample = np.sqrt(np.square(Y - model.predict(X)).mean())
    assert model.sigma_[0] > max(2.6, in_sample)
    noiseless = RidgeBaseline().fit(X, np.column_stack([X[:, 0], X[:, 1]]))
    assert (noiseless.sigma_ > 0.0).all()


def test_the_intercept_only_model_is_the_censored_maximum_of_the_likelihood() -> None:
    y = np.array([30.0, 30.0, 30.0, 28.0, 24.0, 17.0, np.nan])

    def nll(parameters: FloatArray) -> float:
        centre, log_sigma = parameters
        seen = norm.logpdf(y[3:6], centre, np.exp(log_sigma))
        return -float(seen.sum() + 3 * norm.logsf(30.0, centre, np.exp(log_sigma)))

    best = minimize(nll, [28.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    model = InterceptOnly(lower=0, upper=30).fit(np.arange(7.0)[:, None], y)
    latent = model.predict(np.zeros((2, 1)), kind="latent")
    assert_allclose(latent, best.x[0], rtol=1e-5)
    assert_allclose(model.sigma_, np.exp(best.x[1]), rtol=1e-5)


def test_the_tobit_baseline_is_a_tobit_with_a_ridge() -> None:
    X, Y = _problem(missing=0.1)
    targets = CensoredTargets.from_bounds(Y, LOWER, UPPER)
    model = RidgeTobit().fit(X, targets)
    reference = TobitRegressor(alpha=model.alpha_).fit(X, targets)
    assert_allclose(model.predict(X), reference.predict(X))
    few = RidgeTobit().fit(np.random.default_rng(0).normal(size=(30, 40)), targets[:30])
    assert few.alpha_ > 0.01


def test_predictive_and_kinds_agree() -> None:
    X, Y = _problem()
    model = RidgeBaseline(lower=LOWER, upper=UPPER).fit(X, Y)
    predictive = model.predictive(X)
    assert_array_equal(model.predict(X, kind="latent"), predictive.latent)
    assert_array_equal(model.predict(X, kind="mean"), predictive.mean())
    assert_array_equal(model.predict(X), np.clip(predictive.latent, LOWER, UPPER))
    with pytest.raises(ValueError, match="kind must be"):
        model.predict(X, kind="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="X has 99 rows but y has 100"):
        model.fit(X[:99], Y)


def test_groups_are_never_split_between_folds() -> None:
    groups = np.repeat(["a", "b", "c"], [5, 1, 4])
    folds = inner_folds(10, groups, cv=5)
    assert len(folds) == 3
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


def test_what_cannot_be_learned_is_named() -> None:
    X, Y = _problem()
    with pytest.raises(ValueError, match="target 'y1' has no value; leave it out"):
        RidgeBaseline().fit(X, np.column_stack([Y[:, 0], np.full(100, np.nan)]))
    with pytest.raises(ValueError, match="contains infinity or a value too large: target 'y0'"):
        RidgeBaseline().fit(X, np.where(np.arange(300).reshape(100, 3) == 0, np.inf, Y))


def test_advice_for_values_beyond_a_bound_is_advice_that_can_be_taken() -> None:
    X, Y = np.random.default_rng(0).normal(size=(2, 20, 1))
    with pytest.raises(ValueError, match=r"CensoredTargets\.from_bounds\(…, outside='clip'\)"):
        RidgeBaseline(lower=0.0).fit(X, Y)
    assert RidgeBaseline().fit(X, CensoredTargets.from_bounds(Y, 0.0, outside="clip")).lower_ == 0.0
