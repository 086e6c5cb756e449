"""alpha="auto" of one layer: little where there is signal, much where there is none."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.shrinkage import Shape, draw, errors, fit
from deeptobit import SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.estimators.inputs import automatic_alpha
from tests.estimators.subspaces import data, fitted, relative_gradient, subspace


def largest(shape: Shape) -> float:
    n_samples, n_features, n_tasks, _ = shape
    return automatic_alpha(np.full(n_tasks, float(n_samples)), n_samples, n_features)


@pytest.mark.parametrize("shape", [Shape(300, 40, 12), Shape(150, 60, 20), Shape(400, 60, 12, 0.5)])
def test_a_signal_is_hardly_shrunk(shape: Shape) -> None:
    drawn = draw(shape, 50)
    auto, rule, little = (
        errors(fit(drawn, 4, alpha), drawn)
        for alpha in ("auto", largest(shape), 0.1 * largest(shape))
    )
    assert auto.coef < min(0.75 * rule.coef, 1.1 * little.coef)
    assert auto.log_score > max(rule.log_score, little.log_score - 0.005)
    assert auto.share < min(0.5 * rule.share, 0.015)


def test_a_rank_that_is_too_large_does_no_harm() -> None:
    shape = Shape(300, 40, 12)
    drawn = draw(shape, 50)
    right, large = fit(drawn, 4), fit(drawn, 8)
    assert (large.rank_, large.U_.shape) == (8, (12, 8))
    assert np.linalg.matrix_rank(large.coef_) == 4
    np.testing.assert_allclose(large.coef_, right.coef_, atol=1e-4)
    little = errors(fit(drawn, 8, 0.03 * largest(shape)), drawn)
    assert errors(large, drawn).coef < 0.8 * little.coef
    assert relative_gradient(large, drawn.X, drawn.Y) < 1e-5


def test_weak_components_are_not_cut_off() -> None:
    rng = np.random.default_rng(3)
    strengths = np.array([2.0, 1.0, 0.5, 0.25])
    W = (rng.normal(size=(12, 4)) * strengths) @ rng.normal(size=(4, 20)) / np.sqrt(20)
    X = rng.normal(size=(3000, 20))
    Y = np.clip(X @ W.T + rng.normal(size=(3000, 12)), -2.0, 3.0)
    model = SubspaceTobitRegressor(8, lower=-2.0, upper=3.0).fit(X[:1000], Y[:1000])
    assert np.linalg.matrix_rank(model.coef_) == 4
    exact = SubspaceTobitRegressor(4, lower=-2.0, upper=3.0).fit(X[:1000], Y[:1000])
    assert model.score_log(X[1000:], Y[1000:]) > exact.score_log(X[1000:], Y[1000:]) - 1e-4


def test_noise_that_outcomes_have_in_common_is_not_fitted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2300, 60))
    common = rng.normal(size=(2300, 1)) @ np.ones((1, 15))
    signal = 0.3 * X[:, :1] @ np.ones((1, 15))
    Y = np.maximum(signal + common + rng.normal(size=(2300, 15)), -1.0)
    auto, largest_alpha = (
        SubspaceTobitRegressor(2, alpha=alpha, lower=-1.0).fit(X[:300], Y[:300])
        for alpha in ("auto", automatic_alpha(np.full(15, 300.0), 300, 60))
    )
    assert auto.alpha_ >= 0.5 * largest_alpha.alpha_
    assert auto.score(X[300:], Y[300:]) > largest_alpha.score(X[300:], Y[300:]) - 0.02


@pytest.mark.parametrize("shape", [Shape(100, 30, 10, 0.0), Shape(60, 100, 10, 0.0)])
@pytest.mark.parametrize("rank", [4, 8])
def test_pure_noise_is_not_fitted(shape: Shape, rank: int) -> None:
    for seed in (50, 51):
        drawn = draw(shape, seed)
        model = fit(drawn, rank)
        assert model.score(drawn.X_new, drawn.Y_new) > -0.06
        intercepts = fit(drawn, rank, 1e6).score_log(drawn.X_new, drawn.Y_new)
        assert model.score_log(drawn.X_new, drawn.Y_new) > intercepts - 0.02


def test_the_history_says_what_was_tried() -> None:
    X, Y = data()
    model = subspace().fit(X, Y)
    tried = model.history_["alphas"]
    assert tried[0]["alpha"] == pytest.approx(automatic_alpha(np.full(4, 200.0), 200, 5))
    assert model.alpha_ in [each["alpha"] for each in tried]
    alphas, ranks, criteria, freedom = (
        [each[name] for each in tried]
        for name in ("alpha", "rank", "criterion", "degrees_of_freedom")
    )
    assert set(ranks) == {model.rank_}
    assert alphas == sorted(alphas, reverse=True)
    assert freedom == sorted(freedom)
    chosen = alphas.index(model.alpha_)
    assert criteria[chosen] <= min(criteria) + 1e-3
    assert "alphas" not in subspace(alpha=0.1).fit(X, Y).history_


def test_the_model_is_that_of_the_chosen_alpha() -> None:
    X, Y = data()
    model = subspace().fit(X, Y)
    np.testing.assert_allclose(
        fitted(model), fitted(subspace(alpha=model.alpha_).fit(X, Y)), atol=1e-6
    )
    assert model.history_["converged"]
    assert relative_gradient(model, X, Y) < 1e-8


def _variants() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    X, Y = data()
    units = [1e-3, 1.0, 1e3, 7.0, 0.1]
    rows = np.random.default_rng(0).permutation(len(X))
    twice = np.repeat(np.arange(len(X)), 2)[: len(X)]
    return {
        "rows in another order": (X[rows], Y[rows], {}),
        "features in another order and other units": (
            X[:, ::-1] * units,
            Y,
            {},
        ),
        "outcomes in another order": (X, Y[:, ::-1], {}),
        "a sparse matrix": (csr_matrix(X), Y, {}),
        "weights that sum to the number of rows": (X, Y, {"sample_weight": np.ones(len(X))}),
        "rows twice": (X[twice], Y[twice], {}),
        "weights of two": (X[:100], Y[:100], {"sample_weight": np.full(100, 2.0)}),
    }


@pytest.mark.parametrize("name", list(_variants())[:5])
def test_the_choice_does_not_depend_on_how_the_data_are_written(name: str) -> None:
    X, Y, options = _variants()[name]
    expected = subspace().fit(*data())
    found = subspace().fit(X, Y, **options)
    assert found.alpha_ == pytest.approx(expected.alpha_)
    assert [each["criterion"] for each in found.history_["alphas"]] == pytest.approx(
        [each["criterion"] for each in expected.history_["alphas"]], rel=1e-3
    )


def test_a_weight_of_two_is_the_row_twice() -> None:
    variants = _variants()
    models = []
    for name in ("rows twice", "weights of two"):
        X, Y, options = variants[name]
        models.append(subspace().fit(X, Y, **options))
    assert models[0].alpha_ == pytest.approx(models[1].alpha_)
    np.testing.assert_allclose(fitted(models[0]), fitted(models[1]), atol=1e-6)


def test_a_rare_outcome_leaves_the_choice_to_the_others() -> None:
    X, Y, _ = make_subspace(300, 20, 8, 2, sigma=1.0, random_state=0)
    model = SubspaceTobitRegressor(2).fit(X, Y)
    Y = Y.copy()
    Y[8:, 0] = np.nan
    rare = SubspaceTobitRegressor(2).fit(X, Y)
    tried = rare.history_["alphas"]
    assert rare.alpha_ <= 0.5 * tried[0]["alpha"]
    assert model.alpha_ <= 0.5 * model.history_["alphas"][0]["alpha"]


@pytest.mark.parametrize(
    "options", [{"sigma": 0.7}, {"noise": "student_t"}, {"fit_intercept": False}, {"rank": 1}]
)
def test_other_models_choose_too(options: dict[str, Any]) -> None:
    X, Y = data()
    model = subspace(**options).fit(X, Y)
    assert len(model.history_["alphas"]) > 1
    assert model.alpha_ < model.history_["alphas"][0]["alpha"]


def test_one_outcome_and_constant_features_are_no_exception() -> None:
    X, Y = data()
    model = subspace(rank=1).fit(X, Y[:, 0])
    assert model.alpha_ < model.history_["alphas"][0]["alpha"]
    constant = subspace(rank=1).fit(np.ones((200, 2)), Y)
    assert not constant.coef_.any()


@pytest.mark.parametrize("options", [{"penalty": "group"}, {"feature_sparsity": 1.0}])
def test_penalties_that_choose_features_keep_the_largest_alpha(options: dict[str, Any]) -> None:
    X, Y = data()
    model = subspace(**options).fit(X, Y)
    assert model.alpha_ == pytest.approx(automatic_alpha(np.full(4, 200.0), 200, 5))
    assert model.history_["alphas"] == []
