"""What a fit stores, and which inputs it takes without touching them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import assert_close, bounded, censored, one_task, parameters

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)


def test_fit_stores_one_row_per_task() -> None:
    X, Y = censored(n_features=4, n_tasks=3)
    model = bounded().fit(X, Y)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == model.sigma_.shape == model.log_likelihood_.shape == (3,)
    assert model.lower_.tolist() == [0.0] * 3
    assert model.upper_.tolist() == [3.0] * 3
    assert model.n_features_in_ == 4
    assert model.target_names_ == ["y0", "y1", "y2"]


def test_fit_returns_the_estimator() -> None:
    model = bounded()
    assert model.fit(*censored()) is model


def test_names_come_from_data_frames() -> None:
    X, Y = censored()
    model = bounded().fit(
        pd.DataFrame(X, columns=["age", "volume", "marker"]),
        pd.DataFrame(Y, columns=["MMSE", "errors"]),
    )
    assert model.feature_names_in_.tolist() == ["age", "volume", "marker"]
    assert model.target_names_ == ["MMSE", "errors"]
    assert_close(parameters(model), parameters(bounded().fit(X, Y)), 1e-9)


@pytest.mark.parametrize(
    ("y", "name"),
    [
        (lambda y: y, "y"),
        (lambda y: pd.Series(y, name="MMSE"), "MMSE"),
        (lambda y: pd.Series(y), "y"),
        (lambda y: pd.DataFrame({"MMSE": y}), "MMSE"),
        (lambda y: list(y), "y"),
    ],
    ids=["array", "named series", "series", "frame", "list"],
)
def test_a_single_outcome_in_every_form(y: Any, name: str) -> None:
    X, outcome = one_task()
    model = bounded().fit(X, y(outcome))
    assert model.target_names_ == [name]
    assert_close(parameters(model), parameters(bounded().fit(X, outcome)), 1e-9)


def test_bounds_by_name_per_task_or_for_all_are_the_same() -> None:
    X, Y = censored()
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    models = [
        TobitRegressor(lower=0, upper=3),
        TobitRegressor(lower=[0, 0], upper=np.array([3.0, 3.0])),
        TobitRegressor(lower={"errors": 0, "MMSE": 0}, upper={"MMSE": 3, "errors": 3}),
    ]
    first, *others = [parameters(model.fit(X, frame)) for model in models]
    for other in others:
        assert_close(other, first, 1e-9)


def test_open_bounds_in_every_form_are_the_same() -> None:
    X, Y = censored()
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    bounds: list[Any] = [[0, None], [0, -np.inf], {"MMSE": 0}, {"MMSE": 0, "errors": None}]
    first, *others = [TobitRegressor(lower=lower).fit(X, frame) for lower in bounds]
    for other in others:
        assert_close(parameters(other), parameters(first), 1e-9)
        assert other.lower_.tolist() == [0.0, -np.inf]


def test_censored_targets_bring_their_own_bounds_and_names() -> None:
    X, Y = censored()
    targets = CensoredTargets.from_bounds(Y, 0, 3, names=["MMSE", "errors"])
    model = TobitRegressor(lower=-77.0).fit(X, targets)
    assert model.lower_.tolist() == [0.0, 0.0]
    assert model.target_names_ == ["MMSE", "errors"]
    assert_close(parameters(model), parameters(bounded().fit(X, Y)), 1e-9)


def test_a_value_at_its_bound_is_censored() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    eta, sigma = model.predict(X, kind="latent"), model.sigma_[0]
    inside = (y > 0.0) & (y < 3.0)
    expected = (
        norm.logcdf((0.0 - eta[y == 0.0]) / sigma).sum()
        + norm.logsf((3.0 - eta[y == 3.0]) / sigma).sum()
        + np.sum(norm.logpdf(y[inside], eta[inside], sigma))
    )
    np.testing.assert_allclose(model.log_likelihood_[0], expected, rtol=1e-10)


def test_limits_per_row_replace_the_bounds_of_the_tasks() -> None:
    X, Y = censored()
    per_row = TobitRegressor(lower=-5.0, upper=9.0).fit(
        X, Y, lower=np.zeros_like(Y), upper=np.full_like(Y, 3.0)
    )
    assert_close(parameters(per_row), parameters(bounded().fit(X, Y)), 1e-9)


def test_a_value_at_the_limit_of_its_row_is_censored_there() -> None:
    X, y = one_task()
    limit = np.random.default_rng(0).uniform(0.0, 1.0, len(X))
    y = np.maximum(y, limit)
    model = TobitRegressor(lower=None).fit(X, y, lower=limit)
    eta, sigma = model.predict(X, kind="latent"), model.sigma_[0]
    at = y == limit
    expected = norm.logcdf((limit - eta)[at] / sigma).sum()
    expected += norm.logpdf(y[~at], eta[~at], sigma).sum()
    np.testing.assert_allclose(model.log_likelihood_[0], expected, rtol=1e-10)
    assert at.sum() > 20


def test_outside_clip_is_clipping_first() -> None:
    X, Y = censored()
    wild = np.where(Y == 3.0, 50.0, np.where(Y == 0.0, -50.0, Y))
    model = bounded(outside="clip").fit(X, wild)
    assert_close(parameters(model), parameters(bounded().fit(X, Y)), 1e-9)
    assert model.score(X, wild) == bounded().fit(X, Y).score(X, Y)


def test_single_precision_stays_close_and_answers_in_kind() -> None:
    X, Y = censored(n_samples=400)
    X = 100.0 + 3.0 * X
    model = bounded().fit(X, Y)
    single = bounded().fit(X.astype(np.float32), Y)
    assert_close(single.coef_, model.coef_, 1e-4)
    assert_close(single.sigma_, model.sigma_, 1e-5)
    few = X[:5].astype(np.float32)
    answers = [
        single.predict(few),
        single.predict(few, kind="latent"),
        single.predict_quantile(few, [0.1, 0.5]),
        *single.predict_bound_proba(few),
        *single.predict_interval(few),
        single.predict(csr_array(few)),
    ]
    assert {answer.dtype for answer in answers} == {np.dtype(np.float32)}
    assert_close(single.predict(few), model.predict(X[:5]), 1e-3)
    assert model.predict(X).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float16, object])
def test_features_of_every_number_type(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 2))
    y = np.clip(X @ [1.0, -1.0] + 0.5 + rng.normal(size=200), 0.0, 3.0)
    model = bounded().fit(X.astype(dtype), y)
    np.testing.assert_allclose(parameters(model), parameters(bounded().fit(X.astype(float), y)))
    assert model.predict(X.astype(dtype)).dtype == np.float64


def test_memory_order_and_strides_do_not_matter() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    wide = np.zeros((2 * len(X), 6))
    wide[::2, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, ::2]):
        assert_close(parameters(bounded().fit(same, np.asfortranarray(Y))), parameters(model), 1e-9)


def test_inputs_are_not_modified() -> None:
    X, Y = censored()
    weight = np.random.default_rng(0).uniform(size=len(X))
    low, high = np.full_like(Y, -1.0), np.full_like(Y, 4.0)
    given: list[FloatArray] = [X, Y, weight, low, high]
    copies = [array.copy() for array in given]
    sparse = csr_array(X)
    for features in (X, sparse):
        model = bounded().fit(features, Y, sample_weight=weight, lower=low, upper=high)
        model.predict(features, lower=low, upper=high)
        model.score(features, Y, sample_weight=weight, lower=low, upper=high)
        model.marginal_effects(features)
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(sparse.toarray(), copies[0])


def test_read_only_arrays_and_memory_maps_are_taken(tmp_path: Path) -> None:
    X, Y = censored()
    expected = parameters(bounded().fit(X, Y))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "Y.npy")]
    for array in (X, Y):
        array.setflags(write=False)
    weight = np.ones(len(X))
    weight.setflags(write=False)
    for features, outcomes in ((X, Y), mapped):
        model = bounded().fit(features, outcomes, sample_weight=weight)
        assert_close(parameters(model), expected, 1e-9)
        assert model.predict(features).shape == Y.shape


def test_results_do_not_share_memory_with_the_inputs() -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    before = model.predict(X.copy()), model.summary()
    X_then = X.copy()
    X[:], Y[:] = 0.0, 1.0
    np.testing.assert_array_equal(model.predict(X_then), before[0])
    pd.testing.assert_frame_equal(model.summary(), before[1])


def test_a_bound_array_changed_after_the_fit_does_not_change_the_model() -> None:
    X, Y = censored()
    upper = np.array([3.0, 3.0])
    model = TobitRegressor(lower=0.0, upper=upper).fit(X, Y)
    predicted = model.predict(X)
    upper[:] = 1.0
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_many_blocks_of_rows_are_one_fit() -> None:
    # Rows are summed in blocks of 512 (dense) and 8192 (sparse): both sizes are crossed.
    X, y = one_task(n_samples=9000)
    model = bounded().fit(X, y)
    np.testing.assert_allclose(model.log_likelihood_[0], 9000 * model.score_log(X, y), rtol=1e-10)
    sparse = bounded().fit(csr_array(X), y)
    assert_close(parameters(sparse), parameters(model))
    np.testing.assert_allclose(sparse.summary(), model.summary(), rtol=1e-5, atol=1e-12)
