"""People in Parquet files and Dask partitions: the mixed model of a fit in memory."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import MixedTobitRegressor
from deeptobit.estimators import people
from deeptobit.exceptions import CensoringWarning
from deeptobit.scale import ParquetRows

TARGETS, FEATURES = ["a", "b", "c"], ["time", "age"]
SETTINGS: dict[str, Any] = {"upper": 10.0, "person_rank": 1, "visit_rank": 1, "shrinkage": 0.0}


def cohort(n_people: int = 90) -> pd.DataFrame:
    """People of three to five visits, missing outcomes and all; names are words."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n_people), rng.integers(3, 6, n_people))
    when = pd.Series(person).groupby(person).cumcount() + rng.uniform(0, 0.3, len(person))
    age, weight = rng.normal(size=n_people)[person], rng.integers(1, 3, n_people)[person]
    latent = 6 + 2 * rng.normal(size=(n_people, 1))[person] + rng.normal(size=(n_people, 3))[person]
    latent += rng.normal(size=(len(person), 3))
    latent += 0.6 * rng.normal(size=(n_people, 3))[person] * when.to_numpy()[:, None]
    latent += 0.7 * rng.normal(size=(len(person), 1)) - 0.5 * when.to_numpy()[:, None]
    Y = np.clip(latent + age[:, None], 0, 10)
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    frame = pd.DataFrame(Y, columns=TARGETS).assign(time=when, age=age, weight=weight)
    return frame.assign(person=[f"p{number}" for number in person])


def write(folder: Path, frame: pd.DataFrame, n_files: int) -> Path:
    """Whole people in files."""
    folder.mkdir()
    codes = pd.factorize(frame["person"])[0]
    for part, rows in frame.groupby(codes * n_files // (codes.max() + 1)):
        path = folder / f"part-{part:03d}.parquet"
        rows.to_parquet(path, index=False, row_group_size=50)
    return folder


def source(folder: Path, **settings: Any) -> ParquetRows:
    names: dict[str, Any] = {"targets": TARGETS, "features": FEATURES, "weight": "weight"}
    return ParquetRows(folder, **{**names, "group": "person", "time": "time", **settings})


def in_memory(frame: pd.DataFrame, **settings: Any) -> MixedTobitRegressor:
    who = {"groups": frame["person"], "time": frame["time"], "sample_weight": frame["weight"]}
    model = MixedTobitRegressor(**{**SETTINGS, **settings})
    return model.fit(frame[FEATURES], frame[TARGETS], **who)


def assert_same(model: Any, other: Any, tol: float = 1e-8) -> None:
    assert model.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-12)
    for name in ("coef_", "intercept_", "sigma_", "covariance_"):
        ours, theirs = getattr(model, name), getattr(other, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tol * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("effects", "n_files", "batch_rows"),
    [("intercept", 1, 9999), ("intercept", 12, 7), ("slope", 3, 60)],
)
def test_shards_give_what_memory_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effects: Any, n_files: int, batch_rows: int
) -> None:
    monkeypatch.setattr(people, "_HEAD_ROWS", 150)
    memory = in_memory(cohort(), random_effects=effects)
    rows = source(write(tmp_path / "d", cohort(), n_files), batch_rows=batch_rows)
    model = MixedTobitRegressor(**SETTINGS, random_effects=effects).fit(rows)
    assert_same(model, memory)
    assert list(model.feature_names_in_) == FEATURES
    assert model.n_iter_ == memory.n_iter_


def test_what_a_fit_leaves_behind(tmp_path: Path) -> None:
    frame = cohort()
    who = {"groups": frame["person"], "time": frame["time"]}
    settings: Any = {"targets": ["a"], "features": FEATURES}
    rows = source(write(tmp_path / "d", frame, 2), **settings)
    model = MixedTobitRegressor(upper=10).fit(rows)
    memory = MixedTobitRegressor(upper=10).fit(
        frame[FEATURES], frame[["a"]], **who, sample_weight=frame["weight"]
    )
    for kind in ("observed", "robust"):
        ours, theirs = (each.summary(cov_type=kind) for each in (model, memory))
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-6)
    assert model.bic() == pytest.approx(memory.bic(), rel=1e-10)
    np.testing.assert_allclose(model.feature_scale_, memory.feature_scale_, rtol=1e-9)
    with pytest.raises(ValueError, match="or fitted to rows beyond memory"):
        model.predict(frame[FEATURES], **who)
    known = model.condition(frame[FEATURES], frame[["a"]], **who)
    expected = memory.predict(frame[FEATURES], **who)
    np.testing.assert_allclose(known.predict(frame[FEATURES], **who), expected, atol=1e-6)


