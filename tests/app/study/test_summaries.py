"""What is learned chunk by chunk is what the whole table teaches."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import StudyError, Table, build_data, read_data, read_study
from deeptobit.app.study.columns import MOST_DECLARED, ColumnSummary, summarise_column
from deeptobit.app.study.config import Source, parse_study
from deeptobit.app.study.data import learn_encoder
from deeptobit.app.study.stream import ChunkedTable, read_first_pass
from tests.app.study.streams import chunks_of

N_ROWS = 60


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    some = rng.uniform(size=N_ROWS) < 0.8
    return pd.DataFrame(
        {
            "age": np.where(some, rng.normal(70.0, 8.0, N_ROWS), np.nan),
            "visits": rng.integers(0, 4, N_ROWS),
            "code": np.where(some, rng.choice([-4, 1, 2], N_ROWS), np.nan),
            "flag": pd.Series(rng.integers(0, 2, N_ROWS)).astype("boolean").where(some),
            "sure": rng.uniform(size=N_ROWS) < 0.5,
            "sex": rng.choice(["f", "m", "NA", " f"], N_ROWS),
            "typed": [f"{value:.1f}" for value in rng.normal(size=N_ROWS)],
            "rare": ["common"] * 57 + ["odd"] * 3,
            "y": rng.normal(size=N_ROWS),
        }
    )


@pytest.mark.parametrize("n_rows", [1, 7, 1000])
def test_the_encoder_is_that_of_the_whole_table(
    n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _frame().to_parquet(tmp_path / "a.parquet")
    path = tmp_path / "a.toml"
    path.write_text(
        'data = {file = "a.parquet", missing = [-4]}\n'
        'features.categorical = ["visits", "code"]\n[targets.y]'
    )
    study = read_study(path)
    whole = build_data(study, read_data(study)).encoder
    with chunks_of(n_rows, monkeypatch):
        table = ChunkedTable(study, tmp_path / "a.parquet", lambda *state: None)
        encoder, n_values, _ = read_first_pass(table)
    assert n_values.tolist() == [N_ROWS]
    assert encoder.features == whole.features
    assert any("(missing)" in name for name in whole.features)
    for one, other in zip(encoder.columns, whole.columns, strict=True):
        assert (one.name, one.levels, one.reference) == (other.name, other.levels, other.reference)
        assert (one.indicator, one.few) == (other.indicator, other.few)
        np.testing.assert_allclose(one.means, other.means, rtol=1e-12)


COLUMNS = {
    "numbers": ["1", "2.5", None],
    "empty": [None, None, None],
    "long": ["12345678901234567890", "1", "2"],
    "dates": ["2020-01-02", None, "2021-12-31"],
    "mixed": ["1", "2", "x"],
    "categories": ["a", "b", "a"],
    "names": [f"person {k}" for k in range(40)],
    "repeated": ["a", "b", "c"],
    "dates and words": ["2020-01-02", "late", "early"],
    "dates and numbers": ["2020-01-02", "2020-01-02", "5"],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("step", [1, 2, 100])
def test_kinds_do_not_depend_on_the_parts(name: str, step: int) -> None:
    cells = pd.DataFrame({"c": COLUMNS[name]}, dtype=object)
    summary = ColumnSummary("c")
    for start in range(0, len(cells), step):
        part = cells.iloc[start : start + step]
        summary.add(Table(part, "a.parquet", part.index.to_numpy() + 2))
    whole = Table(cells, "a.parquet", np.arange(len(cells)))
    assert summary.kind == summarise_column(whole, "c").kind


def test_dates_that_are_stored_as_such() -> None:
    cells = pd.DataFrame({"c": [pd.Timestamp("2020-01-02"), pd.NaT]})
    summary = ColumnSummary("c")
    summary.add(Table(cells, "a.parquet", np.arange(2)))
    assert summary.kind == "dates"


def test_categories_are_counted_up_to_a_limit() -> None:
    summary = ColumnSummary("ward", declared=True)
    cells = pd.DataFrame({"ward": [f"w{k}" for k in range(MOST_DECLARED + 1)]})
    summary.add(Table(cells, "a.parquet", np.arange(len(cells))))
    assert summary.levels is None
    study = parse_study(Source(Path("a.toml"), 'data.file = "a.parquet"\ntargets.y = {}'))
    with pytest.raises(StudyError, match="has over 1,000 categories, more than a table"):
        learn_encoder(study, [summary], "a.parquet")
