"""The search of networks: what it chooses, what it leaves, and what it does not depend on."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from deeptobit import SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.estimators.networkcv import _may_win, is_ahead
from deeptobit.likelihood import Gaussian, NoiseByTask

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)


@cache
def data(seed: int = 0, n_samples: int = 150) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(n_samples, 8, 5, 2, sigma=1.0, latent_sd=1.0, random_state=seed)
    return X, Y


@cache
def fitted() -> SubspaceNetworkCV:
    return SubspaceNetworkCV(cv=2, random_state=0).fit(*data())


def test_the_best_network_is_one_of_its_own() -> None:
    model, (X, Y) = fitted(), data()
    best = model.best_estimator_
    assert isinstance(best, SubspaceNetworkRegressor)
    assert model.best_params_ == {name: getattr(best, name) for name in model.best_params_}
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    np.testing.assert_array_equal(model.predict(X), clone(best).fit(X, Y).predict(X))
    np.testing.assert_array_equal(model.transform(X), best.transform(X))
    assert model.noise_ == Gaussian()
    assert model.history_ is best.history_
    assert model.feature_importance(X).shape[0] == 8


def test_the_table_is_that_of_scikit_learn() -> None:
    table = fitted().cv_results_
    assert len(table["params"]) == 3 * 10 + 1  # ranks, alphas, and a deeper one
    splits = np.array([table[f"split{fold}_test_score"] for fold in range(2)])
    np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(table["std_test_score"], splits.std(axis=0))
    assert table["rank_test_score"].min() == 1
    assert sorted(name for name in table if name.startswith("param_")) == [
        *("param_alpha", "param_feature_sparsity", "param_n_layers", "param_rank"),
    ]
    assert fitted().best_score_ == np.nanmax(table["mean_test_score"])


def test_groups_keep_rows_together() -> None:
    X, Y = data()
    groups = np.arange(len(X)) // 3
    given = list(GroupKFold(2).split(X, None, groups))
    settings: dict[str, Any] = {"ranks": [2], "alphas": 2, "max_layers": 1}
    by_groups = SubspaceNetworkCV(cv=2, **settings).fit(X, Y, groups=groups)
    by_folds = SubspaceNetworkCV(cv=given, **settings).fit(X, Y)
    assert by_groups.best_score_ == by_folds.best_score_


def test_n_jobs_changes_nothing_and_the_seed_decides() -> None:
    X, Y = data()
    settings: dict[str, Any] = {"alphas": 2, "ranks": [1, 2], "cv": 2, "random_state": 0}
    one = SubspaceNetworkCV(**settings).fit(X, Y)
    two = SubspaceNetworkCV(n_jobs=2, **settings).fit(X, Y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_the_grid_is_searched() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(
        ranks=[1, 2], alphas=[0.02, 0.3], max_layers=1, cv=2, random_state=0
    ).fit(X, Y)
    tried = [(params["rank"], params["alpha"]) for params in model.cv_results_["params"]]
    assert tried == [(1, 0.3), (1, 0.02), (2, 0.3), (2, 0.02)]
    best = model.best_params_
    assert best["rank"] == model.rank_ == 2
    assert best["alpha"] == model.alpha_
    alone = SubspaceNetworkRegressor(2, 1, alpha=best["alpha"], tol=model.tol).fit(X, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_)


def test_a_number_of_alphas_begins_where_nothing_is_left() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(alphas=3, ranks=[2], max_layers=1, cv=2, random_state=0).fit(X, Y)
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
        feature_sparsities=[0.0, 0.8], ranks=[2], alphas=[0.1], max_layers=1, cv=2, random_state=0
    ).fit(X, Y)
    tried = [params["feature_sparsity"] for params in model.cv_results_["params"]]
    assert tried == [0.0, 0.8]


def test_outcomes_without_bounds_are_not_stacked_in_layers() -> None:
    X, Y = data()
    model = SubspaceNetworkCV(ranks=[2], alphas=2, lower=None, max_layers=3, cv=2).fit(X, Y)
    assert all(params["n_layers"] == 1 for params in model.cv_results_["params"])


def test_depth_is_taken_where_it_pays() -> None:
    X, Y, _ = make_subspace(
        500, 10, 8, 3, n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0, random_state=1
    )
    model = SubspaceNetworkCV(ranks=[3], alphas=[0.01], cv=2, random_state=0).fit(X, Y)
    assert model.n_layers_ == model.best_params_["n_layers"] == 2
    assert model.best_params_["alpha"] == 0.005
    again = clone(model.best_estimator_).fit(X, Y)  # nothing in it is from held-out rows
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert len(list(model.staged_predict(X[:5]))) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_layers": 0}, "max_layers must be a whole number, at least 1"),
        ({"scoring": "auc"}, "scoring must be 'r2' or 'log'"),
        ({"ranks": []}, "ranks is empty: there is nothing to choose from"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.0]}, "alphas must be above 0"),
        ({"ranks": [0]}, "ranks must be whole numbers"),
        ({"feature_sparsities": [2.0]}, "feature_sparsities must be numbers from 0 to 1"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"noise": "auto"}, "noise='auto' is a setting of AutoTobitRegressor"),
        ({"noise": NoiseByTask([Gaussian()] * 5)}, "one noise family for all tasks"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SubspaceNetworkCV(**settings).fit(*data())


def test_a_formula_reaches_the_chosen_network() -> None:
    X, Y = data()
    frame = pd.DataFrame(X, columns=[f"a{i}" for i in range(X.shape[1])])
    frame[["one", "two"]] = Y[:, :2]
    model = SubspaceNetworkCV.from_formula(
        "one + two ~ a0 + a1:a2", frame, alphas=3, cv=2, random_state=0
    )
    *_, last = model.staged_predict(frame)
    np.testing.assert_array_equal(last, model.predict(frame))
    assert model.transform(frame).shape == (len(frame), model.rank_)


def test_a_deeper_network_that_is_behind_on_two_folds_is_abandoned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X, Y, _ = make_subspace(60, 20, 5, 2, sigma=2.0, latent_sd=1.0, random_state=0)
    model = SubspaceNetworkCV(ranks=[1], alphas=[0.2], random_state=0, verbose=1).fit(X, Y)
    table = model.cv_results_
    scores = np.array([table[f"split{fold}_test_score"] for fold in range(5)])
    best, deeper = scores[:, np.nanargmax(table["mean_test_score"])], scores[:, -1]
    assert table["params"][-1]["n_layers"] == 2
    assert (deeper[:2] < best[:2]).all()
    assert np.isnan(deeper[2:]).all()
    assert np.isnan(table["mean_test_score"][-1])
    assert table["rank_test_score"][-1] == len(table["params"])
    assert "deeper networks, 1 of 1 fits" in capsys.readouterr().err
    assert model.n_layers_ == 1


@pytest.mark.parametrize("unit", [1e-300, 1e-3, 1.0, 1e201])
def test_being_ahead_does_not_depend_on_the_unit_of_a_score(unit: float) -> None:
    gain = np.array([3.0, 1.0, 2.0, -1.0])  # mean 1.25, standard error 0.74
    assert is_ahead(unit * gain, 1.5)
    assert not is_ahead(unit * gain, 2.0)
    assert not is_ahead(-unit * gain, 1.5)
    assert not is_ahead(np.zeros(4), 0.5)


def test_a_network_may_win_until_it_is_far_behind_once_or_behind_twice() -> None:
    rng = np.random.default_rng(0)
    rival = rng.normal(size=(3, 100))
    noise = rng.normal(size=(2, 100))
    noise -= noise.mean(axis=1, keepdims=True)
    near, far = rival[:2] + noise - 0.1, rival[:2] + noise - 0.2  # 1 and 2 standard errors behind
    assert _may_win([], rival)
    assert _may_win([near[0]], rival)
    assert not _may_win([*near], rival)
    assert not _may_win([far[0]], rival)
    assert _may_win([far[0]], rival.sum(axis=1))  # of sums alone, no error is known
    assert _may_win([near[0], rival[1] + 1.0], rival)
