"""Rows from Parquet: what is read, and what is said of files that cannot be."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceTobitRegressor
from deeptobit.scale import ParquetRows
from tests.scale.problems import FEATURES, TARGETS, arrays, cohort, source, write


def read(rows: ParquetRows, skip: int = 0) -> tuple[np.ndarray, np.ndarray]:
    blocks = list(rows.blocks(skip))
    return np.concatenate([b.X for b in blocks]), np.concatenate([b.Y for b in blocks])


@pytest.mark.parametrize("batch_rows", [1, 7, 400, 100_000])
def test_every_row_comes_once_and_in_order(tmp_path: Path, batch_rows: int) -> None:
    frame = cohort(n_rows=500)
    rows = source(write(tmp_path / "data", frame, row_group=64), batch_rows)
    X, Y = read(rows)
    np.testing.assert_array_equal(X, arrays(frame)[0])
    np.testing.assert_array_equal(Y, arrays(frame)[1])
    assert rows.n_rows == 500
    assert max(len(block.X) for block in rows.blocks()) <= batch_rows


@pytest.mark.parametrize("skip", [0, 1, 166, 167, 168, 499, 500])
def test_rows_can_be_skipped(tmp_path: Path, skip: int) -> None:
    frame = cohort(n_rows=500)
    rows = source(write(tmp_path / "data", frame, row_group=64), 50)
    X, _ = read(rows, skip) if skip < 500 else (np.empty((0, len(FEATURES))), None)
    np.testing.assert_array_equal(X, arrays(frame)[0][skip:])
    assert skip < 500 or list(rows.blocks(skip)) == []


def test_features_are_all_other_columns(tmp_path: Path) -> None:
    frame = cohort(n_rows=20)
    rows = ParquetRows(write(tmp_path / "d", frame), targets=TARGETS, weight="weight")
    assert rows.features == tuple(FEATURES)


def test_an_index_without_a_name_is_no_feature(tmp_path: Path) -> None:
    frame = cohort(n_rows=20).drop(columns="weight")
    frame.set_index(np.arange(20) * 2).to_parquet(tmp_path / "a.parquet")
    assert ParquetRows(tmp_path / "a.parquet", targets=TARGETS).features == tuple(FEATURES)


def test_a_single_file_and_a_list_of_files(tmp_path: Path) -> None:
    frame = cohort(n_rows=100)
    folder = write(tmp_path / "data", frame)
    files = sorted(folder.iterdir())
    assert ParquetRows(files[0], targets=TARGETS, features=FEATURES).n_rows == 34
    assert ParquetRows(files[:2], targets=TARGETS, features=FEATURES).n_rows == 67


def test_a_partitioned_data_set_and_its_key(tmp_path: Path) -> None:
    frame = cohort(n_rows=100).assign(site=np.arange(100) % 2)
    frame.to_parquet(tmp_path / "data", partition_cols=["site"], index=False)
    plain = ParquetRows(tmp_path / "data", targets=TARGETS)
    assert "site" not in plain.features
    keyed = ParquetRows(tmp_path / "data", targets=TARGETS, features=["site", "x0"])
    X, Y = read(keyed)
    np.testing.assert_array_equal(X[:, 0], np.repeat([0.0, 1.0], 50))
    np.testing.assert_array_equal(Y[:50], arrays(frame)[1][::2])


def test_integers_nulls_and_booleans_become_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"i": [1, 2, 3], "b": [True, False, True], "y": pd.array([1, None, 3], dtype="Int64")}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    X, Y = read(ParquetRows(tmp_path / "a.parquet", targets=["y"]))
    np.testing.assert_array_equal(X, [[1, 1], [2, 0], [3, 1]])
    np.testing.assert_array_equal(Y, [[1], [np.nan], [3]])


def test_limits_differ_from_row_to_row(tmp_path: Path) -> None:
    frame = cohort(n_rows=800)
    rng = np.random.default_rng(1)
    limit = rng.choice([0.3, 1.0], size=800)
    frame["score1"] = np.maximum(frame["score1"], limit)
    frame["limit"] = limit
    rows = ParquetRows(
        write(tmp_path / "d", frame),
        targets=["score1", "score2"],
        features=FEATURES,
        lower={"score1": "limit"},
    )
    model = SubspaceTobitRegressor(1, solver="batch", tol=1e-9).fit(rows)
    bounds = np.column_stack([limit, np.zeros(800)])
    Y = frame[["score1", "score2"]]
    memory = SubspaceTobitRegressor(1, alpha=model.alpha_, solver="batch", tol=1e-9)
    memory.fit(frame[FEATURES], Y, lower=bounds)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6)


def test_shards_travel(tmp_path: Path) -> None:
    rows = source(write(tmp_path / "data", cohort(n_rows=100)))
    shard = pickle.loads(pickle.dumps(rows.shards[1]))
    np.testing.assert_array_equal(next(shard.blocks()).X, next(rows.shards[1].blocks()).X)


def test_a_corrupt_file_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", cohort(n_rows=100))
    (folder / "part-1.parquet").write_bytes(b"not Parquet at all")
    with pytest.raises(ValueError, match=r"part-1\.parquet cannot be read as Parquet"):
        source(folder)


def test_a_file_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", cohort(n_rows=1000))
    path = folder / "part-2.parquet"
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"part-2\.parquet cannot be read as Parquet"):
        list(source(folder).blocks())


def test_a_missing_column_is_named_with_its_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", cohort(n_rows=100))
    late = pd.read_parquet(folder / "part-2.parquet").drop(columns="score3")
    late.to_parquet(folder / "part-2.parquet")
    with pytest.raises(ValueError, match=r"part-2\.parquet has no column 'score3'; it has 'x0'"):
        source(folder)


def test_words_are_refused_with_their_column(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", cohort(n_rows=100).assign(x2="a word"))
    with pytest.raises(ValueError, match=r"part-0\.parquet: column 'x2' .* numbers. Encode it"):
        source(folder)


@pytest.mark.parametrize(("value", "what"), [(np.inf, "not finite"), (np.nan, "NaN")])
def test_a_feature_that_is_not_finite_is_named(tmp_path: Path, value: float, what: str) -> None:
    frame = cohort(n_rows=300)
    frame.loc[150, "x3"] = value
    rows = source(write(tmp_path / "data", frame), 20)
    with pytest.raises(ValueError, match=rf"part-1\.parquet: feature 'x3' is .*{what}.* row 50 "):
        SubspaceTobitRegressor(1).fit(rows)


def test_an_outcome_beyond_its_bound_is_named(tmp_path: Path) -> None:
    frame = cohort(n_rows=300)
    frame.loc[150, "score2"] = -1.0
    rows = source(write(tmp_path / "data", frame), 20)
    with pytest.raises(ValueError, match=r"part-1\.parquet, counting rows from 40: .*'score2'"):
        SubspaceTobitRegressor(1).fit(rows)


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", cohort(n_rows=10))
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        source(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="column 'x0' is named twice"):
        ParquetRows(folder, targets=["x0"], features=["x0"])
    with pytest.raises(ValueError, match=r"write targets=\['x0'\]"):
        ParquetRows(folder, targets="x0")
    with pytest.raises(ValueError, match="targets is empty: name at least one column"):
        ParquetRows(folder, targets=[])
    with pytest.raises(ValueError, match="lower names 'x0', which is not among the targets"):
        ParquetRows(folder, targets=["score0"], lower={"x0": "x1"})
    with pytest.raises(ValueError, match="ParquetRows brings its own columns; name those of y"):
        SubspaceTobitRegressor(1).fit(source(folder), np.zeros(10))


def test_a_negative_weight_is_named(tmp_path: Path) -> None:
    frame = cohort(n_rows=30)
    frame.loc[25, "weight"] = -1.0
    rows = source(write(tmp_path / "data", frame), weight="weight")
    with pytest.raises(ValueError, match=r"part-2\.parquet: weights must be .*row 5 has -1"):
        SubspaceTobitRegressor(1).fit(rows)
