"""Inference of low-rank layers: identities with the Tobit model, and what is refused."""

from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from tests.estimators.problems import assert_close

BOUNDS: dict[str, Any] = {"lower": -1.0, "upper": 2.0}


def rank_two(
    seed: int, n: int = 300, D: int = 5, T: int = 4
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """X, outcomes at both bounds, and W of rank 2."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(T, 2)) @ rng.normal(size=(2, D)) / 2.0
    X = rng.normal(size=(n, D)) * [1.0, 10.0, 1.0, 0.1, 1.0] + 3.0
    latent = (X - 3.0) / [1.0, 10.0, 1.0, 0.1, 1.0] @ W.T
    return X, np.clip(latent + rng.normal(size=(n, T)), -1.0, 2.0), W


@pytest.mark.parametrize("cov_type", ["observed", "robust", "cluster"])
def test_a_layer_of_full_rank_has_the_standard_errors_of_tobit(cov_type: Any) -> None:
    X, Y, _ = rank_two(0)
    groups = np.arange(len(X)) // 3
    layer = SubspaceTobitRegressor(4, alpha=0.0, solver="batch", tol=1e-9, **BOUNDS).fit(X, Y)
    tobit = TobitRegressor(**BOUNDS).fit(X, Y)
    tables = [m.summary(cov_type=cov_type, groups=groups) for m in (layer, tobit)]
    np.testing.assert_allclose(tables[0]["std_err"], tables[1]["std_err"], rtol=2e-4)
    np.testing.assert_allclose(tables[0]["ci_high"], tables[1]["ci_high"], rtol=1e-3, atol=1e-3)
    effects = [m.marginal_effects(X, cov_type=cov_type, groups=groups) for m in (layer, tobit)]
    np.testing.assert_allclose(effects[0]["std_err"], effects[1]["std_err"], rtol=2e-4)
    ends = [
        m.predict_mean_interval(X[:5], cov_type=cov_type, groups=groups) for m in (layer, tobit)
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-3)


def test_a_low_rank_has_smaller_errors_and_holds_the_truth_at_its_rate() -> None:
    inside = []
    for seed in range(40):
        X, Y, W = rank_two(seed)
        truth = (W / [1.0, 10.0, 1.0, 0.1, 1.0]).ravel()
        model = SubspaceTobitRegressor(2, alpha=0.0, solver="batch", **BOUNDS).fit(X, Y)
        ends = model.conf_int().drop(index=["(intercept)", "log(sigma)"], level="term")
        inside.append((ends["ci_low"] <= truth) & (truth <= ends["ci_high"]))
    assert abs(np.mean(inside) - 0.95) < 0.025  # about three standard errors of 40 samples
    slopes = [f"x{d}" for d in range(5)]
    errors = [
        m.summary().loc[(slice(None), slopes), "std_err"]
        for m in (model, TobitRegressor(**BOUNDS).fit(X, Y))
    ]
    assert np.mean(errors[0].to_numpy() / errors[1].to_numpy()) < 0.95


def test_errors_do_not_depend_on_units_order_or_empty_components() -> None:
    X, Y, _ = rank_two(3)
    fitted: dict[str, Any] = {"alpha": 1e-3, "solver": "batch", "tol": 1e-9, **BOUNDS}
    expected = SubspaceTobitRegressor(2, **fitted).fit(X, Y).summary()["std_err"].to_numpy()
    scaled = SubspaceTobitRegressor(2, **fitted).fit(X * 8.0, Y).summary()["std_err"].unstack()
    scaled[[f"x{d}" for d in range(5)]] *= 8.0
    order = ["x0", "x1", "x2", "x3", "x4", "(intercept)", "log(sigma)"]
    np.testing.assert_allclose(scaled[order].to_numpy().ravel(), expected, rtol=1e-3)
    backwards = SubspaceTobitRegressor(2, **fitted).fit(X[::-1], Y[::-1])
    np.testing.assert_allclose(backwards.summary()["std_err"], expected, rtol=1e-3)


def test_a_layer_without_effects_has_errors_of_the_intercepts_alone() -> None:
    X, Y, _ = rank_two(4)
    model = SubspaceTobitRegressor(2, alpha=100.0, solver="batch", **BOUNDS).fit(X, Y)
    errors = model.summary()["std_err"].unstack()
    assert errors[[f"x{d}" for d in range(5)]].isna().all(axis=None)
    null = TobitRegressor(alpha=1e9, **BOUNDS).fit(X, Y)
    expected = null.summary()["std_err"].unstack()
    np.testing.assert_allclose(errors["(intercept)"], expected["(intercept)"], rtol=1e-3)


def test_the_rank_test_finds_a_missing_component_and_no_other() -> None:
    p_values = []
    for seed in range(20):
        X, Y, _ = rank_two(seed)
        fits = [
            SubspaceTobitRegressor(R, alpha=0.0, solver="batch", **BOUNDS).fit(X, Y) for R in (1, 2)
        ]
        p_values.append([fit.rank_test(n_draws=199)["p_value"] for fit in fits])
    missing, right = np.array(p_values).T
    assert (missing < 0.05).mean() > 0.8
    assert (right < 0.05).mean() < 0.25
    assert 0.2 < right.mean() < 0.8


def test_inference_needs_an_optimum_and_the_training_data() -> None:
    X, Y, _ = rank_two(5)
    online = SubspaceTobitRegressor(2, solver="online", **BOUNDS).fit(X, Y)
    with pytest.raises(ValueError, match="use solver='batch' and fit, not partial_fit"):
        online.summary()
    batch = SubspaceTobitRegressor(2, solver="batch", **BOUNDS).fit(X, Y)
    assert "_trained" not in batch.__getstate__()
    batch.partial_fit(X, Y)
    with pytest.raises(ValueError, match="use solver='batch'"):
        batch.conf_int()
    sparse = SubspaceTobitRegressor(2, feature_sparsity=0.5, alpha=0.01, **BOUNDS).fit(X, Y)
    assert_close(
        sparse.summary()["coef"].unstack()[[f"x{d}" for d in range(5)]], sparse.coef_, 1e-9
    )
    with pytest.raises(ValueError, match="rank_test needs penalty='ridge'"):
        sparse.rank_test()
