"""Cross-validation: what it chooses, what it leaves, and what it does not depend on."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from deeptobit import CensoredTargets, SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.likelihood import Gaussian, Noise, NoiseByTask, StudentT, TwoPiece, of_task


@cache
def data(seed: int = 0, n_samples: int = 150) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(n_samples, 8, 5, 2, sigma=1.0, latent_sd=1.0, random_state=seed)
    return X, Y


@cache
def fitted() -> SubspaceNetworkCV:
    return SubspaceNetworkCV(random_state=0).fit(*data())


def test_the_stack_is_a_layer_of_the_family() -> None:
    model, (X, _) = fitted(), data()
    assert model.best_params_ == {"prior": "stacked", "n_layers": 1}
    assert isinstance(model.best_estimator_, SubspaceNetworkRegressor)
    np.testing.assert_allclose(model.U_ @ model.V_, model.coef_)
    np.testing.assert_allclose(
        model.predict(X, kind="latent"), X @ model.coef_.T + model.intercept_
    )
    np.testing.assert_allclose(model.predict(X), model.best_estimator_.predict(X))
    assert model.transform(X).shape == (150, model.rank_)
    assert model.alpha_ > 0.0
    (only,) = model.staged_predict(X)
    np.testing.assert_allclose(only, model.predict(X))


def test_a_stack_is_explained_without_rows() -> None:
    model, (X, _) = fitted(), data()
    np.testing.assert_allclose(model.feature_scale_, X.std(axis=0))
    assert model.feature_importance().shape[0] == 8
    assert model.task_similarity().shape == (5, 5)


def test_the_table_is_that_of_scikit_learn() -> None:
    table = fitted().cv_results_
    n_candidates = len(table["params"])
    assert table["params"][0] == {"prior": "stacked", "n_layers": 1}
    splits = np.array([table[f"split{fold}_test_score"] for fold in range(5)])
    np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(table["std_test_score"], splits.std(axis=0))
    assert table["rank_test_score"].min() == 1
    assert len(table["param_shrinkage"]) == n_candidates
    assert np.nansum(table["weight"]) == pytest.approx(1.0)
    assert fitted().best_score_ == table["mean_test_score"][0]


def test_the_stack_is_not_worse_than_its_members() -> None:
    table = fitted().cv_results_
    members = table["mean_test_score"][~np.isnan(table["weight"])]
    assert table["mean_test_score"][0] > members.max() - 1e-3


@pytest.mark.parametrize("settings", [{}, {"alphas": 3, "ranks": [1, 2]}])
def test_n_jobs_changes_nothing_and_the_seed_decides(settings: dict[str, Any]) -> None:
    X, Y = data()
    one = SubspaceNetworkCV(random_state=0, **settings).fit(X, Y)
    two = SubspaceNetworkCV(random_state=0, n_jobs=2, **settings).fit(X, Y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_groups_keep_rows_together() -> None:
    X, Y = data()
    groups = np.arange(len(X)) // 3
    given = list(GroupKFold(5).split(X, None, groups))
    by_groups = SubspaceNetworkCV(max_layers=1).fit(X, Y, groups=groups)
    by_folds = SubspaceNetworkCV(max_layers=1, cv=given).fit(X, Y)
    np.testing.assert_array_equal(by_groups.coef_, by_folds.coef_)


def test_a_grid_is_searched_instead() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(ranks=[1, 2], alphas=[0.02, 0.3], max_layers=1, random_state=0).fit(
        X, Y
    )
    tried = [(params["rank"], params["alpha"]) for params in model.cv_results_["params"]]
    assert tried == [(1, 0.3), (1, 0.02), (2, 0.3), (2, 0.02)]
    best = model.best_params_
    assert best["rank"] == model.rank_ == 2
    assert best["alpha"] == model.alpha_
    alone = SubspaceNetworkRegressor(2, 1, alpha=best["alpha"], tol=model.tol).fit(X, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_)


def test_a_number_of_alphas_begins_where_nothing_is_left() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(alphas=3, ranks=[2], max_layers=1, random_state=0).fit(X, Y)
    alphas = [params["alpha"] for params in model.cv_results_["params"]]
    np.testing.assert_allclose(np.array(alphas) / alphas[0], [1.0, 0.1, 0.01])
    assert abs(model.cv_results_["mean_test_score"][0]) < 0.1


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = data()
    SubspaceNetworkCV(alphas=[0.1], ranks=[1], max_layers=1, cv=2, verbose=1).fit(X, Y)
    assert "'rank': 1, 'alpha': 0.1" in capsys.readouterr().err


def test_features_may_leave_on_the_grid() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(
        feature_sparsities=[0.0, 0.8], ranks=[2], alphas=[0.1], max_layers=1, random_state=0
    ).fit(X, Y)
    tried = [params["feature_sparsity"] for params in model.cv_results_["params"]]
    assert tried == [0.0, 0.8]


def test_depth_is_taken_where_it_pays() -> None:
    X, Y, _ = make_subspace(
        1500, 10, 8, 3, n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0, random_state=1
    )
    model = SubspaceNetworkCV(random_state=0, cv=3).fit(X[:1000], Y[:1000])
    assert model.n_layers_ >= 2
    assert model.feature_importance(X=X[:100]).shape[0] == 10
    with pytest.raises(ValueError, match="depend on where one looks; pass X"):
        model.task_similarity()
    assert len(model.layers_) == len(list(model.staged_predict(X[:5]))) == model.n_layers_
    shallow = SubspaceNetworkCV(random_state=0, cv=3, max_layers=1).fit(X[:1000], Y[:1000])
    assert model.score(X[1000:], Y[1000:]) > shallow.score(X[1000:], Y[1000:]) + 0.01


def test_outcomes_without_bounds_are_not_stacked_in_layers() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(lower=None, random_state=0, max_layers=3).fit(X, Y)
    assert all(params.get("n_layers", 1) == 1 for params in model.cv_results_["params"])


def test_units_do_not_matter() -> None:
    X, Y = data()
    plain = SubspaceNetworkCV(random_state=0, max_layers=1).fit(X, Y)
    moved = SubspaceNetworkCV(random_state=0, max_layers=1).fit(10.0 * X - 3.0, 1e3 * Y)
    np.testing.assert_allclose(moved.predict(10.0 * X - 3.0), 1e3 * plain.predict(X), rtol=1e-5)


def test_sparse_one_dimensional_and_missing_outcomes() -> None:
    X, Y = data()
    dense = SubspaceNetworkCV(random_state=0, cv=3).fit(X, Y[:, 0])
    sparse = SubspaceNetworkCV(random_state=0, cv=3).fit(csr_matrix(X), Y[:, 0])
    assert dense.predict(X).shape == (150,)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X), rtol=1e-6)
    holes = Y.copy()
    holes[::4, 1] = np.nan
    assert SubspaceNetworkCV(random_state=0, cv=3).fit(X, holes).score(X, Y) > 0.2


def test_targets_bring_their_bounds_and_scoring_may_be_the_log() -> None:
    X, Y = data()
    targets = CensoredTargets.from_bounds(np.minimum(Y, 2.0), 0.0, 2.0)
    model = SubspaceNetworkCV(scoring="log", random_state=0, cv=3).fit(X, targets)
    assert model.upper_.tolist() == [2.0] * 5
    assert model.best_score_ == pytest.approx(model.score_log(X, targets), abs=0.3)


def test_a_task_at_its_bound_throughout_is_a_warning() -> None:
    X, Y = data()
    with pytest.warns(CensoringWarning, match="censored on the same side"):
        model = SubspaceNetworkCV(random_state=0, cv=3, max_layers=1).fit(
            X, np.column_stack([Y, np.zeros(len(X))])
        )
    assert np.abs(model.coef_[-1]).max() == pytest.approx(0.0, abs=1e-10)
    assert model.predict(X)[:, -1].max() < 0.1


@pytest.mark.parametrize("noise", ["logistic", "student_t"])
def test_other_noise_is_met_by_the_recalibration(noise: str) -> None:
    X, Y = data()
    model = SubspaceNetworkCV(noise=noise, random_state=0, cv=3, max_layers=1).fit(X, Y)
    gaussian = SubspaceNetworkCV(noise="gaussian", random_state=0, cv=3, max_layers=1).fit(X, Y)
    assert model.score_log(X, Y) == pytest.approx(gaussian.score_log(X, Y), abs=0.1)
    assert (model.sigma_ < gaussian.sigma_).all()  # both families have a larger variance


def test_no_intercept_means_none() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(fit_intercept=False, random_state=0, cv=3).fit(X, Y)
    np.testing.assert_array_equal(model.intercept_, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_layers": 0}, "max_layers must be a whole number, at least 1"),
        ({"scoring": "auc"}, "scoring must be 'r2' or 'log'"),
        ({"ranks": []}, "ranks is empty: there is nothing to choose from"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.0]}, "alphas must be positive"),
        ({"ranks": [0]}, "ranks must be whole numbers"),
        ({"feature_sparsities": [2.0]}, "feature_sparsity must"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SubspaceNetworkCV(**settings).fit(*data())


def test_a_refit_forgets_and_a_clone_is_fresh() -> None:
    X, Y = data()
    model = clone(fitted())
    assert not hasattr(model, "best_estimator_")
    model.fit(X[:, :4], Y)
    assert model.fit(X, Y).coef_.shape == (5, 8)
    np.testing.assert_array_equal(model.coef_, fitted().coef_)


def test_a_formula_reaches_the_chosen_network() -> None:
    X, Y = data()
    frame = pd.DataFrame(X, columns=[f"a{i}" for i in range(X.shape[1])])
    frame[["one", "two"]] = Y[:, :2]
    model = SubspaceNetworkCV.from_formula("one + two ~ a0 + a1:a2", frame, cv=2, random_state=0)
    *_, last = model.staged_predict(frame)
    np.testing.assert_array_equal(last, model.predict(frame))
    assert model.transform(frame).shape == (len(frame), model.rank_)


def test_a_deep_network_knows_its_noise_on_few_rows() -> None:
    X, Y, _ = make_subspace(
        1150,
        20,
        10,
        3,
        n_layers=2,
        skip_connection=True,
        sigma=1.0,
        hidden_sigma=0.3,
        latent_sd=3.0,
        random_state=0,
    )
    model = SubspaceNetworkCV(max_layers=2, cv=3, random_state=0).fit(X[:150], Y[:150])
    plain = SubspaceNetworkRegressor(n_layers=2, prediction="mean").fit(X[:150], Y[:150])
    assert model.n_layers_ == 2  # two layers, tuned: σ of their own rows is far too small
    assert model.score_log(X[150:], Y[150:]) > plain.score_log(X[150:], Y[150:]) + 0.1
    low, high = model.predict_interval(X[150:], 0.9)
    assert ((low <= Y[150:]) & (Y[150:] <= high)).mean() > 0.9


@pytest.mark.parametrize(("draw", "gain"), [("normal", -0.005), ("standard_t", 0.02)])
def test_the_noise_is_that_of_the_held_out_rows(draw: str, gain: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    noise = rng.normal(size=(400, 3)) if draw == "normal" else rng.standard_t(3, size=(400, 3))
    Y = np.maximum(X @ rng.normal(size=(4, 3)) + noise, 0.0)
    model = SubspaceNetworkCV(max_layers=1, random_state=0).fit(X, Y)
    assert repr(model.best_estimator_.noise_) == repr(model.noise_)
    heavy = [isinstance(_tails(of_task(model.noise_, task)), StudentT) for task in range(3)]
    assert all(heavy) if draw == "standard_t" else not any(heavy)
    gaussian = SubspaceNetworkCV(max_layers=1, random_state=0, noise="gaussian").fit(X, Y)
    assert model.score_log(X, Y) > gaussian.score_log(X, Y) + gain


def _tails(noise: Noise) -> Noise:
    return noise.base if isinstance(noise, TwoPiece) else noise


def test_the_noise_of_another_model_can_be_asked_for() -> None:
    X, Y = data()
    asked = NoiseByTask([StudentT(), *[Gaussian()] * (Y.shape[1] - 1)])
    model = SubspaceNetworkCV(noise=asked, random_state=0, cv=3).fit(X, Y)
    assert model.noise_ is asked


def test_the_winner_of_a_grid_has_the_noise_by_task_that_was_asked_for() -> None:
    X, Y = data()
    asked = NoiseByTask([StudentT(), *[Gaussian()] * (Y.shape[1] - 1)])
    grid: dict[str, Any] = {"ranks": [2], "alphas": [0.1], "max_layers": 1, "random_state": 0}
    model = SubspaceNetworkCV(noise=asked, **grid).fit(X, Y)
    assert model.noise_ is asked
    gaussian = SubspaceNetworkCV(noise="gaussian", **grid).fit(X, Y)
    assert model.sigma_[0] < gaussian.sigma_[0]  # heavy tails explain what a wide σ had to
    np.testing.assert_allclose(model.V_, gaussian.V_)


def test_a_family_that_was_asked_for_stays() -> None:
    X, Y, _ = make_subspace(80, 5, 3, 1, random_state=0)
    asked = StudentT(df=7.0)
    model = SubspaceNetworkCV(max_layers=1, random_state=0, noise=asked).fit(X, Y)
    assert model.noise_ is asked


def test_no_family_of_that_name() -> None:
    X, Y, _ = make_subspace(80, 5, 3, 1, random_state=0)
    with pytest.raises(ValueError, match=r"noise must be one of .*; got 'cauchy'"):
        SubspaceNetworkCV(noise="cauchy").fit(X, Y)


def test_a_deeper_network_that_is_behind_on_two_folds_is_given_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X, Y = data()
    model = SubspaceNetworkCV(random_state=0, verbose=1).fit(X, Y)
    table = model.cv_results_
    scores = np.array([table[f"split{fold}_test_score"] for fold in range(5)])
    chosen, deeper = scores[:, 0], scores[:, -1]
    assert table["params"][-1]["n_layers"] == 2
    assert (deeper[:2] < chosen[:2]).all()
    assert np.isnan(deeper[2:]).all()
    assert np.isnan(table["mean_test_score"][-1])
    assert table["rank_test_score"][-1] == len(table["params"])
    assert "given up after 2 folds" in capsys.readouterr().err
    assert model.n_layers_ == 1
