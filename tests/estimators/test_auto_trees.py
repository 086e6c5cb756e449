"""The automatic model with trees below its layer: all that works on a model works on it."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from deeptobit import AutoTobitRegressor, CensoredTargets, load
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import ModelFileError
from deeptobit.files import models

N_TRAIN = 400


@cache
def data() -> tuple[pd.DataFrame, FloatArray]:
    """One outcome with a wave and a product, one that is linear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype(np.float32).astype(float)
    wave = 2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    latent = np.column_stack([wave, X[:, 0] + X[:, 3]])
    Y = np.maximum(latent + 0.5 * rng.normal(size=latent.shape), 0.0)
    return pd.DataFrame(X, columns=list("abcde")), Y


@cache
def fitted() -> AutoTobitRegressor:
    X, Y = data()
    return AutoTobitRegressor(random_state=0, noise="gaussian").fit(X[:N_TRAIN], Y[:N_TRAIN])


def test_trees_are_taken_where_they_pay() -> None:
    X, Y = data()
    model = fitted()
    assert 0 in model.trees_.tasks  # trees of the linear outcome gain nothing and may do no harm
    assert not hasattr(model, "coef_")
    taken = model.members_[model.members_["taken"]].iloc[0]
    assert taken["member"].startswith("trees below the stack")
    assert taken["score"] == model.best_score_
    stack = AutoTobitRegressor(members=("stack",), random_state=0, noise="gaussian")
    stack.fit(X[:N_TRAIN], Y[:N_TRAIN])
    new, known = X[N_TRAIN:], Y[N_TRAIN:]
    assert model.score(new, known) > 0.2 + stack.score(new, known)
    errors = [np.square(one.predict(new) - known)[:, 1].mean() for one in (model, stack)]
    assert errors[0] < 1.02 * errors[1]


def test_the_score_is_that_of_the_layer_above_trees() -> None:
    X, _ = data()
    model, rows = fitted(), X.to_numpy()
    (layer,) = model.layers_
    inputs = np.hstack([model.trees_(rows), rows])
    expected = inputs @ layer.coef.T + layer.intercept
    np.testing.assert_allclose(model.predict(X, kind="latent"), expected, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), inputs @ layer.V.T, rtol=1e-10)
    (only,) = model.staged_predict(X)
    np.testing.assert_array_equal(only, model.predict(X))


def test_sparse_features_have_trees_too() -> None:
    X, Y = data()
    model = AutoTobitRegressor(members=("trees",), random_state=0, cv=2)
    model.fit(csr_array(X[:150].to_numpy()), Y[:150])
    rows = X[150:200].to_numpy()
    np.testing.assert_allclose(model.predict(csr_array(rows)), model.predict(rows))


def test_contributions_sum_to_the_score() -> None:
    X, _ = data()
    base, parts = fitted().contributions(X[:100])
    assert parts.shape == (100, 2, 5)
    latent = fitted().predict(X[:100], kind="latent")
    np.testing.assert_allclose(base + parts.sum(axis=2), latent, atol=1e-10)


def test_importance_finds_the_product() -> None:
    X, Y = data()
    table = fitted().feature_importance(
        X[N_TRAIN:], Y[N_TRAIN:], kind="permutation", random_state=0
    )
    assert table.loc[["a", "b", "c"], "y0"].min() > 10 * abs(table.loc[["d", "e"], "y0"]).max()
    effects = fitted().feature_importance()  # mean effects over the rows of the fit
    np.testing.assert_allclose(effects, fitted().feature_importance(X[:N_TRAIN]), rtol=1e-9)
    assert effects["y1"].idxmax() in ("a", "d")
    assert fitted().task_similarity().shape == (2, 2)
    assert {"y0 (trees)", "a"} <= set(fitted().subspaces(X=X)[0].features)


def test_files_keep_every_bit(tmp_path: Path) -> None:
    X, _ = data()
    fitted().save(tmp_path / "trees.model")
    again = load(tmp_path / "trees.model")
    np.testing.assert_array_equal(again.predict(X), fitted().predict(X))
    np.testing.assert_array_equal(again.contributions(X[:9])[1], fitted().contributions(X[:9])[1])
    pd.testing.assert_frame_equal(again.members_, fitted().members_)


@pytest.mark.parametrize(
    ("field", "place", "value", "message"),
    [
        ("left", 0, 0, "not behind it"),
        ("feature", 0, 5, "other features"),
        ("tasks", 0, 2, "other features or targets"),
        ("value", 0, np.nan, "not finite"),
        ("start", 0, np.inf, "not finite"),
    ],
)
def test_files_with_damaged_trees_are_refused(
    field: str, place: int, value: float, message: str
) -> None:
    state = models.estimator_state(fitted())
    trees = state["model"]["fields"]["fitted"]["trees_"]["fields"]
    array = trees[field].copy()
    array[place] = value
    trees[field] = array
    with pytest.raises(ModelFileError, match=message):
        models.estimator_from_state(state)


