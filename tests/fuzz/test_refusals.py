"""What the fuzzers were let loose on first: parts of files that do not fit together."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import MixedTobitRegressor, SubspaceNetworkRegressor, TobitRegressor
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.estimators.checkpoint import Checkpoint
from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state
from deeptobit.layer import Layer
from deeptobit.scale import Progress, RoundState
from fuzz import checkpoints
from tests.files.crafted import craft

X = np.column_stack([np.sin(np.arange(40.0)), np.cos(1.7 * np.arange(40.0))])
Y = np.clip(1.0 + X + 0.3 * np.sin(7.3 * np.arange(40.0))[:, None], 0.0, 2.0)


def fitted(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = state["model"]["fields"]["fitted"]
    return found


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lower_": np.full(2, 3.0)}, "its bounds are not in order"),
        ({"upper_": np.full(2, np.nan)}, "its bounds are not in order"),
        ({"n_features_in_": 0, "coef_": np.zeros((2, 0))}, "it has no features or no targets"),
    ],
)
def test_models_that_cannot_predict(changes: dict[str, Any], sentence: str) -> None:
    state = estimator_state(TobitRegressor(upper=2.0).fit(X, Y))
    fitted(state).update(changes)
    with pytest.raises(ModelFileError, match=sentence):
        estimator_from_state(state)


def test_scores_that_are_not_logarithms_of_tails() -> None:
    state = estimator_state(TobitRegressor(upper=2.0).fit(X, Y).calibrate_intervals(X, Y))
    scores = fitted(state)["_calibration"]["fields"]["scores"]["y0"]["fields"]
    scores["between"] = np.full(4, np.nan)
    with pytest.raises(ModelFileError, match="its calibration has scores below 0"):
        estimator_from_state(state)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("_effects", "own", 1e308), ("_people", "z", -1e200), ("_people", "tau", -1.0)],
)
def test_random_effects_out_of_range(part: str, name: str, value: float) -> None:
    visits = {"groups": np.tile(np.arange(10), 4), "time": np.repeat(np.arange(4.0), 10)}
    state = estimator_state(MixedTobitRegressor(upper=2.0).fit(X, Y, **visits))
    numbers = fitted(state)[part]["fields"]
    numbers[name] = np.full_like(numbers[name], value)
    with pytest.raises(ModelFileError, match="its random effects are out of range"):
        estimator_from_state(state)


def test_a_layer_without_dimensions() -> None:
    state = estimator_state(SubspaceNetworkRegressor(1, 2, upper=2.0).fit(X, Y))
    fitted(state)["layers_"]["items"][1]["fields"]["V"] = np.zeros(())
    with pytest.raises(ModelFileError, match="V is not an array of shape"):
        estimator_from_state(state)


def _with_now(change: Callable[[RoundState], RoundState]) -> Callable[[Progress], Progress]:
    def changed(progress: Progress) -> Progress:
        assert isinstance(progress.now, RoundState)
        return replace(progress, now=change(progress.now))

    return changed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_with_now(lambda now: replace(now, layer=_layer(3, 2, 1))), "U is not an array of shape"),
        (_with_now(lambda now: replace(now, layer=_layer(2, 9, 1))), "more directions than inputs"),
        (
            _with_now(lambda now: replace(now, moments=replace(now.moments, x=np.zeros(3)))),
            "x is not an array of shape",
        ),
        (
            _with_now(lambda now: replace(now, shift=now.shift._replace(X=np.zeros(7)))),
            "its moments have the wrong inputs",
        ),
    ],
)
def test_progress_of_other_sizes(
    tmp_path: Path, change: Callable[[Progress], Progress], sentence: str
) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(checkpoints.TARGET.seeds()["progress 1"])
    checkpoint = Checkpoint(path, checkpoints.FIT)
    checkpoint.write(change(checkpoint.read()))
    with pytest.raises(ModelFileError, match=sentence):
        checkpoint.read()


def _layer(n_tasks: int, n_directions: int, rank: int) -> Layer:
    shapes = (n_tasks, rank), (n_directions, rank), (n_tasks,), (n_tasks,)
    return Layer(*(np.zeros(shape) for shape in shapes))


def test_half_a_character_in_a_message_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    Checkpoint(path, checkpoints.FIT | {"\ud800": "\ud801"}).write(Progress())
    with pytest.raises(ModelFileError, match=r"another fit: \\ud800 was \\ud801, and is None now"):
        Checkpoint(path, checkpoints.FIT).read()
    craft(path, {"kind": "test", "arrays": [], "state": {"$\ud800": 1}})
    with pytest.raises(ModelFileError, match=r"it contains an unknown type \('\$\\ud800'\)"):
        read_state(path)
