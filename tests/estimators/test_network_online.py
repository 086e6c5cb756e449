"""The network's online solver, and learning from a stream with partial_fit."""

import pickle
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from deeptobit import CensoredTargets, SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.network import NetworkStream, latents
from deeptobit.online.adaptive import AdaptiveLearner
from tests.estimators.problems import assert_close


def data(n_samples: int = 1500) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(
        n_samples,
        4,
        6,
        2,
        n_layers=2,
        skip_connection=True,
        latent_sd=3.0,
        sigma=0.5,
        hidden_sigma=0.1,
        random_state=0,
    )
    return X, Y


def online(**options: Any) -> SubspaceNetworkRegressor:
    defaults: dict[str, Any] = {"rank": 2, "n_layers": 2, "solver": "online"}
    return SubspaceNetworkRegressor(**(defaults | options))


def streamed(edges: list[int], **options: Any) -> SubspaceNetworkRegressor:
    X, Y = data()
    model = online(**options)
    for first, last in pairwise(edges):
        model.partial_fit(X[first:last], Y[first:last])
    return model


def assert_same(one: SubspaceNetworkRegressor, two: SubspaceNetworkRegressor) -> None:
    for some, other in zip(one.layers_, two.layers_, strict=True):
        np.testing.assert_array_equal(some.coef, other.coef)
        np.testing.assert_array_equal(some.intercept, other.intercept)
        np.testing.assert_array_equal(some.sigma, other.sigma)


def test_one_pass_comes_close_to_the_optimum() -> None:
    X, Y = data(3000)
    train, test = slice(0, 2000), slice(2000, None)
    one_pass = online().fit(X[train], Y[train])
    optimum = online(solver="batch", joint_tuning=False).fit(X[train], Y[train])
    assert one_pass.score(X[test], Y[test]) > optimum.score(X[test], Y[test]) - 0.03
    assert one_pass.history_["solver"] == "online"
    assert one_pass.history_["tuning"]["kept"] is False
    assert len(one_pass.history_["layers"]) == 2


def test_tuning_after_one_pass_gains() -> None:
    X, Y = data(600)
    plain, tuned = online().fit(X, Y), online(joint_tuning=True).fit(X, Y)
    assert tuned.history_["tuning"]["kept"] is True
    assert tuned.score_log(X, Y) > plain.score_log(X, Y)
    assert len(tuned.history_["layers"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"skip_connection": False},
        {"sigma": "calibrate"},
        {"sigma": 0.7},
        {"fit_intercept": False},
        {"batch_size": 32, "n_passes": 2},
        {"noise": "logistic"},
        {"early_stopping": True, "random_state": 0},
    ],
    ids=str,
)
def test_every_option_fits(options: dict[str, Any]) -> None:
    X, Y = data(700)
    model = online(**options).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, Y) > -0.1
    *_, last = model.staged_predict(X)
    assert_close(last, model.predict(X), 1e-12)
    if options.get("sigma") == 0.7:
        assert_close(model.sigma_, np.full(6, 0.7), 1e-12)


def test_sparse_features_are_dense_features() -> None:
    X, Y = data(700)
    X = np.where(X > 0.0, X, 0.0)
    dense, sparse = online().fit(X, Y), online().fit(csr_matrix(X), Y)
    assert_close(sparse.predict(csr_matrix(X)), dense.predict(X), 1e-6)


@pytest.mark.parametrize("batch_size", [1, 50])
@pytest.mark.parametrize(
    "edges", [[0, 500, 1000, 1500], [0, 3, 511, 515, 1037, 1500]], ids=["multiples", "any"]
)
def test_chunks_teach_what_one_call_does(batch_size: int, edges: list[int]) -> None:
    whole = streamed([0, 1500], batch_size=batch_size)
    chunks = streamed(edges, batch_size=batch_size)
    assert_same(chunks, whole)
    assert chunks.n_iter_ == whole.n_iter_ == 1500
    assert chunks.history_["solver"] == "online"


def test_a_network_pickled_mid_stream_goes_on() -> None:
    X, Y = data()
    model = streamed([0, 700])
    copy = pickle.loads(pickle.dumps(model))
    assert_same(copy, model)
    assert_same(copy.partial_fit(X[700:], Y[700:]), model.partial_fit(X[700:], Y[700:]))
    assert not hasattr(clone(model), "_stream")


def test_memory_does_not_grow_with_the_stream() -> None:
    X, Y = data(512)
    model, sizes = online(batch_size=64), []
    for n_times in (6, 12):
        for _ in range(n_times):
            model.partial_fit(X, Y)
        model.history_.pop("layers")
        stream = model._stream
        assert isinstance(stream, NetworkStream)
        sizes.append(len(pickle.dumps(model)) - len(pickle.dumps(stream.histories)))
    assert sizes[1] <= 1.1 * sizes[0]


def test_a_stream_predicts_better_with_more_rows() -> None:
    X, Y = data()
    few, many = streamed([0, 60], n_layers=1), streamed([0, 1500], n_layers=1)
    assert many.score_log(X, Y) > few.score_log(X, Y) + 0.05


def test_the_last_layer_of_a_stream_is_not_worse_than_the_first() -> None:
    X, Y = data()
    targets, model = CensoredTargets.from_bounds(Y, 0.0), streamed([0, 1500])
    scores = latents(model.layers_, X, model.lower_, model.upper_)
    first, last = (
        evaluate(Gaussian(), targets.low, targets.high, latent, layer.sigma).nll.mean()
        for layer, latent in zip(model.layers_, scores, strict=True)
    )
    assert last < first + 0.02