@pytest.mark.parametrize("kind", ["mean", "clip", "latent"])
def test_onnx_has_the_trees(tmp_path: Path, kind: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    X = data()[0].to_numpy()
    fitted().to_onnx(tmp_path / "trees.onnx", kind)
    session = runtime.InferenceSession(tmp_path / "trees.onnx")
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    expected: Any = fitted().predict(data()[0], kind=kind)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_same_seed_same_bits_also_in_parallel() -> None:
    X, Y = data()
    settings: dict[str, Any] = {
        "random_state": 0,
        "noise": "gaussian",
        "members": ("stack", "trees"),
        "cv": 2,
    }
    one, two = (
        AutoTobitRegressor(**settings, n_jobs=jobs).fit(X[:200], Y[:200]) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_a_new_fit_forgets_the_trees() -> None:
    X, Y = data()
    model = clone(fitted()).set_params(members=("trees",), cv=2).fit(X[:200], Y[:200])
    assert model.trees_.tasks.tolist() == [0, 1]
    model.set_params(members=("stack",)).fit(X[:200], Y[:200])
    assert not hasattr(model, "trees_")
    assert model.coef_.shape == (2, 5)
    assert not hasattr(model, "mean_slopes_")


def test_limits_of_rows_intervals_and_gaps_are_data() -> None:
    """One outcome known in four ways: trees find the wave in all of them."""
    X, Y = data()
    limit = np.random.default_rng(1).uniform(0.0, 0.5, size=(N_TRAIN, 1))
    latent, kind = Y[:N_TRAIN, :1], np.arange(N_TRAIN)[:, None] % 4
    low = np.where(kind == 0, np.floor(latent) - 0.5, latent)
    high = np.where(kind == 0, np.floor(latent) + 1.5, latent)
    censored = (kind != 0) & (latent <= limit)
    low, high = np.where(censored, -np.inf, low), np.where(censored, limit, high)
    low, high = (np.where(kind == 3, np.nan, end) for end in (low, high))
    targets = CensoredTargets.from_intervals(low, high)
    weight = 1.0 + np.arange(N_TRAIN) % 2
    model = AutoTobitRegressor(members=("stack", "trees"), random_state=0, cv=3, scoring="log")
    model.fit(X[:N_TRAIN], targets, sample_weight=weight)
    assert model.members_["taken"].iloc[-1]
    found = np.maximum(model.predict(X[N_TRAIN:], kind="latent").reshape(-1), 0.0)
    assert np.corrcoef(found, Y[N_TRAIN:, 0])[0, 1] > 0.7


def test_visits_without_groups_are_a_warning() -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(rng.normal(size=(100, 6)), 3, axis=0)
    X = np.hstack([people, rng.normal(size=(300, 2))])
    wave = 3.0 * np.sin(2.0 * X[:, 0]) + 2.0 * np.sin(2.0 * X[:, 6])
    y = np.maximum(wave + 0.3 * rng.normal(size=300), 0.0)
    model = AutoTobitRegressor(members=("trees",), cv=2, random_state=0)
    with pytest.warns(UserWarning, match="several visits of the same people"):
        model.fit(X, y)
    model.fit(X, y, groups=np.arange(300) // 3)


def test_onnx_has_probabilities_of_bounds_and_quantiles(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    X: Any = data()[0]
    model = fitted()
    lower, upper = model.predict_bound_proba(X)
    expected: dict[Any, Any] = {
        "p_lower": lower,
        "p_upper": upper,
        "quantile": model.predict_quantile(X, 0.9),
    }
    for kind, values in expected.items():
        model.to_onnx(tmp_path / "trees.onnx", kind, dtype="float64", q=0.9)
        session = runtime.InferenceSession(tmp_path / "trees.onnx")
        (found,) = session.run(None, {"X": X.to_numpy()})
        np.testing.assert_allclose(found, values, atol=1e-6)
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        model.to_onnx(tmp_path / "trees.onnx", "quantile", q=1.0)


def test_steps_that_a_line_hides_are_found_by_trees_that_start_from_nothing() -> None:
    """Residuals of a good line are a new, finer problem; the outcome itself is one of two steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 30))
    X[:, 1:20] = X[:, :1] + 0.5 * rng.normal(size=(240, 19))
    steps = 4.0 * ((X[:, 0] > -0.5) & (X[:, 20] > 0.0)) + 2.0 * (X[:, 0] > 0.8)
    y = np.maximum(steps + 0.3 * rng.normal(size=240), 0.0)
    fitted = AutoTobitRegressor(random_state=0).fit(X[:160], y[:160])
    without = AutoTobitRegressor(random_state=0, members=("stack",)).fit(X[:160], y[:160])
    assert hasattr(fitted, "trees_")
    errors = [float(np.square(m.predict(X[160:]) - y[160:]).mean()) for m in (fitted, without)]
    assert errors[0] < 0.6 * errors[1]
