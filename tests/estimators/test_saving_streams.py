"""``partial_fit`` goes on after loading as if nothing had happened."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.estimators.saving import CLASSES
from deeptobit.exceptions import ModelFileError
from deeptobit.likelihood import StudentT
from deeptobit.online import OnlineSettings
from tests.estimators.problems import censored
from tests.estimators.saved import assert_same, round_trip

X, Y = censored(n_samples=1300, n_features=4, n_tasks=3)
LAYER, NETWORK = SubspaceTobitRegressor, SubspaceNetworkRegressor


def name_of(model: Any) -> str:
    """The same in every process: without addresses."""
    return re.sub(r" at 0x\w+|\s+", "", str(model))


def assert_goes_on_alike(model: Any, folder: Path, cuts: tuple[int, ...]) -> None:
    """Learn in pieces, one model straight on and the other through a file before each piece."""
    again = round_trip(model, folder)
    for start, stop in pairwise(cuts):
        model.partial_fit(X[start:stop], Y[start:stop])
        again.partial_fit(X[start:stop], Y[start:stop])
        assert_same(model, again)
        again = round_trip(again, folder)
        assert_same(model, again)


@pytest.mark.parametrize(
    "model",
    [
        LAYER(2, upper=3.0),
        LAYER(2, upper=3.0, batch_size=8, alpha=0.01),
        LAYER(2, upper=3.0, step_size=0.001),
        LAYER(2, upper=3.0, noise=StudentT(5), sigma=1.0, averaging=False),
        LAYER(2, upper=3.0, step_size=0.01, sigma=1.0, standardize=False, random_state=0),
        NETWORK(2, 2, upper=3.0),
        NETWORK(2, 2, upper=3.0, skip_connection=False, random_state=np.random.RandomState(0)),
    ],
    ids=name_of,
)
def test_a_stream_goes_on(model: Any, tmp_path: Path) -> None:
    model.partial_fit(X[:1], Y[:1])  # with a seed that is drawn now, and kept
    assert_goes_on_alike(model, tmp_path, (1, 100, 600, 601, 1300))


@pytest.mark.parametrize(
    "model",
    [
        LAYER(2, upper=3.0),
        LAYER(2, upper=3.0, solver="online"),
        LAYER(2, upper=3.0, alpha=0.3, feature_sparsity=0.9),
        NETWORK(2, 1, upper=3.0),
        NETWORK(2, 2, upper=3.0, joint_tuning=False),
        NETWORK(2, 2, upper=3.0, skip_connection=False),
    ],
    ids=name_of,
)
def test_a_fitted_model_goes_on(model: Any, tmp_path: Path) -> None:
    model.fit(X[:150], Y[:150])
    assert_goes_on_alike(model, tmp_path, (150, 151, 250, 900))


def stream_of(state: dict[str, Any]) -> dict[str, Any]:
    """The packed fields of ``_stream``."""
    found: dict[str, Any] = state["model"]["fields"]["fitted"]["_stream"]["fields"]
    return found


def fields(packed: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        packed = packed[name]["fields"]
    return packed


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        ((), "n_features", 3),
        ((), "n_tasks", 4),
        ((), "_block_rows", 0),
        ((), "_n_processed", -1),
        (("_learner", "now"), "V", np.zeros((2, 3))),
        (("_learner", "now"), "V", np.asfortranarray(np.zeros((2, 4)))),
        (("_learner", "mean"), "Ut", np.zeros((2, 3), dtype=np.int64)),
        (("_learner", "null"), "curvature", np.zeros((2, 3))),
        (("_learner", "null"), "scored", {"is": "tuple", "items": [np.zeros(3), np.zeros(2)]}),
        (("_learner", "metric"), "moments", np.zeros(5)),
        (("_learner", "metric"), "inverse", np.zeros((4, 3))),
        (("_learner", "evidence"), "race", np.zeros((3, 3))),
        (("_learner", "settings"), "rank", 3),
        (("_learner", "settings"), "batch_size", 0),
        (("_learner",), "inverse", np.zeros((1, 1))),
        (("_learner",), "now", None),
        (("_learner",), "sigma", np.ones(2)),
        (("_units",), "target_scale", np.ones(1)),
        (("_pending",), "n_rows", 511),
        (("_pending",), "n_rows", 10**9),
        (("settings",), "sigma", np.ones(4)),
        (("settings",), "step_size", "fast"),
        ((), "_learner", {"is": "Gaussian", "fields": {}}),
        ((), "_pending", []),
    ],
)
def test_compiled_code_never_sees_arrays_of_other_sizes(
    where: tuple[str, ...], name: str, wrong: Any
) -> None:
    state = estimator_state(LAYER(2, upper=3.0).partial_fit(X[:700], Y[:700]))
    estimator_from_state(state)
    part = fields(stream_of(state), *where)
    assert name in part
    part[name] = wrong
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_solvers", []),
        ("learned_layers", {"is": "tuple", "items": [None, None]}),
        ("_losses", np.zeros(1)),
        ("_bounds", {"is": "tuple", "items": [np.zeros(3), np.zeros(2)]}),
        ("_segment", 0),
        ("_skip_connection", False),
    ],
)
def test_layers_of_a_stream_belong_together(name: str, wrong: Any) -> None:
    state = estimator_state(NETWORK(2, 2, upper=3.0).partial_fit(X[:700], Y[:700]))
    stream_of(state)[name] = wrong
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


def test_a_stream_of_another_model_is_refused() -> None:
    model = NETWORK(2, 2, upper=3.0).fit(X[:100], Y[:100]).partial_fit(X[:10], Y[:10])
    other = LAYER(2, upper=3.0).fit(X[:100, 1:], Y[:100]).partial_fit(X[:10, 1:], Y[:10])
    model.__dict__["_stream"] = other._stream
    with pytest.raises(ValueError, match="could not be loaded again"):
        estimator_state(model)


def test_nothing_of_a_stream_is_forgotten() -> None:
    """An attribute that is new in a class must be added to what is saved of it."""
    layer = LAYER(2, upper=3.0).partial_fit(X[:10], Y[:10])
    network = NETWORK(2, 2, upper=3.0).partial_fit(X[:10], Y[:10])
    fitted = NETWORK(2, 2, upper=3.0).fit(X[:100], Y[:100]).partial_fit(X[:10], Y[:10])
    last = vars(fitted._stream)["_last"]
    for stream in (layer._stream, network._stream, fitted._stream, last):
        assert CLASSES[type(stream).__name__].take(stream) == vars(stream)


def test_settings_are_checked_by_their_own_class() -> None:
    settings = OnlineSettings(2, sigma=np.ones(3), noise=StudentT(5))
    saved = CLASSES["OnlineSettings"]
    assert_same(saved.make(saved.take(settings)), settings)
    with pytest.raises(ValueError, match="exact_sketch needs"):
        saved.make(saved.take(replace(settings)) | {"exact_sketch": True})