def test_an_outcome_at_its_bound_and_choices_of_the_first_people(tmp_path: Path) -> None:
    frame = cohort(60).assign(b=0.0)
    frame.loc[frame["person"] == "p0", "a"] = np.nan
    with pytest.warns(CensoringWarning, match="'b'"):
        model = MixedTobitRegressor(upper=10).fit(source(write(tmp_path / "d", frame, 2)))
    with pytest.warns(CensoringWarning, match="'b'"):
        memory = in_memory(frame, person_rank="auto", visit_rank="auto", shrinkage="auto")
    assert_same(model, memory, 1e-6)
    assert len(model.choices_) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "the rows of person 'p0' do not follow each other in one file"),
        ({"group": None}, "needs their people: ParquetRows.group="),
    ],
)
def test_people_in_two_places_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    frame = cohort(12)
    moved = pd.concat([frame[1:], frame[:1]])
    rows = source(write(tmp_path / "d", moved, 1), batch_rows=10, **change)
    with pytest.raises(ValueError, match=message):
        MixedTobitRegressor(**SETTINGS).fit(rows)


def test_errors_name_the_file(tmp_path: Path) -> None:
    frame = cohort(12)
    frame.loc[40, "time"] = np.nan
    with pytest.raises(ValueError, match=r"part-002.parquet: time is missing"):
        MixedTobitRegressor(**SETTINGS).fit(
            source(write(tmp_path / "d", frame, 3), features=["age"])
        )
    frame = cohort(12).assign(weight=np.arange(len(cohort(12))) + 1.0)
    frame["other"] = frame["weight"] ** 2
    with pytest.raises(ValueError, match="person 'p0' has rows of different sample_weight"):
        MixedTobitRegressor(**SETTINGS).fit(source(write(tmp_path / "e", frame, 3)))
    rows = source(
        tmp_path / "e", weight=None, targets=["a"], features=[*FEATURES, "weight", "other"]
    )
    with pytest.raises(ValueError, match="12 people are few for 4 features"):
        MixedTobitRegressor(**SETTINGS).fit(rows)


# Dask.

dask: Any = pytest.importorskip("dask")
dd: Any = pytest.importorskip("dask.dataframe")
distributed: Any = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_dask_partitions_give_what_memory_gives(tmp_path: Path) -> None:
    frame = dd.read_parquet(write(tmp_path / "d", cohort(), 4))
    who = {"groups": frame["person"], "time": frame["time"], "sample_weight": frame["weight"]}
    with dask.config.set(scheduler="synchronous"):
        model = MixedTobitRegressor(**SETTINGS).fit(frame[FEATURES], frame[TARGETS], **who)
        lazy: Any = model.predict(frame[FEATURES])
        with pytest.raises(ValueError, match="need rows in memory"):
            model.predict(frame[FEATURES], groups=frame["person"])
        population = lazy.compute().to_numpy()
    memory = in_memory(cohort())
    assert_same(model, memory)
    np.testing.assert_allclose(population, memory.predict(cohort()[FEATURES]), atol=1e-7)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    rows = source(write(tmp_path / "d", cohort(), 4))
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(4.0, os.kill, (victim, signal.SIGKILL))
        killer.start()
        started = time.monotonic()
        while time.monotonic() < started + 5.0 or killer.is_alive():
            model = MixedTobitRegressor(**SETTINGS).fit(rows.on_cluster())
        assert victim not in client.run(os.getpid).values()
    assert_same(model, in_memory(cohort()))
