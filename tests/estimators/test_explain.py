"""Explanations in standard units: invariant to units and rotations, equal to what they define."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance

from deeptobit import CensoredTargets, SubspaceTobitRegressor, TobitRegressor, datasets
from deeptobit.arrays import FloatArray
from tests.estimators.problems import SPARSE_FORMATS, assert_close, bounded, censored, one_task

UNITS = np.array([1e-3, 1.0, 200.0])


def named() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Y = censored()
    return (
        pd.DataFrame(X, columns=["age", "volume", "marker"]),
        pd.DataFrame(Y, columns=["MMSE", "ADAS"]),
    )


def shared_directions() -> tuple[FloatArray, FloatArray]:
    X, Y, _ = datasets.make_subspace(400, 8, 6, 2, sigma=1.0, random_state=0)
    return X, Y


def test_importance_is_the_coefficient_per_standard_deviation() -> None:
    X, Y = named()
    X["volume"] *= 100.0
    model = bounded().fit(X, Y)
    table = model.feature_importance()
    assert table.index.tolist() == ["age", "volume", "marker"]
    assert table.columns.tolist() == ["MMSE", "ADAS", "shared"]
    deviation = X.std(ddof=0).to_numpy()
    assert_close(table[["MMSE", "ADAS"]], np.abs(model.coef_ * deviation).T, 1e-12)
    in_noise = table[["MMSE", "ADAS"]] / model.sigma_
    assert_close(table["shared"], np.sqrt((in_noise**2).mean(axis=1)), 1e-12)


def test_importance_does_not_depend_on_the_units_of_features() -> None:
    X, Y = censored()
    table = bounded().fit(X, Y).feature_importance()
    assert_close(bounded().fit(X * UNITS + 5.0, Y).feature_importance(), table)


def test_the_shared_importance_does_not_depend_on_the_units_of_targets() -> None:
    X, Y = censored()
    small = TobitRegressor(lower=0, upper=[3.0, 3.0]).fit(X, Y)
    large = TobitRegressor(lower=0, upper=[3.0, 300.0]).fit(X, Y * [1.0, 100.0])
    assert_close(large.feature_importance()["shared"], small.feature_importance()["shared"])


def test_weights_count_in_the_standard_deviations() -> None:
    X, Y = censored()
    weight = np.arange(len(X)) % 3
    weighted = bounded().fit(X, Y, sample_weight=weight)
    repeated = bounded().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    assert_close(weighted.feature_scale_, repeated.feature_scale_, 1e-12)
    assert_close(weighted.feature_importance(), repeated.feature_importance())


@pytest.mark.parametrize(("scoring", "method"), [("log", "score_log"), ("r2", "score")])
def test_permutation_importance_is_what_the_score_loses(scoring: Any, method: str) -> None:
    X, Y = censored()
    model = bounded().fit(X, Y)
    table = model.feature_importance(
        X, Y, kind="permutation", scoring=scoring, n_repeats=1, random_state=3
    )
    score = getattr(type(model), method)
    losses = permutation_importance(model, X, Y, scoring=score, n_repeats=1, random_state=3)
    np.testing.assert_allclose(table["shared"], losses["importances_mean"])
    assert_close(table["shared"], table[["y0", "y1"]].mean(axis=1), 1e-12)


def test_permutation_finds_the_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    Y = np.maximum(X @ [[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]] + rng.normal(size=(500, 2)), 0.0)
    table = TobitRegressor().fit(X, Y).feature_importance(X, Y, kind="permutation", random_state=0)
    assert table["y0"].idxmax() == "x0"
    assert table["y1"].idxmax() == "x1"
    assert table.loc["x2"].abs().max() < 0.02


def test_permutation_takes_limits_per_row_and_intervals() -> None:
    X, y = one_task()
    limits = np.where(np.arange(len(y)) % 2 == 0, 0.5, 0.0)
    targets = CensoredTargets.from_bounds(np.maximum(y, limits), 0, 3, entry_lower=limits)
    model = bounded().fit(X, targets)
    table = model.feature_importance(X, targets, kind="permutation", random_state=0)
    assert table.shape == (3, 2)
    assert (table["shared"] > 0.0).all()


@pytest.mark.parametrize("sparse", SPARSE_FORMATS)
def test_sparse_features_give_the_same(sparse: Any) -> None:
    X, Y = censored()
    X[np.abs(X) < 0.5] = 0.0
    dense, model = bounded().fit(X, Y), bounded().fit(sparse(X), Y)
    assert_close(model.feature_importance(), dense.feature_importance())
    settings: dict[str, Any] = {"kind": "permutation", "n_repeats": 1, "random_state": 0}
    found = model.feature_importance(sparse(X), Y, **settings)
    assert_close(found, dense.feature_importance(X, Y, **settings))


def test_one_dimensional_outcomes_have_one_target() -> None:
    X, y = one_task()
    model = bounded().fit(X, y)
    assert model.feature_importance().columns.tolist() == ["y", "shared"]
    assert model.task_similarity().shape == (1, 1)
    (direction,) = model.subspaces()
    assert direction.targets == ("y",)
    assert direction.share == pytest.approx(1.0)


def test_similarity_is_the_cosine_in_standard_units() -> None:
    X, Y = named()
    model = bounded().fit(X * UNITS, Y)
    table = model.task_similarity()
    rows = model.coef_ * (X * UNITS).std(ddof=0).to_numpy()
    cosine = rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1])
    assert table.loc["MMSE", "ADAS"] == pytest.approx(cosine)
    assert_close(table, table.T, 1e-12)
    assert_close(np.diag(table), 1.0, 1e-12)
    assert_close(table, bounded().fit(X, Y).task_similarity())


def test_subspaces_add_up_to_the_effects_and_are_orthogonal() -> None:
    X, Y = shared_directions()
    model = SubspaceTobitRegressor(rank=2).fit(X, Y)
    first, second = model.subspaces(X=X)
    effects = model.coef_ * X.std(axis=0) / model.sigma_[:, None]
    total = sum(np.outer(s.target_loadings, s.feature_loadings) for s in (first, second))
    assert_close(total, effects, 1e-10)
    assert first.feature_loadings @ second.feature_loadings == pytest.approx(0.0, abs=1e-10)
    assert first.target_loadings @ second.target_loadings == pytest.approx(0.0, abs=1e-8)
    assert first.share > second.share
    assert first.share + second.share == pytest.approx(1.0)


def test_the_largest_feature_loading_is_one() -> None:
    X, Y = shared_directions()
    for direction in TobitRegressor().fit(X, Y).subspaces():
        assert direction.feature_loadings.max() == 1.0
        assert np.abs(direction.feature_loadings).max() == 1.0


def test_rotating_u_and_v_changes_nothing() -> None:
    X, Y = shared_directions()
    model = SubspaceTobitRegressor(rank=2).fit(X, Y)
    before = model.subspaces(X=X)
    mixing = np.array([[2.0, 1.0], [-0.5, 3.0]])
    model.U_, model.V_ = model.U_ @ mixing, np.linalg.solve(mixing, model.V_)
    model.coef_ = model.U_ @ model.V_
    for old, new in zip(before, model.subspaces(X=X), strict=True):
        assert_close(new.to_frame(), old.to_frame(), 1e-8)


def test_subspaces_do_not_depend_on_units_or_order() -> None:
    X, Y = named()
    plain = bounded().fit(X, Y).subspaces()
    turned = TobitRegressor(lower=0, upper=[30.0, 3.0])
    turned.fit((X * UNITS)[["marker", "age", "volume"]], (Y * [1.0, 10.0])[["ADAS", "MMSE"]])
    for one, other in zip(plain, turned.subspaces(), strict=True):
        frame = other.to_frame().reindex(one.to_frame().index)
        assert_close(frame, one.to_frame(), 1e-5)


def test_a_subspace_names_its_largest_loadings() -> None:
    X, Y = named()
    first = bounded().fit(X, Y).subspaces()[0]
    order = np.argsort(-np.abs(first.feature_loadings))
    assert repr(first).startswith(f"Subspace 1 ({first.share:.0%}): {first.features[order[0]]} +1.")
    frame = first.to_frame()
    assert frame.index.tolist()[:3] == [("feature", name) for name in X.columns]
    assert frame.index.tolist()[3:] == [("target", name) for name in Y.columns]


def test_a_model_without_effects_has_no_subspace() -> None:
    X, Y = shared_directions()
    model = SubspaceTobitRegressor(rank=2, alpha=1e3).fit(X, Y)
    model.coef_ = np.zeros_like(model.coef_)
    assert model.subspaces(X=X) == []
    np.testing.assert_array_equal(model.task_similarity(X), 0.0)


def test_a_model_that_does_not_know_the_scales_asks_for_rows() -> None:
    X, Y = censored()
    model = SubspaceTobitRegressor(rank=1, upper=3).partial_fit(X, Y)
    for method in (model.feature_importance, model.task_similarity, model.subspaces):
        with pytest.raises(ValueError, match="not known to this model; pass X"):
            method()
    assert_close(
        model.feature_importance(X)[["y0", "y1"]], np.abs(model.coef_ * X.std(axis=0)).T, 1e-10
    )


def test_the_summary_names_features_and_targets() -> None:
    X, Y = named()
    index = bounded().fit(X, Y).summary().index
    assert index.get_level_values("target").unique().tolist() == ["MMSE", "ADAS"]
    assert index.get_level_values("term")[:3].tolist() == ["age", "volume", "marker"]


def test_errors_say_what_is_wrong() -> None:
    X, Y = censored()
    for method in ("feature_importance", "task_similarity", "subspaces"):
        with pytest.raises(NotFittedError):
            getattr(bounded(), method)()
    model = bounded().fit(X, Y)
    with pytest.raises(ValueError, match="kind must be 'coef' or 'permutation'; got 'gain'"):
        model.feature_importance(kind="gain")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scoring must be 'log' or 'r2'"):
        model.feature_importance(X, Y, kind="permutation", scoring="mse")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind='permutation' needs X and y"):
        model.feature_importance(X, kind="permutation")
    with pytest.raises(ValueError, match="n_repeats must be a whole number, at least 1; got 0"):
        model.feature_importance(X, Y, kind="permutation", n_repeats=0)
    with pytest.raises(ValueError, match="X has 149 rows but Y has 150"):
        model.feature_importance(X[1:], Y, kind="permutation")
    with pytest.raises(ValueError, match="layer must lie from -1 to 0; got 1"):
        model.subspaces(1)