def test_a_stream_predicts_by_its_last_layer() -> None:
    X, _ = data()
    model = streamed([0, 1500])
    *_, last = latents(model.layers_, X, np.zeros(6), np.full(6, np.inf))
    assert_close(model.predict(X, kind="latent"), last, 1e-12)


def test_fit_forgets_a_stream() -> None:
    X, Y = data(700)
    fitted = online(solver="batch", joint_tuning=False).fit(X, Y)
    model = streamed([0, 700], solver="batch", joint_tuning=False).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert_same(model.partial_fit(X, Y), fitted.partial_fit(X, Y))


def test_weights_and_row_limits_reach_the_stream() -> None:
    X, Y = data(600)
    limits = np.random.default_rng(0).uniform(0.0, 1.0, Y.shape)
    plain = online().partial_fit(X, Y)
    weighted = online().partial_fit(X, Y, sample_weight=np.linspace(0.1, 2.0, 600))
    limited = online().partial_fit(X, np.maximum(Y, limits), lower=limits)
    assert (weighted.coef_ != plain.coef_).any()
    assert (limited.coef_ != plain.coef_).any()
    np.testing.assert_array_equal(limited.lower_, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": "calibrate"}, "sigma='calibrate' needs all rows at once"),
        ({"feature_sparsity": 0.5}, "partial_fit supports only penalty='ridge'"),
        ({"n_layers": 0}, "n_layers must be a whole number, at least 1"),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1; got 0"),
        ({"n_passes": 1.5}, "n_passes must be a whole number, at least 1; got 1.5"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None; got 0; -1 takes"),
    ],
    ids=str,
)
def test_a_stream_refuses_what_it_cannot_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        online(**options).partial_fit(*data(100))


def test_a_later_chunk_must_have_the_same_features_and_targets() -> None:
    X, Y = data(300)
    model = online().partial_fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(ValueError, match=r"y has 5 target\(s\), but the model was fitted to 6"):
        model.partial_fit(X, Y[:, :5])
    np.testing.assert_array_equal(model.predict(X), before)
    assert_same(model.partial_fit(X, Y), online().partial_fit(X, Y).partial_fit(X, Y))


def test_a_fitted_network_goes_on_from_there() -> None:
    X, Y = data(1500)
    held_out, new = slice(1000, None), slice(400, 1000)
    model = online(solver="batch").fit(X[:400], Y[:400])
    before, layers = model.score_log(X[held_out], Y[held_out]), model.layers_
    model.partial_fit(X[new], Y[new])
    assert model.score_log(X[held_out], Y[held_out]) > before
    assert model.layers_[0] is layers[0]
    assert model.n_iter_ == 1000
    assert model.fit(X[:400], Y[:400]).score_log(X[held_out], Y[held_out]) == before


def test_going_on_in_pieces_is_going_on_at_once() -> None:
    X, Y = data(1500)
    once = online(solver="batch").fit(X[:300], Y[:300])
    pieces = pickle.loads(pickle.dumps(once))
    once.partial_fit(X[300:1300], Y[300:1300])
    for start in range(300, 1300, 130):
        pieces.partial_fit(X[start : min(start + 130, 1300)], Y[start : min(start + 130, 1300)])
        pieces = pickle.loads(pickle.dumps(pieces))
    assert_close(pieces.predict(X), once.predict(X), 1e-9)


def test_without_intercepts_no_layer_has_any() -> None:
    X, Y = data(900)
    model = online(n_layers=3, fit_intercept=False, prune_layers=False).fit(X + 0.5, Y)
    assert [float(np.abs(layer.intercept).max()) for layer in model.layers_] == [0.0] * 3


@pytest.mark.parametrize("solver", ["batch", "online", "stream"])
def test_layers_that_do_not_pay_are_kept_if_asked_for(solver: str) -> None:
    X, Y, _ = make_subspace(800, 8, 6, 2, sigma=1.0, random_state=1)  # one layer is the truth
    settings: dict[str, Any] = {"joint_tuning": False, "solver": "batch"}
    if solver != "batch":
        settings["solver"] = "online"
    way = "partial_fit" if solver == "stream" else "fit"
    pruned, whole = (
        getattr(SubspaceNetworkRegressor(2, 3, prune_layers=prune, **settings), way)(X, Y)
        for prune in (True, False)
    )
    depth = pruned.history_["paying_depth"]
    assert depth == whole.history_["paying_depth"] < 3
    assert whole.undone_layers_ == ()
    assert len(pruned.undone_layers_) == 3 - depth
    for undone, kept in zip(pruned.undone_layers_, whole.layers_[depth:], strict=True):
        np.testing.assert_array_equal(undone.U, kept.U)
        np.testing.assert_array_equal(undone.V, kept.V)
    *_, last = whole.staged_predict(X)
    assert (last != pruned.predict(X)).any()


def test_rows_that_were_left_out_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(900)
    sound = AdaptiveLearner._is_sound
    monkeypatch.setattr(
        AdaptiveLearner, "_is_sound", lambda self: sound(self) and not 512 <= self.n < 600
    )
    with pytest.warns(ConvergenceWarning, match="layer 1 halved .* left out 1 block"):
        model = SubspaceTobitRegressor(2, solver="online").fit(X, Y)
    assert model.history_["n_halvings"] >= 4


def test_halved_steps_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(900)
    sound, looks = AdaptiveLearner._is_sound, count()
    monkeypatch.setattr(
        AdaptiveLearner, "_is_sound", lambda self: sound(self) and next(looks) not in (2, 3)
    )
    with pytest.warns(ConvergenceWarning, match=r"layer 1 halved 2 step\(s\) .* left out 0 block"):
        model = SubspaceTobitRegressor(2, solver="online").fit(X, Y)
    assert (model.history_["n_halvings"], model.history_["n_blocks_left_out"]) == (2, 0)
