"""Ridge, lasso, forest and Tobit models on outcomes with gaps and bounds."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LassoCV, LinearRegression, MultiTaskLassoCV, RidgeCV

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.app.study import InterceptOnly, Regression, inner_folds, make_methods, methods
from deeptobit.app.study.methods import METHODS, Filled, RidgeTobit, Taskwise, among, fill
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Predictive

BASELINES = [name for name in METHODS if name != "network"]
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


def _targets(Y: FloatArray, lower: Any = LOWER, upper: Any = UPPER) -> CensoredTargets:
    return CensoredTargets.from_bounds(Y, lower, upper)


def _standard() -> tuple[FloatArray, CensoredTargets]:
    """Features and outcomes in standard units."""
    X, Y = _problem()
    return X, CensoredTargets.from_bounds((Y - Y.mean(axis=0)) / Y.std(axis=0))


@pytest.mark.parametrize("name", BASELINES)
def test_missing_outcomes_are_skipped_and_bounds_are_kept(name: str) -> None:
    X, Y = _problem(missing=0.2)
    targets = _targets(Y[:80])
    model = make_methods([name])[name].set_params(cv=2).fit(X[:80], targets)
    point = model.predict(X[80:])
    assert point.shape == (20, 3)
    assert np.isfinite(point).all()
    assert ((point >= LOWER) & (point <= UPPER)).all()
    assert (model.sigma_ > 0.0).all()
    if name != "null":
        errors, spread = np.nanmean((Y[80:] - point) ** 2, axis=0), np.nanvar(Y[80:], axis=0)
        assert (errors / spread).mean() < 0.8
    assert_array_equal(targets.values, Y[:80])
    assert_array_equal(clone(model).fit(X[:80], targets).predict(X[80:]), point)


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "forest"])
def test_an_outcome_in_other_units_is_predicted_in_those(name: str) -> None:
    X, Y = _problem()
    unfitted = make_methods([name])[name].set_params(cv=2)
    model = clone(unfitted).fit(X, _targets(Y))
    lower, upper = np.multiply(LOWER, 1e4) + 7, np.multiply(UPPER, 1e4) + 7
    scaled = clone(unfitted).fit(X * 1e-3, _targets(Y * 1e4 + 7, lower, upper))
    assert_allclose(scaled.predict(X * 1e-3), model.predict(X) * 1e4 + 7, rtol=1e-4)
    assert_allclose(scaled.sigma_, model.sigma_ * 1e4, rtol=1e-4)


def test_regressions_are_those_of_scikit_learn() -> None:
    X, targets = _standard()
    Y, folds = targets.values, inner_folds(len(X), random_state=0)
    ridge = RidgeCV(np.logspace(0, 5, 30), cv=folds).fit(X, Y)
    assert_allclose(Regression("ridge").fit(X, targets).predict(X), ridge.predict(X), atol=1e-10)
    lasso = Regression("lasso").fit(X, targets).predict(X)
    for task, y in enumerate(Y.T):
        reference = LassoCV(alphas=30, eps=0.02, cv=folds).fit(X, y)
        assert_allclose(lasso[:, task], reference.predict(X), atol=1e-3)
    both = MultiTaskLassoCV(alphas=30, eps=0.02, cv=folds, tol=1e-3).fit(X, Y)
    assert_allclose(Regression("mt-lasso").fit(X, targets).predict(X), both.predict(X), atol=1e-10)


def test_a_forest_chooses_the_size_of_its_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "_LEAVES", (7,))
    X, targets = _standard()
    assert Regression("forest", cv=2).fit(X, targets).model_.model.min_samples_leaf == 7
    one = CensoredTargets.from_bounds(targets.values[:, :1])
    assert Regression("forest", cv=2).fit(X, one).model_.models[0].min_samples_leaf == 7


def test_a_task_with_gaps_is_fitted_to_its_own_rows() -> None:
    X, Y = _problem()
    y = (Y[:, 0] - Y[:60, 0].mean()) / Y[:60, 0].std()
    with_gaps = np.column_stack([np.where(np.arange(100) < 60, y, np.nan), Y[:, 1]])
    folds = [(np.r_[train, 60:100], test) for train, test in inner_folds(60, random_state=1)]
    known_folds = [(train[train < 60], test) for train, test in folds]
    reference = LassoCV(alphas=30, eps=0.02, cv=known_folds).fit(X[:60], y[:60])
    tuned = Regression("lasso", cv=folds).fit(X, CensoredTargets.from_bounds(with_gaps))
    assert_allclose(tuned.predict(X)[:, 0], reference.predict(X), atol=1e-3)


def test_sigma_is_estimated_on_held_out_rows() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 50)), 3.0 * rng.standard_normal((60, 1))
    model = Regression("ridge").fit(X, CensoredTargets.from_bounds(Y))
    in_sample = np.sqrt(np.square(Y - model.predict(X)).mean())
    assert model.sigma_[0] > max(2.6, in_sample)
    noiseless = Regression("ridge").fit(X, CensoredTargets.from_bounds(X[:, :2]))
    assert (noiseless.sigma_ > 0.0).all()


def test_the_intercept_only_model_maximises_the_censored_likelihood() -> None:
    y = np.array([30.0, 30.0, 30.0, 28.0, 24.0, 17.0, np.nan])

    def nll(parameters: FloatArray) -> float:
        centre, log_sigma = parameters
        seen = norm.logpdf(y[3:6], centre, np.exp(log_sigma))
        return -float(seen.sum() + 3 * norm.logsf(30.0, centre, np.exp(log_sigma)))

    best = minimize(nll, [28.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    model = InterceptOnly().fit(np.arange(7.0)[:, None], CensoredTargets.from_bounds(y, 0, 30))
    assert_allclose(model.predict(np.zeros((2, 1)), kind="latent"), best.x[0], rtol=1e-5)
    assert_allclose(model.sigma_, np.exp(best.x[1]), rtol=1e-5)


def test_the_tobit_method_is_a_tobit_regressor_with_a_chosen_ridge() -> None:
    X, Y = _problem(missing=0.1)
    targets = _targets(Y)
    model = RidgeTobit(cv=2).fit(X, targets)
    reference = TobitRegressor(alpha=model.model_.alpha).fit(X, targets)
    assert_allclose(model.predict(X), reference.predict(X))
    few = RidgeTobit(cv=2).fit(np.random.default_rng(0).normal(size=(30, 40)), targets[:30])
    assert few.model_.alpha > 0.01


def test_kinds_of_predictions_agree() -> None:
    X, Y = _problem()
    model = Regression("ridge").fit(X, _targets(Y))
    latent = model.predict(X, kind="latent")
    predictive = Predictive(Gaussian(), latent, model.sigma_, np.array(LOWER), np.array(UPPER))
    assert_array_equal(model.predict(X, kind="mean"), predictive.mean())
    assert_array_equal(model.predict(X), np.clip(latent, LOWER, UPPER))


def test_groups_are_never_split_between_folds() -> None:
    groups = np.repeat(["a", "b", "c"], [5, 1, 4])
    folds = inner_folds(10, groups, 5)
    assert len(folds) == 3
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


def test_filling_keeps_what_is_known_and_predicts_the_rest() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    Y = X @ rng.standard_normal((3, 2))
    gaps = Y.copy()
    gaps[:10, 0] = np.nan
    filled = fill(X, gaps)
    assert_array_equal(filled[:, 1], Y[:, 1])
    assert_array_equal(filled[10:], Y[10:])
    reference = RidgeCV(np.logspace(0, 5, 10)).fit(X[10:], Y[10:, 0])
    assert_allclose(filled[:10, 0], reference.predict(X[:10]))
    assert np.isnan(gaps[:10, 0]).all()
    assert_array_equal(fill(X, Y), Y)


def test_clones_are_unfitted() -> None:
    X, Y = np.arange(6.0)[:, None], np.arange(12.0).reshape(6, 2)
    for model in (Taskwise([LinearRegression(), LinearRegression()]), Filled(LinearRegression())):
        model.fit(X, Y)
        other = clone(model)
        assert_allclose(other.fit(X, -Y).predict(X), -model.predict(X))


def test_folds_among_known_rows_are_indices_into_them() -> None:
    folds = inner_folds(12, None, 4, random_state=0)
    known = np.ones(12, dtype=np.bool_)
    known[folds[0][1][:2]] = False
    inside = among(folds, known)
    assert len(inside) == 3  # the first fold holds out one known row only
    rows = np.flatnonzero(known)
    for (train, test), (old_train, old_test) in zip(inside, folds[1:], strict=True):
        assert set(rows[test]) == set(old_test)
        assert set(rows[train]) == set(old_train) & set(rows)
