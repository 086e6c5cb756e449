"""Checkpoints that somebody made up: the parts of an online solver must fit together."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.estimators.checkpoint import Checkpoint
from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state, write_state
from deeptobit.online import OnlineSettings, OnlineSolver
from deeptobit.scale import OnlineState, Progress, Seen
from tests.estimators.problems import censored
from tests.estimators.saved import assert_same

X, Y = censored(n_samples=700, n_features=4, n_tasks=3)
FIT = {"features": '["a", "b", "c", "d"]', "targets": '["u", "v", "w"]'}


@cache
def progress(**settings: Any) -> Progress:
    solver = OnlineSolver(OnlineSettings(2, **settings), 4, 3)
    solver.learn(X, np.where(Y > 0.0, Y, -np.inf), Y)
    return Progress(now=OnlineState(solver, Seen.nothing(4, 3), n_read=700))


@pytest.mark.parametrize("settings", [{}, {"batch_size": 8}], ids=str)
def test_a_solver_comes_back_whole(settings: dict[str, Any], tmp_path: Path) -> None:
    """An attribute that is new in a class must be added to what is saved of it."""
    checkpoint = Checkpoint(tmp_path / "a", FIT)
    checkpoint.write(progress(**settings))
    found = checkpoint.read()
    assert_same(progress(**settings), found)


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        ((), "n_features", 3),
        ((), "n_tasks", 4),
        ((), "_n_processed", -1),
        (("_learner", "now"), "V", np.zeros((2, 3))),
        (("_learner", "now"), "V", np.asfortranarray(np.zeros((2, 4)))),
        (("_learner", "mean"), "Ut", np.zeros((2, 3), dtype=np.int64)),
        (("_learner", "null"), "curvature", np.zeros((2, 3))),
        (("_learner", "null"), "scored", {"is": "tuple", "items": [np.zeros(3), np.zeros(2)]}),
        (("_learner", "metric"), "moments", np.zeros(5)),
        (("_learner", "metric"), "inverse", np.zeros((4, 3))),
        (("_learner", "validation"), "nll_by_length", np.zeros((2, 3))),
        (("_learner", "settings"), "rank", 3),
        (("_learner", "settings"), "batch_size", 0),
        (("_learner",), "inverse", np.zeros((1, 1))),
        (("_learner",), "now", None),
        (("_learner", "settings"), "sigma", np.ones(2)),
        (("_units",), "target_scale", np.ones(1)),
        ((), "_units", None),
        (("_buffer",), "n_rows", 511),
        (("_buffer",), "n_rows", 10**9),
        (("settings",), "sigma", np.ones(4)),
        (("settings",), "fit_intercept", "fast"),
        ((), "_learner", {"is": "Gaussian", "fields": {}}),
        ((), "_buffer", []),
    ],
)
def test_compiled_code_never_sees_arrays_of_other_sizes(
    where: tuple[str, ...], name: str, wrong: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    Checkpoint(path, FIT).write(progress())
    _, state = read_state(path)
    part = state["progress"]["fields"]["now"]["fields"]["solver"]["fields"]
    for step in where:
        part = part[step]["fields"]
    assert name in part
    part[name] = wrong
    write_state(path, "checkpoint", state)
    with pytest.raises(ModelFileError):
        Checkpoint(path, FIT).read()


def test_a_solver_that_lacks_an_attribute_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    Checkpoint(path, FIT).write(progress())
    _, state = read_state(path)
    del state["progress"]["fields"]["now"]["fields"]["solver"]["fields"]["_loss"]
    write_state(path, "checkpoint", state)
    with pytest.raises(ModelFileError, match="its solver is not complete"):
        Checkpoint(path, FIT).read()
