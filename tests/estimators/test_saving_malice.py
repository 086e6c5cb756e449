"""States that somebody made up: an error of one type, or a model that works."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkCV, SubspaceNetworkRegressor, TobitRegressor, load
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.exceptions import ModelFileError
from deeptobit.files import write_state
from deeptobit.files.values import unpack
from tests.estimators.problems import censored

X, Y = censored(n_samples=60, n_features=4, n_tasks=2)
TOBIT = estimator_state(TobitRegressor(upper=3.0).fit(X, Y).calibrate_intervals(X, Y))
NETWORK = estimator_state(SubspaceNetworkRegressor(1, 2, upper=3.0).fit(X, Y))
SEARCH = estimator_state(
    SubspaceNetworkCV(
        ranks=[1],
        alphas=[0.1],
        cv=2,
        max_layers=1,
        upper=3.0,
        random_state=np.random.RandomState(0),
    ).fit(X, Y)
)


def fitted(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = state["model"]["fields"]["fitted"]
    return found


def test_the_states_are_sound_before_anything_is_done_to_them() -> None:
    for state in (TOBIT, NETWORK, SEARCH):
        estimator_from_state(deepcopy(state)).predict(X)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("n_features_in_", 5),
        ("n_features_in_", -4),
        ("n_features_in_", "4"),
        ("n_features_in_", 10**15),
        ("target_names_", ["y0"]),
        ("target_names_", "y0"),
        ("coef_", np.zeros((2, 3))),
        ("coef_", np.zeros((2, 4), dtype=np.int64)),
        ("coef_", [[0.0] * 4] * 2),
        ("coef_", None),
        ("intercept_", np.zeros((2, 1))),
        ("sigma_", np.zeros(3)),
        ("sigma_", np.array([1.0, np.nan])),
        ("sigma_", np.array([1.0, -1.0])),
        ("coef_", np.full((2, 4), np.inf)),
        ("intercept_", np.array([0.0, np.nan])),
        ("lower_", np.zeros(1)),
        ("upper_", np.array(["a", "b"])),
        ("feature_scale_", np.ones(2)),
        ("log_likelihood_", np.ones(4)),
        ("_one_dimensional", True),
        ("_one_dimensional", None),
        ("feature_names_in_", ["a", "b", "c", "d"]),
        ("feature_names_in_", None),
        ("feature_names_in_", {"is": "objects", "items": ["a", "b", "c"]}),
        ("feature_names_in_", {"is": "objects", "items": ["a", "b", "c", 4]}),
        ("_calibration", {}),
        ("_calibration", {"is": "IntervalCalibration", "fields": {"scores": {}}}),
        ("_stream", {}),
        ("_rows_behind", [1.0, np.ones(4)]),
        ("formula_", "y ~ x"),
        ("predict", 1),
        ("__class__", "str"),
        ("not a name", 1),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(name: str, wrong: Any) -> None:
    state = deepcopy(TOBIT)
    fitted(state)[name] = wrong
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


@pytest.mark.parametrize(
    "name", ["layers_", "U_", "V_", "rank_", "n_layers_", "target_names_", "lower_", "intercept_"]
)
def test_a_network_without_a_part_is_refused(name: str) -> None:
    state = deepcopy(NETWORK)
    del fitted(state)[name]
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


def test_layers_must_take_what_lies_below_them() -> None:
    for change in (lambda layers: layers.reverse(), lambda layers: layers.pop(), list.clear):
        state = deepcopy(NETWORK)
        change(fitted(state)["layers_"]["items"])
        with pytest.raises(ModelFileError):
            estimator_from_state(state)


def test_the_best_network_must_be_one_of_the_same_data() -> None:
    other = estimator_state(SubspaceNetworkRegressor(1, 1).fit(X[:, 1:], Y))
    for best in (other["model"], TOBIT["model"], None):
        state = deepcopy(SEARCH)
        fitted(state)["best_estimator_"] = best
        with pytest.raises(ModelFileError):
            estimator_from_state(state)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("pos", 625), ("pos", -1), ("pos", 1.0), ("key", np.zeros(3, np.uint32))],
)
def test_random_numbers_are_not_read_beyond_their_key(name: str, wrong: Any) -> None:
    state = deepcopy(SEARCH)
    state["model"]["fields"]["params"]["random_state"]["fields"]["state"][name] = wrong
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


@pytest.mark.parametrize(
    "value",
    [
        {"is": "os.system", "fields": {"command": "true"}},
        {"is": "Popen", "fields": {"args": ["true"]}},
        {"is": "StudentT", "fields": {"df": 1.0}},
        {"is": "StudentT", "fields": {"df": "4"}},
        {"is": "StudentT", "fields": {"df": 4.0, "name": "x"}},
        {"is": "StudentT"},
        {"is": None},
        {"is": np.zeros(3)},
        {"is": "dict", "items": [[[1], 2]]},
        {"is": "dict", "items": [1]},
        {"is": "tuple", "items": 3},
        {"is": "objects"},
        {"is": "scalar", "value": np.zeros(3)},
        {"is": "KFold", "fields": {"n_splits": 0, "shuffle": False, "random_state": None}},
        {"is": "NetworkLayer", "fields": {}},
        "laplace",
        None,
    ],
)
def test_only_known_classes_are_made(value: Any) -> None:
    state = deepcopy(TOBIT)
    state["model"]["fields"]["params"]["noise"] = value
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


@pytest.mark.parametrize("name", ["tuple", "objects"])
def test_an_array_is_not_taken_apart_into_many_objects(name: str) -> None:
    with pytest.raises(ModelFileError, match=r"items of its .* are no list"):
        unpack({"is": name, "items": np.zeros(3, np.uint8)}, {})


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"model": {"is": "Gaussian", "fields": {}}},
        {"model": {"is": "TobitRegressor", "fields": {}}},
        {"model": {"is": "TobitRegressor", "fields": {"params": {}}}},
        {
            "model": {"is": "TobitRegressor", "fields": {"params": {"x": 1}, "fitted": {}}},
        },
        {"model": [1]},
    ],
)
def test_what_is_no_model_is_refused_with_the_name_of_the_file(
    state: dict[str, Any], tmp_path: Path
) -> None:
    write_state(tmp_path / "a.model", "model", state)
    with pytest.raises(ModelFileError, match=r"a\.model cannot be loaded: "):
        load(tmp_path / "a.model")


def places(state: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a state."""
    keys: Any = state if isinstance(state, dict) else ()
    keys = range(len(state)) if isinstance(state, list) else keys
    return [path, *(found for key in keys for found in places(state[key], (*path, key)))]


@pytest.mark.parametrize("state", [TOBIT, NETWORK, SEARCH], ids=["tobit", "network", "search"])
def test_whatever_stands_wherever_there_is_one_error_or_a_model(state: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    junk: list[Any] = [
        None,
        -1,
        10**30,
        0.5,
        np.nan,
        "x",
        [],
        {},
        np.zeros((2, 7)),
        np.zeros(2, np.int64),
    ]
    everywhere = places(state)[1:]
    refused = 0
    for _ in range(250):
        changed = deepcopy(state)
        *path, key = everywhere[int(rng.integers(len(everywhere)))]
        parent = changed
        for step in path:
            parent = parent[step]
        parent[key] = deepcopy(junk[int(rng.integers(len(junk)))])
        try:
            estimator_from_state(changed)
        except ModelFileError:
            refused += 1
    assert refused > 50
