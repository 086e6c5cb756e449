"""The automatic model: what it takes, what it leaves, and what it does not depend on."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from deeptobit import AutoTobitRegressor, CensoredTargets, SubspaceNetworkRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.estimators.auto import _is_better
from deeptobit.exceptions import CensoringWarning
from deeptobit.likelihood import Gaussian, Noise, NoiseByTask, StudentT, TwoPiece, of_task


@cache
def data(seed: int = 0, n_samples: int = 150) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(n_samples, 8, 5, 2, sigma=1.0, latent_sd=1.0, random_state=seed)
    return X, Y


@cache
def fitted() -> AutoTobitRegressor:
    return AutoTobitRegressor(random_state=0).fit(*data())


@cache
def deep_data() -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(
        1000, 10, 8, 3, n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0, random_state=1
    )
    return X, Y


@cache
def deep() -> AutoTobitRegressor:
    X, Y = deep_data()
    return AutoTobitRegressor(random_state=0, cv=2).fit(X[:500], Y[:500])


def test_the_stack_is_one_layer() -> None:
    model, (X, _) = fitted(), data()
    assert model.n_layers_ == len(model.layers_) == 1
    np.testing.assert_allclose(model.U_ @ model.V_, model.coef_)
    np.testing.assert_allclose(
        model.predict(X, kind="latent"), X @ model.coef_.T + model.intercept_
    )
    assert model.transform(X).shape == (150, model.rank_)
    assert model.alpha_ > 0.0
    assert model.history_["solver"] == "evidence"
    (only,) = model.staged_predict(X)
    np.testing.assert_allclose(only, model.predict(X))


def test_a_stack_is_explained_without_rows() -> None:
    model, (X, _) = fitted(), data()
    np.testing.assert_allclose(model.feature_scale_, X.std(axis=0))
    assert model.feature_importance().shape[0] == 8
    assert model.task_similarity().shape == (5, 5)


def test_members_are_what_was_tried_and_what_was_taken() -> None:
    table = fitted().members_
    trees = table.iloc[-2]
    assert trees["result"] == "given up: they explain nothing that the stack leaves"
    assert np.isnan(trees["score"])
    assert not trees["taken"]
    table = table.drop(index=trees.name)
    stack_name, *layer_names, network_name = table["member"]
    assert (stack_name, network_name) == ("stack of layers", "network of 2 layers")
    assert layer_names[0] == "separate tasks, all features alike, prior × 0.08"
    assert layer_names[-1] == "effects 97 % shared, independent noise, few features, prior × 1.4"
    assert table["member"].is_unique
    assert table["result"].iloc[[0, -1]].tolist() == [
        "taken",
        "given up: behind the stack on the first two folds",
    ]
    weighty = table["result"].str.endswith("% of the stack")
    assert weighty.tolist() == (table["weight"] > 0.0).tolist()
    assert table["taken"].tolist() == [True] + [False] * 25
    assert table["weight"].sum() == pytest.approx(1.0)
    stack, *layers, deeper = table["score"]
    assert stack > max(layers) - 1e-3
    assert stack > deeper
    assert table["folds"].tolist() == [5] * 25 + [2]  # the network was behind on both
    assert table["layers"].tolist() == [1] * 25 + [2]
    separate = max(table["score"][[1, 2, 3, 16, 17, 18]])
    np.testing.assert_allclose(table["gain"][:-1], table["score"][:-1] - separate)
    assert table["gain"].iloc[-1] < 0.0  # on its own two folds
    assert set(table["shrinkage"].dropna()) == {1.0, 0.3, 0.1, 0.03, 0.001}
    assert (table["seconds"] > 0.0).all()


def test_priors_that_surely_add_nothing_are_learned_once() -> None:
    X, Y, _ = make_subspace(1000, 60, 20, 3, sigma=1.0, latent_sd=1.0, random_state=0)
    table = AutoTobitRegressor(random_state=0, members=("stack",)).fit(X, Y).members_
    once = table["folds"] == 1
    assert once.any()
    assert set(table["folds"]) == {1, 5}
    assert (table["weight"][once] == 0.0).all()
    assert (table["result"][once] == "adds nothing to the stack").all()
    assert table["folds"][:4].tolist() == [5] * 4  # what all others are compared with
    separate = table["score"][~once & (table["shrinkage"] == 1.0)].max()
    np.testing.assert_allclose(table["gain"][~once], table["score"][~once] - separate)


def test_members_may_be_left_out() -> None:
    X, Y = data()
    stack = AutoTobitRegressor(members=["stack"], random_state=0).fit(X, Y)
    assert "network of 2 layers" not in stack.members_["member"].tolist()
    np.testing.assert_array_equal(stack.coef_, fitted().coef_)
    deeper = AutoTobitRegressor(members=("deeper",), cv=2, random_state=0).fit(X, Y)
    assert deeper.members_["member"].tolist() == ["network of 2 layers"]
    assert deeper.members_["taken"].tolist() == [True]
    with pytest.raises(ValueError, match="no target has a bound, so that a deeper network is lin"):
        AutoTobitRegressor(members=("deeper",), lower=None).fit(X, Y)


def test_verbose_prints_the_members(capsys: pytest.CaptureFixture[str]) -> None:
    AutoTobitRegressor(members=("stack",), cv=2, random_state=0, verbose=1).fit(*data())
    assert "stack of layers" in capsys.readouterr().err


def test_n_jobs_changes_nothing_and_the_seed_decides() -> None:
    X, Y = data()
    two = AutoTobitRegressor(random_state=0, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(fitted().predict(X), two.predict(X))
    columns = ["member", "score", "weight"]
    pd.testing.assert_frame_equal(fitted().members_[columns], two.members_[columns])


def test_groups_keep_rows_together() -> None:
    X, Y = data()
    groups = np.arange(len(X)) // 3
    given = list(GroupKFold(2).split(X, None, groups))
    by_groups = AutoTobitRegressor(members=("stack",), cv=2).fit(X, Y, groups=groups)
    by_folds = AutoTobitRegressor(members=("stack",), cv=given).fit(X, Y)
    np.testing.assert_array_equal(by_groups.coef_, by_folds.coef_)


def test_depth_is_taken_where_it_pays() -> None:
    model, (X, Y) = deep(), deep_data()
    assert model.n_layers_ == 2
    assert model.members_["taken"].tolist() == [False] * 26 + [True]
    assert model.feature_importance(X=X[:100]).shape[0] == 10
    with pytest.raises(ValueError, match="depend on where one looks; pass X"):
        model.task_similarity()
    assert len(model.layers_) == len(list(model.staged_predict(X[:5]))) == model.n_layers_
    shallow = AutoTobitRegressor(random_state=0, cv=2, members=("stack",)).fit(X[:500], Y[:500])
    assert model.score(X[500:], Y[500:]) > shallow.score(X[500:], Y[500:]) + 0.01


@pytest.mark.parametrize("model", [fitted, deep])
def test_it_is_saved_whole(model: Any, tmp_path: Path) -> None:
    model, (X, _) = model(), deep_data()
    X = X[:50, : model.n_features_in_]
    model.save(tmp_path / "it.model")
    again = load(tmp_path / "it.model")
    assert isinstance(again, AutoTobitRegressor)
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    pd.testing.assert_frame_equal(again.members_, model.members_)
    assert again.noise_ == model.noise_


def test_units_do_not_matter() -> None:
    X, Y = data()
    plain = AutoTobitRegressor(random_state=0, cv=2, members=("stack",)).fit(X, Y)
    moved = clone(plain).fit(10.0 * X - 3.0, 1e3 * Y)
    np.testing.assert_allclose(moved.predict(10.0 * X - 3.0), 1e3 * plain.predict(X), rtol=1e-5)


def test_sparse_one_dimensional_and_missing_outcomes() -> None:
    X, Y = data()
    dense = AutoTobitRegressor(random_state=0, cv=2).fit(X, Y[:, 0])
    sparse = AutoTobitRegressor(random_state=0, cv=2).fit(csr_matrix(X), Y[:, 0])
    assert dense.predict(X).shape == (150,)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X), rtol=1e-6)
    holes = Y.copy()
    holes[::4, 1] = np.nan
    assert AutoTobitRegressor(random_state=0, cv=2).fit(X, holes).score(X, Y) > 0.2


def test_targets_bring_their_bounds_and_scoring_may_be_the_log() -> None:
    X, Y = data()
    targets = CensoredTargets.from_bounds(np.minimum(Y, 2.0), 0.0, 2.0)
    model = AutoTobitRegressor(scoring="log", random_state=0, cv=2).fit(X, targets)
    assert model.upper_.tolist() == [2.0] * 5
    assert model.members_["score"][0] == pytest.approx(model.score_log(X, targets), abs=0.3)


def test_a_task_at_its_bound_throughout_is_a_warning() -> None:
    X, Y = data()
    with pytest.warns(CensoringWarning, match="censored on the same side"):
        model = AutoTobitRegressor(random_state=0, cv=2, members=("stack",)).fit(
            X, np.column_stack([Y, np.zeros(len(X))])
        )
    assert np.abs(model.coef_[-1]).max() == pytest.approx(0.0, abs=1e-10)
    assert model.predict(X)[:, -1].max() < 0.1


@cache
def with_noise(noise: str) -> AutoTobitRegressor:
    model = AutoTobitRegressor(noise=noise, random_state=0, cv=2, members=("stack",))
    return model.fit(*data())


@pytest.mark.parametrize("noise", ["logistic", "student_t"])
def test_other_noise_is_met_by_the_recalibration(noise: str) -> None:
    X, Y = data()
    model, gaussian = with_noise(noise), with_noise("gaussian")
    assert model.score_log(X, Y) == pytest.approx(gaussian.score_log(X, Y), abs=0.1)
    assert (model.sigma_ < gaussian.sigma_).all()  # both families have a larger variance


def test_no_intercept_means_none() -> None:
    X, Y = data()
    model = AutoTobitRegressor(fit_intercept=False, random_state=0, cv=2).fit(X, Y)
    np.testing.assert_array_equal(model.intercept_, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"members": "stack"},
            r"must be 'auto' or some of \('stack', 'trees', 'deeper'\); got 'stack'",
        ),
        ({"members": ()}, r"members must be 'auto' or some of .*; got \(\)"),
        ({"members": ("stack", "forest")}, "members must be 'auto' or some of"),
        ({"members": 2}, "members must be 'auto' or some of .*; got 2"),
        ({"scoring": "auc"}, "scoring must be 'r2' or 'log'"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
        ({"noise": "cauchy"}, "noise must be one of .*; got 'cauchy'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AutoTobitRegressor(**settings).fit(*data())


def test_a_refit_forgets_and_a_clone_is_fresh() -> None:
    X, Y = data()
    model = clone(fitted())
    assert not hasattr(model, "layers_")
    model.set_params(cv=2).fit(X[:, :4], Y)
    assert model.set_params(cv=5).fit(X, Y).coef_.shape == (5, 8)
    np.testing.assert_array_equal(model.coef_, fitted().coef_)


def test_a_formula_is_remembered() -> None:
    X, Y = data()
    frame = pd.DataFrame(X, columns=[f"a{i}" for i in range(X.shape[1])])
    frame[["one", "two"]] = Y[:, :2]
    model = AutoTobitRegressor.from_formula("one + two ~ a0 + a1:a2", frame, cv=2, random_state=0)
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
    model = AutoTobitRegressor(cv=3, random_state=0).fit(X[:150], Y[:150])
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
    model = AutoTobitRegressor(members=("stack",), cv=2, random_state=0).fit(X, Y)
    heavy = [isinstance(_tails(of_task(model.noise_, task)), StudentT) for task in range(3)]
    assert all(heavy) if draw == "standard_t" else not any(heavy)
    gaussian = clone(model).set_params(noise="gaussian").fit(X, Y)
    assert model.score_log(X, Y) > gaussian.score_log(X, Y) + gain


def _tails(noise: Noise) -> Noise:
    return noise.base if isinstance(noise, TwoPiece) else noise


def test_the_noise_of_another_model_can_be_asked_for() -> None:
    X, Y = data()
    asked = NoiseByTask([StudentT(), *[Gaussian()] * (Y.shape[1] - 1)])
    model = AutoTobitRegressor(noise=asked, random_state=0, cv=2).fit(X, Y)
    assert model.noise_ is asked


def test_a_family_that_was_asked_for_stays() -> None:
    X, Y, _ = make_subspace(80, 5, 3, 1, random_state=0)
    asked = StudentT(df=7.0)
    model = AutoTobitRegressor(members=("stack",), cv=2, random_state=0, noise=asked).fit(X, Y)
    assert model.noise_ is asked


def test_many_rows_need_one_held_out_part_and_no_network_of_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("deeptobit.auto.folds", "deeptobit.auto.stack", "deeptobit.auto"):
        monkeypatch.setattr(f"{module}.MANY_ROWS", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 15))
    Y = np.maximum(X @ rng.normal(size=(15, 2)) + 4.0 * rng.normal(size=(1000, 2)), 0.0)
    model = AutoTobitRegressor(noise="gaussian", random_state=0).fit(X, Y)
    table = model.members_
    assert table["folds"].tolist() == [1] * 9 + [0, 0]  # no trees, no network
    assert table["result"].iloc[-1] == "given up: behind the stack with some of the rows"
    assert np.isnan(table["score"].iloc[-1])
    folds = AutoTobitRegressor(cv=5, members=("stack",), noise="gaussian", random_state=0)
    assert model.score(X, Y) == pytest.approx(folds.fit(X, Y).score(X, Y), abs=0.01)


def test_a_network_must_be_clearly_ahead_of_the_stack() -> None:
    """One outlier decides a mean of squares: a network that only follows it is not taken."""
    rng = np.random.default_rng(1)
    gain = np.append(rng.normal(-0.01, 0.05, 199), 8.0)
    half = np.zeros(200)
    stack = SimpleNamespace(row_scores=[half[:100], half[100:]])
    lucky = SimpleNamespace(row_scores=[gain[:100], gain[100:]])
    steady = SimpleNamespace(row_scores=[half[:100] + 0.03, gain[100:].clip(max=0.1) + 0.03])
    assert gain.mean() > 0.0
    assert not _is_better(cast(Any, lucky), cast(Any, stack), 1.0)
    assert _is_better(cast(Any, steady), cast(Any, stack), 1.0)
    abandoned = SimpleNamespace(row_scores=[half[:100] + 9.0])
    assert not _is_better(cast(Any, abandoned), cast(Any, stack), 1.0)
