"""Shards that workers cache: read once, as many as fit, and read again where they are lost."""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor
from deeptobit.scale import Block, ParquetRows
from deeptobit.scale import cluster as _cluster
from deeptobit.scale.cluster import CachedShard, cache_shard, cached_bytes
from deeptobit.scale.parquet import ParquetShard
from tests.scale.problems import FEATURES, RANK, TARGETS, UPPER, cohort, write

distributed: Any = pytest.importorskip("distributed")

N_FILES = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features in single precision, outcomes in double."""
    frame = cohort().astype(dict.fromkeys(FEATURES, np.float32))
    return write(tmp_path_factory.mktemp("cached") / "data", frame, N_FILES)


@pytest.fixture
def rows(folder: Path) -> ParquetRows:
    return ParquetRows(
        folder,
        targets=TARGETS,
        features=FEATURES,
        weight="weight",
        upper={"score0": "weight"},  # any column of numbers will do
        batch_rows=250,
    )


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files, in the order in which they are read to their end."""
    found: list[str] = []
    blocks = ParquetShard.blocks

    def watched(self: ParquetShard, skip: int = 0) -> Iterator[Block]:
        yield from blocks(self, skip)
        found.append(self.path)

    monkeypatch.setattr(ParquetShard, "blocks", watched)
    return found


def set_room(monkeypatch: pytest.MonkeyPatch, n_bytes: int) -> None:
    """As in a worker that may cache so many bytes."""
    monkeypatch.setattr(_cluster, "_memory_limit", lambda: 3.0 * n_bytes)


def assert_same_blocks(found: Iterator[Block], expected: list[Block]) -> None:
    for block, other in zip(found, expected, strict=True):
        assert (block.where, block.first_row) == (other.where, other.first_row)
        for array, same in zip(block[:5], other[:5], strict=True):
            assert (array is None) == (same is None)
            if isinstance(array, np.ndarray) and isinstance(same, np.ndarray):
                assert array.dtype == same.dtype == np.float64
                assert array.flags.c_contiguous == same.flags.c_contiguous
                np.testing.assert_array_equal(array, same)


def test_outside_a_worker_nothing_is_cached(rows: ParquetRows) -> None:
    assert cache_shard(rows.shards[0]) is rows.shards[0]


def test_cached_rows_are_those_of_the_file(
    rows: ParquetRows, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = rows.shards[0]
    set_room(monkeypatch, shard.n_bytes)
    cached = cache_shard(shard)
    expected = list(shard.blocks())
    reads.clear()
    for _ in range(2):
        assert_same_blocks(cached.blocks(), expected)
    assert_same_blocks(pickle.loads(pickle.dumps(cached)).blocks(), expected)
    assert reads == []


def test_they_are_as_large_as_they_say(rows: ParquetRows, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = rows.shards[0]
    set_room(monkeypatch, shard.n_bytes)
    cached = cache_shard(shard)
    assert isinstance(cached, CachedShard)
    parts = [
        array for block in cached._rows for array in block[:5] if isinstance(array, np.ndarray)
    ]
    assert sum(array.nbytes for array in parts) == shard.n_bytes
    assert shard.n_bytes == shard.n_rows * (4 * len(FEATURES) + 8 * (2 * len(TARGETS) + 1))
    assert shard.n_bytes <= sys.getsizeof(cached) < shard.n_bytes + 100


def test_room_is_bounded_and_free_again(rows: ParquetRows, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = rows.shards
    set_room(monkeypatch, 2 * shards[0].n_bytes)
    found = [cache_shard(shard) for shard in shards]
    assert [type(shard) for shard in found] == [CachedShard] * 2 + [ParquetShard] * 3
    assert cached_bytes() == 2 * shards[0].n_bytes
    del found[0]
    assert isinstance(cache_shard(shards[2]), CachedShard)


def test_what_arrives_is_counted(rows: ParquetRows, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = rows.shards[0]
    set_room(monkeypatch, 2 * shard.n_bytes)
    cached = cache_shard(shard)
    copy = pickle.loads(pickle.dumps(cached))
    assert cached_bytes() == 2 * shard.n_bytes
    assert cache_shard(shard) is shard
    del copy
    assert isinstance(cache_shard(shard), CachedShard)


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for what Dask does in its own time."""
    end = time.monotonic() + 30.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def layer() -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(RANK, solver="batch", upper=list(UPPER.values()))


class TestFit:
    """On a cluster of threads, where reads can be counted and room be measured out."""

    @pytest.fixture
    def client(self) -> Iterator[Any]:
        options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
        with distributed.Client(processes=False, **options) as client:
            yield client

    @pytest.fixture
    def plain(self, folder: Path) -> ParquetRows:
        return ParquetRows(folder, targets=TARGETS, features=FEATURES, batch_rows=300)

    @pytest.mark.parametrize("n_cached", [N_FILES, 2, 0])
    def test_files_that_fit_are_read_once(
        self,
        client: Any,
        plain: ParquetRows,
        reads: list[str],
        n_cached: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        alone = layer().fit(plain)
        n_passes = len(reads) / N_FILES
        reads.clear()
        limit = client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit)
        (bound,) = (n_cached * plain.shards[0].n_bytes / size for size in limit.values())
        monkeypatch.setattr(_cluster, "_MEMORY_SHARE", bound)
        model = layer().fit(plain.on_cluster())
        assert len(reads) == n_cached + (N_FILES - n_cached) * n_passes
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-10)
        wait_until(lambda: cached_bytes() == 0)

    def test_one_online_pass_caches_nothing(
        self, client: Any, plain: ParquetRows, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(CachedShard, "__init__", None)  # cannot be made
        model = SubspaceTobitRegressor(RANK, solver="online", upper=list(UPPER.values()))
        assert model.fit(plain.on_cluster()).n_iter_ == plain.n_rows


class _Sum:
    """The sum of all features."""

    def __call__(self, blocks: Any) -> float:
        return float(sum(block.X.sum() for block in blocks))


@pytest.mark.slow
def test_rows_that_are_lost_with_a_worker_are_read_again(folder: Path) -> None:
    rows = ParquetRows(folder, targets=TARGETS, features=FEATURES)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="2GiB"
    )
    with cluster, distributed.Client(cluster) as client, rows.on_cluster().cached() as cached:
        before = cached.total(_Sum())
        holding = client.run(cached_bytes)
        victim = max(holding, key=lambda address: holding[address])
        assert holding[victim] > 0
        os.kill(client.run(os.getpid)[victim], signal.SIGKILL)
        assert cached.total(_Sum()) == pytest.approx(before, rel=1e-12)
        assert victim not in client.run(os.getpid)
