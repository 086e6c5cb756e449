"""Calibrated intervals hold what they promise, however wrong the model; every task repeats it."""

import pickle
import re
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from deeptobit import CensoredTargets, SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.estimators.conformal import central_interval, nonconformity
from deeptobit.likelihood import Gaussian, Logistic, Predictive, StudentT
from tests.estimators.problems import bounded, censored, one_task

N_TASKS, N_REPETITIONS, N_TEST = 3, 100, 100
Draw = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]


def skewed(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """A curved mean and exponential noise that grows with |x|: nothing that a Tobit assumes."""
    X = rng.normal(size=(n, 1))
    noise = rng.exponential(0.5 + np.abs(X), size=(n, N_TASKS))
    return X, X**2 + noise


def with_atoms(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """The same on a scale from 1 to 3, with a third of the entries at a bound."""
    X, Y = skewed(rng, n)
    return X, np.clip(Y, 1.0, 3.0)


def whole_points(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Whole points, predicted from a category: every value and every residual ties."""
    X = rng.integers(0, 2, size=(n, 1)).astype(np.float64)
    return X, np.clip(np.round(2.0 * X + rng.exponential(2.0, size=(n, N_TASKS))), 0.0, 5.0)


def coverage_of(model: TobitRegressor, draw: Draw, n: int, coverage: float) -> tuple[float, float]:
    """Mean coverage over calibration sets, and its standard error."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(N_REPETITIONS):
        fresh = copy(model).calibrate_intervals(*draw(rng, n))
        X, Y = draw(rng, N_TEST)
        low, high = fresh.predict_interval(X, coverage)
        shares.append(((low <= Y) & (high >= Y)).mean())
    return float(np.mean(shares)), float(np.std(shares) / np.sqrt(N_REPETITIONS))


def wrong_model(draw: Draw, **settings: Any) -> TobitRegressor:
    return TobitRegressor(sigma=0.3, **settings).fit(*draw(np.random.default_rng(1), 200))


@pytest.mark.parametrize(
    ("noise", "n", "coverage"),
    [
        ("gaussian", 19, 0.9),
        ("gaussian", 99, 0.95),
        ("student_t", 60, 0.8),
    ],
)
def test_coverage_of_a_wrong_model_lies_in_its_narrow_band(
    noise: str, n: int, coverage: float
) -> None:
    model = wrong_model(skewed, lower=None, noise=noise)
    found, error = coverage_of(model, skewed, n, coverage)
    assert coverage - 4 * error < found < coverage + 1 / (n + 1) + 4 * error
    assert error < 0.01


@pytest.mark.parametrize(("n", "coverage"), [(19, 0.9), (60, 0.5), (99, 0.95)])
def test_atoms_at_the_bounds_are_covered_at_least_as_often(n: int, coverage: float) -> None:
    model = wrong_model(with_atoms, lower=1.0, upper=3.0)
    found, error = coverage_of(model, with_atoms, n, coverage)
    assert found > coverage - 4 * error


def test_rounding_takes_no_tied_value_out_of_its_interval() -> None:
    model = wrong_model(whole_points, lower=0.0, upper=5.0)
    found, error = coverage_of(model, whole_points, 59, 0.8)
    assert found > 0.8 - 4 * error


def test_the_model_alone_is_far_off_where_calibration_is_not() -> None:
    model = wrong_model(skewed, lower=None)
    table = model.calibrate_intervals(*skewed(np.random.default_rng(2), 500)).interval_calibration_
    at_90 = table.xs(0.9, level="coverage")
    assert at_90["model"].max() < 0.6
    assert at_90["conformal"].between(0.895, 0.905).all()
    assert (at_90["model_level"] > 0.999).all()
    assert (at_90["entries"] == 500).all()
    assert at_90.index.tolist() == model.target_names_


def test_a_calibrated_true_model_hardly_changes() -> None:
    X, y = one_task(n_samples=20_000)
    model = bounded().fit(X[:5000], y[:5000])
    before = model.predict_interval(X[:50])
    after = model.calibrate_intervals(X[5000:], y[5000:]).predict_interval(X[:50])
    np.testing.assert_allclose(after, before, atol=0.06)
    assert model.interval_calibration_["model_level"].to_list() == pytest.approx(
        [0.5, 0.8, 0.9, 0.95], abs=0.02
    )


def test_the_score_is_the_smallest_level_that_holds_the_entry() -> None:
    model, X, Y = calibrated()
    scores, _ = nonconformity(CensoredTargets.from_bounds(Y, 0, 3), model._predictive(X))
    for slack, inside in [(1.0 + 1e-9, True), (1.0 - 1e-9, False)]:
        tails = np.minimum(np.exp(-scores * slack), 0.5)
        low, high = (
            np.clip(model.predict(X, kind="latent") + model.sigma_ * norm.ppf(q), 0.0, 3.0)
            for q in (tails, 1.0 - tails)
        )
        clear = scores > np.log(2.0) + 1e-6  # below, the interval is a point already
        assert (((low <= Y + 1e-12) & (high >= Y - 1e-12)) | ~clear).all() or not inside
        if not inside:
            assert not ((low <= Y - 1e-13) & (high >= Y + 1e-13) & clear)[(Y > 0) & (Y < 3)].any()


def calibrated(**settings: Any) -> tuple[TobitRegressor, FloatArray, FloatArray]:
    X, Y = censored(n_samples=300)
    return bounded(**settings).fit(X[:100], Y[:100]).calibrate_intervals(X, Y), X, Y


def test_intervals_grow_with_coverage_and_stay_within_the_bounds() -> None:
    model, X, _ = calibrated()
    ends = [model.predict_interval(X, c) for c in (0.01, 0.3, 0.6, 0.9, 0.99)]
    low, high = np.stack([end[0] for end in ends]), np.stack([end[1] for end in ends])
    assert (np.diff(low, axis=0) <= 0.0).all()
    assert (np.diff(high, axis=0) >= 0.0).all()
    assert (low <= high).all()
    assert low.min() == 0.0
    assert high.max() == 3.0


@pytest.mark.filterwarnings("ignore::deeptobit.exceptions.CensoringWarning")
def test_far_out_values_do_not_tie() -> None:
    X, y = one_task()
    model = TobitRegressor(lower=None, sigma=1e-3).fit(X, y)
    fresh = np.linspace(1.0, 40.0, 40)
    model.calibrate_intervals(X[:40], model.predict(X[:40]) + fresh)
    low, high = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(high - model.predict(X), 37.0, rtol=1e-6)  # ⌈41 · 0.9⌉ = 37
    np.testing.assert_allclose(low - model.predict(X), -37.0, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::deeptobit.exceptions.CensoringWarning")
def test_as_few_entries_as_can_be_suffice() -> None:
    X, y = one_task()
    model = TobitRegressor(lower=None).fit(X, y)
    model.calibrate_intervals(X[:9], model.predict(X[:9]) + np.arange(9))
    _, high = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(high - model.predict(X), 8.0)


@pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT(3.0)])
def test_ends_are_the_quantiles_where_those_are_exact(noise: Any) -> None:
    predictive = Predictive(noise, np.zeros((1, 4)), np.ones(4))
    tails = np.array([0.5, 0.2, 1e-3, 1e-9])
    low, high = central_interval(predictive, -np.log(tails))
    np.testing.assert_allclose(low[0], noise.ppf(tails), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(high[0], -noise.ppf(tails), rtol=1e-7, atol=1e-8)


def test_a_target_with_few_entries_gets_its_whole_scale_and_a_warning() -> None:
    X, Y = censored(n_tasks=3)
    model = bounded().fit(X, Y)
    sparse = Y.copy()
    sparse[8:, 1] = np.nan
    sparse[:, 2] = np.nan
    model.calibrate_intervals(X, sparse)
    told = "coverage 0.9 are the whole scale for 'y1' (8 calibration entries, 10 needed), 'y2' (0 "
    with pytest.warns(UserWarning, match=re.escape(told)):
        low, high = model.predict_interval(X, 0.9)
    assert (high[:, 0] - low[:, 0]).min() < 3.0
    np.testing.assert_array_equal(low[:, 1:], 0.0)
    np.testing.assert_array_equal(high[:, 1:], 3.0)
    table = model.interval_calibration_
    assert table.loc[("y2", 0.9), "entries"] == 0
    assert table.xs("y2")["model"].isna().all()
    assert table.loc[("y1", 0.9), "model_level"] == 1.0


def test_an_open_scale_without_enough_entries_is_infinite_and_says_so() -> None:
    X, y = one_task()
    model = TobitRegressor().fit(X, y).calibrate_intervals(X[:5], y[:5])
    with pytest.warns(UserWarning, match="'y' \\(5 calibration entries, 20 needed"):
        low, high = model.predict_interval(X, 0.95)
    assert (low == 0.0).all()
    assert np.isposinf(high).all()


def test_one_dimensional_outcomes_give_one_dimensional_intervals() -> None:
    X, y = one_task()
    model = bounded().fit(X, y).calibrate_intervals(X, y)
    assert [end.shape for end in model.predict_interval(X[:7])] == [(7,), (7,)]
    single = model.predict_interval(X[:7].astype(np.float32))
    assert {end.dtype for end in single} == {np.dtype(np.float32)}


def test_limits_per_row_are_bounds_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    latent = X[:, 0] + rng.normal(size=400)
    limits = rng.choice([-1.0, 0.5], size=400)
    y = np.maximum(latent, limits)
    model = TobitRegressor(lower=None).fit(X[:200], y[:200], lower=limits[:200])
    model.calibrate_intervals(X[200:], y[200:], lower=limits[200:])
    low, high = model.predict_interval(X[200:], 0.8, lower=limits[200:])
    assert (low >= limits[200:]).all()
    assert np.mean((low <= y[200:]) & (high >= y[200:])) >= 0.8
    assert model._calibration.scores["y"].n_open == 0


def test_an_interval_must_be_held_as_a_whole() -> None:
    predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1))
    low, high = [1.0, -0.5, -np.inf, 2.0], [2.0, 2.0, 2.0, 2.0]
    scores = nonconformity(CensoredTargets.from_intervals(low, high), predictive)[0][:, 0]
    np.testing.assert_allclose(scores[[0, 1, 3]], -norm.logsf(2.0))
    assert np.isposinf(scores[2])  # open below on an open scale: no end is low enough


@pytest.mark.filterwarnings("ignore::deeptobit.exceptions.CensoringWarning")
def test_entries_open_towards_an_open_scale_are_named_as_the_reason() -> None:
    X, y = one_task()
    low = np.where(np.arange(len(y)) % 2 == 0, -np.inf, y)
    targets = CensoredTargets.from_intervals(low, y)
    model = TobitRegressor(lower=None).fit(X, targets).calibrate_intervals(X, targets)
    with pytest.warns(UserWarning, match="75 of 150 calibration entries are known only as open"):
        model.predict_interval(X, 0.9)


def test_missing_entries_are_left_out() -> None:
    model, X, Y = calibrated()
    gaps = np.vstack([Y, np.full_like(Y, np.nan)])
    other = copy(model).calibrate_intervals(np.vstack([X, X]), gaps)
    np.testing.assert_array_equal(other.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize("again", ["fit", "partial_fit"])
def test_a_new_fit_forgets_the_calibration(again: str) -> None:
    X, Y = censored()
    model = SubspaceTobitRegressor(rank=1, upper=3, sigma=1.0).fit(X, Y).calibrate_intervals(X, Y)
    assert len(model.interval_calibration_) == 8
    getattr(model, again)(X, Y)
    assert not hasattr(model, "interval_calibration_")
    low, _ = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(low, model.predict_quantile(X, 0.1))


def test_quantiles_stay_those_of_the_model() -> None:
    model, X, _ = calibrated()
    raw = bounded().fit(*(part[:100] for part in censored(n_samples=300)))
    np.testing.assert_allclose(model.predict_quantile(X, 0.05), raw.predict_quantile(X, 0.05))


def test_calibration_survives_pickling_and_not_cloning() -> None:
    model, X, _ = calibrated()
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    fresh = clone(model)
    with pytest.raises(AttributeError, match="call calibrate_intervals first"):
        _ = fresh.interval_calibration_


def test_errors_say_what_is_wrong() -> None:
    X, Y = censored()
    with pytest.raises(NotFittedError):
        bounded().calibrate_intervals(X, Y)
    model = bounded().fit(X, Y)
    with pytest.raises(ValueError, match="X has 150 rows but Y has 149"):
        model.calibrate_intervals(X, Y[1:])
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        model.calibrate_intervals(X, Y).predict_interval(X, 1.0)
