"""A fit that was interrupted ends as if it had not been."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.exceptions import ModelFileError
from deeptobit.layer import Layer
from deeptobit.scale import Block, FitByRounds, ParquetRows, online
from tests.scale.problems import FEATURES, RANK, UPPER, cohort, source, write


class StoppedError(Exception):
    """What a test throws into a fit."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("checkpoint") / "data", cohort())


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints after every block."""
    monkeypatch.setattr(online, "_SECONDS_BETWEEN", -1.0)


def interrupt(rows: ParquetRows, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reading fail after some blocks."""
    read, count = type(rows).blocks, 0

    def blocks(self: ParquetRows, skip: int = 0) -> Any:
        nonlocal count
        for block in read(self, skip):
            count += 1
            if count > after:
                raise StoppedError
            yield block

    monkeypatch.setattr(type(rows), "blocks", blocks)


def one(**settings: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(RANK, upper=UPPER, **settings)


def deep(**settings: Any) -> SubspaceNetworkRegressor:
    return SubspaceNetworkRegressor(RANK, 2, upper=UPPER, **settings)


@cache
def uninterrupted(make: Callable[..., Any], solver: str, folder: Path) -> Any:
    return make(solver=solver).fit(source(folder, 250))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("solver", ["batch", "online"])
@pytest.mark.parametrize(("make", "after"), [(one, 14), (one, 27), (deep, 40), (deep, 90)])
def test_an_interrupted_fit_ends_with_the_same_result(
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    solver: str,
    make: Callable[..., Any],
    after: int,
) -> None:
    if solver == "online":
        after //= 4
    whole = uninterrupted(make, solver, folder)
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        interrupt(source(folder, 250), after, patch)
        with pytest.raises(StoppedError):
            make(solver=solver).fit(source(folder, 250), checkpoint=path)
    assert path.exists()
    again = make(solver=solver).fit(source(folder, 250), checkpoint=path, resume=True)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    np.testing.assert_array_equal(again.sigma_, whole.sigma_)
    X = cohort()[FEATURES]
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    assert again.n_iter_ == whole.n_iter_
    assert again.history_["nll"] == whole.history_["nll"]


def test_restarts_are_counted_across_an_interruption(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = FitByRounds._begin

    def alone(*given: Any) -> Layer:
        """The start with one component, which has to be filled up."""
        layer = begin(*given)
        first = np.arange(layer.U.shape[1]) == 0
        return layer._replace(U=layer.U * first, Z=layer.Z * first)

    monkeypatch.setattr(FitByRounds, "_begin", alone)
    whole = one(solver="batch").fit(source(folder, 250))
    assert whole.history_["n_restarts"] > 0
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        interrupt(source(folder, 250), 12 * whole.n_iter_, patch)
        with pytest.raises(StoppedError):
            one(solver="batch").fit(source(folder, 250), checkpoint=path)
    again = one(solver="batch").fit(source(folder, 250), checkpoint=path, resume=True)
    assert again.history_["n_restarts"] == whole.history_["n_restarts"]
    np.testing.assert_array_equal(again.coef_, whole.coef_)


SCRIPT = """
import sys
from tests.scale.test_checkpoint import deep
from tests.scale.problems import source
deep(solver="batch", tol=1e-12).fit(source(sys.argv[1], 250), checkpoint=sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_driver_is_followed_by_another(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    whole = deep(solver="batch", tol=1e-12).fit(source(folder, 250))
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(path)]) as driver:
        while not path.exists() and driver.poll() is None:
            time.sleep(0.01)
        driver.kill()
    assert driver.returncode == -signal.SIGKILL, "the fit was over before it was killed"
    again = deep(solver="batch", tol=1e-12)
    again.fit(source(folder, 250), checkpoint=path, resume=True)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    X = cohort()[FEATURES]
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_a_finished_fit_is_taken_up_without_reading(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.checkpoint"
    whole = one(solver="batch").fit(source(folder), checkpoint=path)
    interrupt(source(folder), 1, monkeypatch)
    again = one(solver="batch", max_iter=200).fit(source(folder), checkpoint=path, resume=True)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def checkpoint_of(folder: Path, path: Path) -> None:
    one(solver="batch").fit(source(folder), checkpoint=path)


def resume(folder: Path, path: Path, **settings: Any) -> None:
    one(**({"solver": "batch"} | settings)).fit(source(folder), checkpoint=path, resume=True)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    checkpoint_of(folder, path)
    with pytest.raises(ModelFileError, match=r"cannot be resumed: .*alpha was \"auto\", and is 0"):
        resume(folder, path, alpha=0.5)
    with pytest.raises(ModelFileError, match="it belongs to another fit: solver was"):
        resume(folder, path, solver="online")
    elsewhere = write(tmp_path / "other", cohort(n_rows=500))
    with pytest.raises(ModelFileError, match="number of rows was 3000, and is 500 now"):
        resume(elsewhere, path)


def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    checkpoint_of(folder, path)
    content = path.read_bytes()
    for damaged in (content[:-10], content[:20], content[:500] + b"?" + content[501:], b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"fit\.checkpoint cannot be loaded"):
            resume(folder, path)
    one(solver="batch").fit(source(folder)).save(path)
    with pytest.raises(ModelFileError, match="holds a 'model', where a 'checkpoint' is wanted"):
        resume(folder, path)
    with pytest.raises(FileNotFoundError):
        resume(folder, tmp_path / "nowhere")


def test_a_full_disk_keeps_the_previous_checkpoint(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.checkpoint"
    checkpoint_of(folder, path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"could not be written .*No space left.*the fit goes on"):
        model = one(solver="batch").fit(source(folder), checkpoint=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["fit.checkpoint"]
    assert model.history_["converged"]


def test_rows_in_memory_need_no_checkpoint(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="checkpoint and resume are for rows beyond memory"):
        SubspaceTobitRegressor(1).fit(X, np.abs(X), checkpoint=tmp_path / "a")
    rows = source(write(tmp_path / "data", cohort(n_rows=50)))
    with pytest.raises(ValueError, match="resume=True needs the checkpoint"):
        one().fit(rows, resume=True)


def test_blocks_know_where_they_are_from(folder: Path) -> None:
    block = source(folder).first()
    assert isinstance(block, Block)
    assert block.where.endswith("part-0.parquet")
