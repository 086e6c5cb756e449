"""Dask collections and Parquet on a cluster give what one process gives."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.scale import online
from tests.scale.problems import FEATURES, RANK, TARGETS, UPPER, arrays, cohort, source, write

dask: Any = pytest.importorskip("dask")
da: Any = pytest.importorskip("dask.array")
dd: Any = pytest.importorskip("dask.dataframe")
distributed: Any = pytest.importorskip("distributed")

BOUNDS = list(UPPER.values())

# Dask's own reader of Parquet uses what pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


def layer(**settings: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(RANK, **({"solver": "batch", "upper": BOUNDS} | settings))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("dask") / "data", cohort(), n_files=5)


@pytest.fixture(scope="module")
def serial(folder: Path) -> SubspaceTobitRegressor:
    return layer().fit(source(folder))


@pytest.fixture
def here() -> Iterator[None]:
    """Run tasks in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_same(model: Any, other: Any, rtol: float = 1e-8) -> None:
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(model.sigma_, other.sigma_, rtol=rtol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=rtol)


@pytest.mark.usefixtures("here")
class TestPartitions:
    @pytest.mark.parametrize("chunk", [3000, 700, 130])
    def test_arrays(self, serial: SubspaceTobitRegressor, chunk: int) -> None:
        X, Y = arrays(cohort())
        model = layer().fit(da.from_array(X, (chunk, 4)), da.from_array(Y, (500, 3)))
        assert_same(model, serial)
        assert model.n_iter_ == serial.n_iter_

    def test_frames(self, folder: Path, serial: SubspaceTobitRegressor) -> None:
        frame = dd.read_parquet(folder)
        model = layer().fit(frame[FEATURES], frame[TARGETS])
        assert_same(model, serial)
        assert list(model.feature_names_in_) == FEATURES
        assert model.target_names_ == TARGETS

    def test_parquet(self, folder: Path, serial: SubspaceTobitRegressor) -> None:
        assert_same(layer().fit(source(folder).on_cluster()), serial)

    def test_a_series_is_one_dimensional(self, folder: Path) -> None:
        frame = dd.read_parquet(folder)
        model = SubspaceTobitRegressor(1, solver="batch").fit(frame[FEATURES], frame["score1"])
        assert model.target_names_ == ["score1"]
        assert model.predict(cohort()[FEATURES]).shape == (3000,)

    def test_weights_and_bounds_per_entry(self) -> None:
        frame = cohort()
        X, Y = arrays(frame)
        lower = np.where(np.arange(3000) % 2, 0.5, 0.0)[:, None] * np.ones(4)
        Y = np.where(np.isnan(Y), Y, np.maximum(Y, lower))
        weight = frame["weight"].to_numpy()
        cut = [da.from_array(array, 800) for array in (X, Y, weight, lower)]
        model = layer(tol=1e-9).fit(cut[0], cut[1], sample_weight=cut[2], lower=cut[3])
        memory = layer(tol=1e-9, alpha=model.alpha_)
        memory.fit(X, Y, sample_weight=weight, lower=lower)
        assert_same(model, memory, 1e-6)

    def test_empty_partitions_do_not_matter(
        self, folder: Path, serial: SubspaceTobitRegressor
    ) -> None:
        frame = dd.read_parquet(folder)
        some = dd.concat([frame[frame["x0"] < -1e9], frame])
        assert_same(layer().fit(some[FEATURES], some[TARGETS]), serial)

    def test_a_network(self, folder: Path) -> None:
        network = SubspaceNetworkRegressor(RANK, 2, solver="batch", upper=BOUNDS)
        model = network.fit(source(folder).on_cluster())
        one = SubspaceNetworkRegressor(RANK, 2, solver="batch", upper=BOUNDS).fit(source(folder))
        assert_same(model, one)
        X = cohort()[FEATURES]
        np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=1e-8)

    def test_averaged_passes_are_as_near_to_the_optimum_as_one(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(online, "_ROWS_PER_LEARNER", 5000)
        X, Y, _ = make_subspace(20_000, 20, 10, 3, random_state=0)
        best = SubspaceTobitRegressor(3, solver="batch").fit(X, Y)
        alone = SubspaceTobitRegressor(3, solver="online").fit(X, Y)
        model = SubspaceTobitRegressor(3, solver="online", verbose=1)
        model.fit(da.from_array(X, (2500, -1)), da.from_array(Y, (2500, -1)))
        distance = [np.linalg.norm(m.coef_ - best.coef_) for m in (alone, model)]
        assert distance[1] < 1.5 * distance[0]
        assert np.linalg.matrix_rank(model.coef_) == 3
        assert model.n_iter_ == 20_000
        assert "layer 1 of 1, 20,000 of 20,000 rows, " in capsys.readouterr().err

    def test_an_online_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(online, "_ROWS_PER_LEARNER", 5000)
        X, Y, _ = make_subspace(
            *(12_000, 6, 4, 2), n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0,
            random_state=0,
        )  # fmt: skip
        train = [da.from_array(array[:10_000], (2500, -1)) for array in (X, Y)]
        model = SubspaceNetworkRegressor(2, 2, solver="online").fit(*train)
        one = SubspaceTobitRegressor(2, solver="online").fit(*train)
        assert model.score_log(X[10_000:], Y[10_000:]) > one.score_log(X[10_000:], Y[10_000:])

    def test_one_group_is_one_pass(self) -> None:
        X, Y = arrays(cohort())
        model = layer(solver="online", n_passes=2)
        model.fit(da.from_array(X, (1000, -1)), da.from_array(Y, (1000, -1)))
        memory = layer(solver="online", n_passes=2).fit(X, Y)
        assert_same(model, memory, 1e-9)

    def test_predictions_are_lazy(self, folder: Path, serial: SubspaceTobitRegressor) -> None:
        frame, X = dd.read_parquet(folder), cohort()[FEATURES]
        lazy: Any = serial.predict(frame[FEATURES])
        assert list(lazy.columns) == TARGETS
        np.testing.assert_allclose(lazy.compute().to_numpy(), serial.predict(X))
        by_number = layer().fit(*arrays(cohort()))
        blocks: Any = by_number.predict(da.from_array(X.to_numpy(), (700, 3)), "clip")
        assert blocks.chunks == ((700, 700, 700, 700, 200), (4,))
        np.testing.assert_allclose(blocks.compute(), by_number.predict(X.to_numpy(), "clip"))
        flat = SubspaceTobitRegressor(1).fit(X.to_numpy(), arrays(cohort())[1][:, 1])
        column: Any = flat.predict(da.from_array(X.to_numpy(), (700, 3)))
        assert column.compute().shape == (3000,)

    def test_mistakes_are_named(self, folder: Path) -> None:
        X, Y = arrays(cohort())
        dX, dY = da.from_array(X, 700), da.from_array(Y, 700)
        with pytest.raises(TypeError, match="X is a Dask collection, but y is a ndarray"):
            layer().fit(dX, Y)
        with pytest.raises(ValueError, match="y is None: this requires y"):
            layer().fit(dX)
        with pytest.raises(ValueError, match="y has 3 partitions of rows, but X has 5"):
            layer().fit(dX, dY[:2000])
        broken = X.copy()
        broken[1500, 2] = np.nan
        with pytest.raises(
            ValueError, match=r"'x2' is NaN in row 100 .*\. Drop or impute such rows"
        ):
            layer().fit(da.from_array(broken, (700, 6)), dY)
        words = dd.read_parquet(folder).assign(x1="a")
        with pytest.raises(ValueError, match=r"partition 0: column 'x1' of X holds .* encode it"):
            layer().fit(words[FEATURES], words[TARGETS])


def local_cluster() -> Any:
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with local_cluster() as found:
        yield found


@pytest.mark.slow
class TestCluster:
    def test_workers_give_the_serial_result(
        self, cluster: Any, folder: Path, serial: SubspaceTobitRegressor
    ) -> None:
        with distributed.Client(cluster):
            assert_same(layer().fit(source(folder).on_cluster()), serial)
            frame = dd.read_parquet(folder)
            assert_same(layer().fit(frame[FEATURES], frame[TARGETS]), serial)

    def test_an_error_on_a_worker_names_the_file(self, cluster: Any, tmp_path: Path) -> None:
        frame = cohort()
        frame.loc[2500, "x3"] = np.inf
        rows = source(write(tmp_path / "data", frame)).on_cluster()
        with (
            distributed.Client(cluster),
            pytest.raises(ValueError, match=r"part-2\.parquet: feature 'x3' is .*row 500"),
        ):
            layer().fit(rows)

    def test_a_file_that_vanishes_is_named_within_seconds(
        self, cluster: Any, tmp_path: Path
    ) -> None:
        """A shard is its path: it arrives, and the read on the worker fails."""
        folder = write(tmp_path / "data", cohort())
        rows = source(folder).on_cluster()
        shard = source(folder).shards[0]
        for path in sorted(folder.rglob("*.parquet"))[:1]:
            path.unlink()
        assert pickle.loads(pickle.dumps(shard)).path == shard.path
        with (
            distributed.Client(cluster),
            pytest.raises(ValueError, match="cannot be read as Parquet"),
        ):
            layer().fit(rows)

    def test_folds_run_on_the_cluster(self, cluster: Any) -> None:
        X, Y = arrays(cohort(n_rows=300))
        search = GridSearchCV(SubspaceTobitRegressor(upper=BOUNDS), {"rank": [1, 2]}, cv=2)
        with distributed.Client(cluster), joblib.parallel_backend("dask"):
            search.fit(X, np.nan_to_num(Y))
        assert search.best_params_["rank"] == 2

    def test_a_killed_worker_changes_nothing(self, tmp_path: Path) -> None:
        rows = source(write(tmp_path / "data", cohort(n_rows=60_000), 6, 10_000))
        alone = layer(tol=1e-9).fit(rows)
        path = tmp_path / "fit.checkpoint"
        with local_cluster() as cluster, distributed.Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
            thread = threading.Thread(target=kill_once_there, args=(victim, path))
            thread.start()
            model = layer(tol=1e-9).fit(rows.on_cluster(), checkpoint=path)
            thread.join()
            assert victim not in client.run(os.getpid).values()
        assert_same(model, alone)
        assert model.n_iter_ == alone.n_iter_


def kill_once_there(pid: int, path: Path) -> None:
    """Kill a process between the first and the second checkpoint of a fit."""
    while not path.exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
