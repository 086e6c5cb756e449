"""Tables in chunks: hashes as random numbers, and held-out rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import StudyError, read_study, stream_study
from deeptobit.app.study.stream import GroupCount, HeldOutRows, hash_uniform
from deeptobit.app.study.tables import Table


def test_hashes_are_uniform_and_do_not_follow_the_row_numbers() -> None:
    hashes = hash_uniform(np.arange(100_000), seed=3)
    counts, _ = np.histogram(hashes, bins=50, range=(0.0, 1.0))
    assert np.square(counts - 2000).sum() / 2000 < 95  # chi square of 49 degrees at 0.9999
    assert abs(np.corrcoef(hashes[:-1], hashes[1:])[0, 1]) < 0.015
    other = hash_uniform(np.arange(100_000), seed=4)
    assert abs(np.corrcoef(hashes, other)[0, 1]) < 0.015


def test_equal_labels_have_equal_hashes() -> None:
    labels = np.array(["007", "7", "Ann", "007"], dtype=object)
    hashes = hash_uniform(labels, seed=0)
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 3
    np.testing.assert_array_equal(hash_uniform(labels[1:], seed=0), hashes[1:])


@pytest.mark.parametrize("n_groups", [1, 7, 60_000, 300_000])
def test_groups_are_counted_in_bounded_memory(n_groups: int) -> None:
    hashes = hash_uniform(np.arange(n_groups), seed=0)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(n_groups), 2))
    groups = GroupCount(np.zeros(0))
    for part in np.array_split(hashes[order], 5):
        groups = groups.add(part)
    assert len(groups.hashes) <= 2**16
    assert groups.n_groups == pytest.approx(n_groups, rel=0.0 if n_groups < 2**16 else 0.015)
    share = np.mean(hashes <= groups.quantile(0.1))
    assert share == pytest.approx(max(0.1, 1 / n_groups), rel=0.05, abs=0.05)
    assert share > 0.0


def test_rows_that_are_held_out_need_outcomes(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[data]\nfile = "a.parquet"\n[targets.y]\n')
    study = read_study(tmp_path / "a.toml")
    x = np.random.default_rng(0).normal(size=400)
    frame = pd.DataFrame({"x": x, "y": np.maximum(x, 0.0)})
    table = Table(frame, "a.parquet", np.arange(400))
    apart = HeldOutRows.choose(study, 400, None).among(table, np.arange(400))
    frame.loc[apart, "y"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match="no held-out row has a target; add rows"):
        stream_study(study, tmp_path / "a.parquet")
