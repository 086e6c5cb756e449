"""Ctrl-C: a fit stops at once and leaves nothing behind; and the line that says what is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.datasets import make_subspace
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit

MODELS = [
    TobitRegressor(),
    SubspaceTobitRegressor(3, solver="batch"),
    SubspaceTobitRegressor(3, solver="online"),
    SubspaceNetworkRegressor(3, 2),
    SubspaceNetworkRegressor(3, 2, early_stopping=True, random_state=0),
    SubspaceNetworkCV(ranks=[1], alphas=[0.1], cv=2, random_state=0),
    AutoTobitRegressor(cv=2, random_state=0),
    MixedTobitRegressor(random_state=0),
]
STEPS: Any = {"alpha": 0.0, "step_size_V": 0.01, "step_size_U": 0.01, "sigma": 1.0}
SILENT = [PublishedSubspaceTobit(1, **STEPS), PublishedSubspaceNetwork(1, n_layers=2, **STEPS)]
SHOWN = pytest.mark.parametrize("model", MODELS, ids=repr)
ALL = pytest.mark.parametrize("model", [*MODELS, *SILENT], ids=repr)
SEARCH = """
from deeptobit import SubspaceNetworkCV
from deeptobit.datasets import make_subspace
X, Y, _ = make_subspace(3000, 60, 20, 5, random_state=0)
model = SubspaceNetworkCV(n_jobs=2)
print("ready", flush=True)
try:
    model.fit(X, Y)
except KeyboardInterrupt:
    print(sorted(vars(model)) == sorted(model.get_params()), flush=True)
"""


def data(n_samples: int = 60) -> tuple[Any, Any]:
    X, Y, _ = make_subspace(n_samples, 4, 3, 1, random_state=0)
    return X, Y


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard even where the tests run in the background, whose shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def ctrl_c_when(monkeypatch: pytest.MonkeyPatch, called: str) -> Iterator[None]:
    """The user presses Ctrl-C when a function is called."""

    def pressed(*args: Any, **others: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(called, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield


def watch_group(group: int, seconds: float) -> None:
    """Wait; raises as soon as no process of the group is left."""
    for _ in range(round(seconds / 0.05)):
        os.killpg(group, 0)
        sleep(0.05)


@ALL
def test_an_interrupted_fit_leaves_the_model_as_it_was(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = data()
    model = clone(model)
    last = "deeptobit.estimators.prediction.PredictiveRegressor._store_targets"
    with ctrl_c_when(monkeypatch, last):
        model.fit(X, Y)
    assert sorted(vars(model)) == sorted(model.get_params())
    before = model.fit(X, Y).predict(X)
    with ctrl_c_when(monkeypatch, last):
        model.fit(X[:, :2], Y[:, :1])
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    X, Y = data()
    model = TobitRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="below"):
        model.fit(X[:, :2], Y - 100.0)
    assert model.predict(X).shape == Y.shape


def test_an_interrupted_partial_fit_goes_on_from_the_model_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, Y = data(200)
    model = SubspaceTobitRegressor(1).partial_fit(X[:100], Y[:100])
    before = model.predict(X)
    with ctrl_c_when(monkeypatch, "deeptobit.online.OnlineSolver.learn"):
        model.partial_fit(X[100:], Y[100:])
    np.testing.assert_array_equal(model.predict(X), before)
    assert np.isfinite(model.partial_fit(X[100:], Y[100:]).predict(X)).all()


@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no SIGINT for a group of processes"
)
def test_ctrl_c_ends_the_workers_of_a_search(tmp_path: Path) -> None:
    folders = dict.fromkeys(("TMPDIR", "JOBLIB_TEMP_FOLDER"), str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SEARCH],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | folders,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.0)  # while workers start, joblib turns Ctrl-C into an error of its own
        started = perf_counter()
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "True\n"
        assert perf_counter() - started < 1.0
    with pytest.raises(ProcessLookupError):
        watch_group(process.pid, seconds=5.0)
    assert not list(tmp_path.iterdir())


@SHOWN
@pytest.mark.parametrize("verbose", [0, 1])
def test_one_line_moves_and_its_last_text_stays(
    model: Any, verbose: int, capsys: pytest.CaptureFixture[str]
) -> None:
    clone(model).set_params(verbose=verbose).fit(*data())
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == verbose
    assert captured.err.count("\r") >= 2 * verbose
    assert captured.err.endswith("\n" if verbose else "")


def lines_of(
    model: Any, capsys: pytest.CaptureFixture[str], n_samples: int = 60, **given: Any
) -> list[str]:
    """Every text that the moving line showed."""
    model.set_params(verbose=1).fit(*data(n_samples), **given)
    return [line.rstrip() for line in capsys.readouterr().err.split("\r")[1:]]


def test_the_line_says_how_much_there_is_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    shown = lines_of(SubspaceTobitRegressor(2, solver="batch"), capsys)
    assert shown[0].startswith("alpha 1 of at most 16, 1 Newton steps, gradient ")
    assert shown[0].endswith(" (1e-03 wanted)")
    assert any(
        " Newton steps, gradient " in line and " (1e-06 wanted), alpha " in line for line in shown
    )
    shown = lines_of(SubspaceNetworkRegressor(2, 2, joint_tuning=True), capsys)
    assert any(line.startswith("tuning all layers, 1 of at most 250 steps") for line in shown)
    shown = lines_of(SubspaceNetworkRegressor(2, 2, early_stopping=True, random_state=0), capsys)
    assert shown[0] == "depth 1 of at most 2, on 54 rows"
    shown = lines_of(MixedTobitRegressor(random_state=0), capsys, groups=np.arange(60) // 6)
    for line in (
        "the ridge on coefficients, alpha 1 of at most 9",
        "held-out last visits, structure 1 of at most 9",
        "random effects, 0 factors, step 1 of at most 500",
        "coefficients, step 1 of at most 500",
    ):
        assert line in shown


def test_trees_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    shown = lines_of(AutoTobitRegressor(members=["trees"], cv=2, random_state=0), capsys, 300)
    assert any(line.startswith("trees, on other parts, 1 of ") for line in shown)


@SHOWN
def test_no_line_is_cut_off(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert max(map(len, lines_of(clone(model), capsys)[:-1])) < 79  # of a terminal of 80 columns
