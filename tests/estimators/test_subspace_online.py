"""The subspace Tobit as a stream: ``partial_fit``, passes, the paper's own recipe."""

import pickle
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, datasets
from deeptobit.arrays import FloatArray
from deeptobit.metrics import anmse, principal_angles

Data = tuple[FloatArray, FloatArray, Any]


@pytest.fixture(scope="module")
def data() -> Data:
    return datasets.make_subspace(2500, 30, 20, 3, sigma=3.0, random_state=0)


def online(**settings: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(rank=3, solver="online", **settings)


def assert_same(a: SubspaceTobitRegressor, b: SubspaceTobitRegressor) -> None:
    for name in ("U_", "V_", "intercept_", "sigma_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("cuts", [[1], [700, 701, 1900], list(range(100, 2500, 100))])
def test_learning_in_pieces_is_learning_the_whole(data: Data, cuts: list[int]) -> None:
    X, Y, _ = data
    pieces = SubspaceTobitRegressor(rank=3)
    for x, y in zip(np.split(X, cuts), np.split(Y, cuts), strict=True):
        pieces.partial_fit(x, y)
    assert_same(pieces, SubspaceTobitRegressor(rank=3).partial_fit(X, Y))
    assert_same(pieces, online().fit(X, Y))


def test_a_model_pickled_mid_stream_goes_on_as_if_nothing_had_happened(data: Data) -> None:
    X, Y, _ = data
    model = SubspaceTobitRegressor(rank=3).partial_fit(X[:1000], Y[:1000])
    copy = pickle.loads(pickle.dumps(model))
    assert_same(model.partial_fit(X[1000:], Y[1000:]), copy.partial_fit(X[1000:], Y[1000:]))


def test_the_state_does_not_grow_with_the_stream(data: Data) -> None:
    X, Y, _ = data
    model, sizes = SubspaceTobitRegressor(rank=3), []
    for _ in range(4):
        model.partial_fit(X[:2432], Y[:2432])
        sizes.append(len(pickle.dumps(model)))
    assert sizes[-1] < 1.2 * sizes[0]


@pytest.mark.parametrize("batch_size", [1, 64])
def test_one_pass_comes_close_to_the_truth(data: Data, batch_size: int) -> None:
    X, Y, truth = data
    model = online(batch_size=batch_size).fit(X[:2000], Y[:2000])
    ours = anmse(Y[2000:], model.predict(X[2000:], kind="clip"))
    assert ours < 1.10 * anmse(Y[2000:], truth.predict(X[2000:]))
    assert np.cos(principal_angles(truth.U, model.U_).max()) > 0.99
    np.testing.assert_allclose(model.sigma_, 3.0, rtol=0.25)


def test_history_says_what_was_chosen_and_how_it_went(data: Data) -> None:
    X, Y, _ = data
    model = online().fit(X, Y)
    assert model.history_["solver"] == "online"
    assert model.history_["reason"]
    assert len(model.history_["course"]) > 10


def test_large_data_go_to_the_online_solver(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deeptobit.estimators.inputs.BATCH_ENTRIES", 100)
    X, Y, _ = data
    model = SubspaceTobitRegressor(rank=3).fit(X, Y)
    assert model.history_["solver"] == "online"
    assert "large" in model.history_["reason"]


def test_progress_is_shown_when_asked_for(data: Data, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y, _ = data
    online(verbose=1, n_passes=2).fit(X, Y)
    assert "5,000 of 5,000 rows (100%)" in capsys.readouterr().err


def test_missing_and_bounded_entries_weights_and_names(data: Data) -> None:
    X, Y, _ = data
    gaps = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, np.minimum(Y, 20.0))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    model = online(upper=20.0).fit(X.astype(np.float32), gaps, sample_weight=weight)
    assert np.isfinite(model.coef_).all()
    prediction = model.predict(X)
    assert ((prediction >= 0.0) & (prediction <= 20.0)).all()
    assert model.score(X, gaps) > 0.5
