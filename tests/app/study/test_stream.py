import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.report import study_card
from deeptobit.app.study import (
    FittedStudy,
    Study,
    StudyError,
    fitting,
    load_fitted,
    predict_table,
    read_data,
    read_study,
    save_fitted,
    stream,
    stream_study,
)
from deeptobit.app.study.fitting import make_network
from deeptobit.estimators import inputs
from tests.app.study.streams import chunks_of, held_out, write_parquet


@pytest.mark.parametrize("grouped", [True, False])
def test_the_model_is_that_of_the_same_rows_in_memory(
    grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "_TOLERANCE", 1e-7)
    study, data, path = write_parquet(tmp_path, n_people=300, grouped=grouped)
    streamed = stream_study(study, path)
    apart = held_out(study, data)
    network = make_network(study).set_params(joint_tuning=False, solver="batch", random_state=None)
    network.fit(data.X[~apart], data.targets[~apart])
    X = data.X[apart]
    np.testing.assert_allclose(
        streamed.model.predict(X, kind="latent"), network.predict(X, kind="latent"), rtol=1e-4
    )
    np.testing.assert_allclose(streamed.model.sigma_, network.sigma_, rtol=1e-4)
    np.testing.assert_allclose(streamed.model.feature_scale_, data.X[~apart].std(ddof=0), rtol=1e-9)
    assert (streamed.n_rows, streamed.n_held_out) == (600, apart.sum())
    assert streamed.streamed
    np.testing.assert_array_equal(streamed.held_out.targets.low, data.targets[apart].low)
    np.testing.assert_array_equal(streamed.held_out.targets.high, data.targets[apart].high)


def test_groups_are_never_split(tmp_path: Path) -> None:
    study, data, path = write_parquet(tmp_path, n_people=100)
    apart = held_out(study, data)
    assert data.groups is not None
    assert len(set(data.groups[apart])) == 10
    assert not set(data.groups[apart]) & set(data.groups[~apart])
    assert stream_study(study, path).n_groups == 100


def test_neither_chunks_nor_files_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, data, path = write_parquet(tmp_path, n_people=150, max_layers=2)
    whole = stream_study(study, path)
    _, _, folder = write_parquet(tmp_path, n_people=150, max_layers=2, n_files=3)
    with chunks_of(37, monkeypatch):
        parts = stream_study(study, folder)
    pd.testing.assert_frame_equal(whole.held_out.table(), parts.held_out.table(), rtol=1e-6)
    np.testing.assert_allclose(whole.model.predict(data.X), parts.model.predict(data.X), rtol=1e-5)
    assert len(whole.held_out.stages) == 2


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[FittedStudy, Path]:
    study, _, path = write_parquet(tmp_path_factory.mktemp("cohort"), n_people=300)
    passes: list[tuple[int, int, int]] = []
    fitted = stream_study(study, path, progress=lambda *state: passes.append(state))
    assert [number for number, _, _ in passes] == sorted(number for number, _, _ in passes)
    assert {(done, total) for _, done, total in passes} == {(600, 600)}
    assert f"in {passes[-1][0]} passes" in fitted.facts["streamed"]
    return fitted, path


def test_rows_that_were_held_out_are_predicted_well(fitted: tuple[FittedStudy, Path]) -> None:
    table = fitted[0].held_out.table()
    assert (table["crps"] < table["null_crps"]).all()
    assert (table["r2"] > 0.4).all()
    assert (table["null_r2"].abs() < 0.3).all()
    assert ((table["coverage"] > 0.8) & (table["coverage"] <= 1.0)).all()


def test_the_file_and_its_card(fitted: tuple[FittedStudy, Path], tmp_path: Path) -> None:
    streamed, path = fitted
    file = tmp_path / "cohort.deeptobit"
    save_fitted(streamed, file)
    loaded = load_fitted(file)
    assert (loaded.n_rows, loaded.n_held_out, loaded.streamed) == (600, 60, True)
    pd.read_parquet(path).dropna().head(5).to_csv(tmp_path / "new.csv", index=False)
    table = read_data(loaded.study, tmp_path / "new.csv")
    pd.testing.assert_frame_equal(predict_table(loaded, table), predict_table(streamed, table))
    card = study_card(loaded)
    assert card["data"]["rows"] == 600
    assert card["data"]["held_out_rows"] == 60
    assert "60 were held out at random" in card["scores"]["how"]
    content = file.read_bytes()
    assert not any(f"{person:03d}-".encode() in content for person in (0, 150, 299))


def test_large_tables_are_learned_online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, data, path = write_parquet(tmp_path, n_people=300)
    monkeypatch.setattr(inputs, "BATCH_ENTRIES", 100)
    streamed = stream_study(study, path)
    assert streamed.model.history_["solver"] == "online"
    apart = held_out(study, data)
    np.testing.assert_allclose(streamed.model.feature_scale_, data.X[~apart].std(ddof=0), rtol=1e-9)
    assert study_card(streamed)["data"]["features"][0]["sd"] is not None


def test_rare_targets_have_a_model_without_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=40_000)
    rare = np.full(40_000, np.nan)
    rare[::1000] = 5.0 + x[::1000] + 0.1 * rng.normal(size=40)
    frame = pd.DataFrame({"x": x, "common": x + rng.normal(size=40_000), "rare": rare})
    frame.to_parquet(tmp_path / "a.parquet")
    study = _study(tmp_path, "[targets.common]\n[targets.rare]")
    fitted = stream_study(study, tmp_path / "a.parquet")
    null = fitted.held_out.null.latent[0]
    np.testing.assert_allclose(null, [0.0, 5.0], atol=0.5)
    assert 3500 < fitted.n_held_out < 4500


def test_a_bound_that_nobody_declared_is_noticed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    frame = pd.DataFrame({"x": x, "twice": 2.0 * x, "y": np.maximum(x + rng.normal(size=3000), 0)})
    frame.to_parquet(tmp_path / "a.parquet")
    found = stream_study(_study(tmp_path, "[targets.y]"), tmp_path / "a.parquet").findings
    messages = " ".join(f"{finding.about}: {finding.message}" for finding in found)
    assert re.search(
        r"y: (4|5)\d% of the values are 0, its smallest, and lower is not set", messages
    )
    assert "twice: correlation 1 with 'x'" in messages


def _study(folder: Path, text: str, data: str = "") -> Study:
    path = folder / "a.toml"
    path.write_text(f'data.file = "a.parquet"\n{data and f"data.{data}"}\n{text}\n')
    return read_study(path)


def _frame(n_rows: int = 400) -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=n_rows)
    return pd.DataFrame({"x": x, "y": np.maximum(x, 0.0), "who": np.arange(n_rows) % 100})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (
        {"w": ["none", *["1"] * 399]},
        "",
        r"'w' holds numbers and words.*'none': a.parquet, line 2",
    ),
    ({"x": lambda frame: frame.x.where(frame.x < 2, np.inf)}, "", "'x' holds numbers and words"),
    ({"note": [f"note {row}" for row in range(400)]}, "", "feature 'note' holds free text"),
    ({"seen": "2020-01-01"}, "", r"feature 'seen' holds dates; turn .*\('2020-01-01'"),
    ({"z": np.nan}, "", "feature 'z' has no value at all"),
    ({"y": np.nan}, "", "a.toml, line 3: target 'y' has values in 0 rows"),
    ({"y": -1.0}, "lower = 0", r"a.toml, line 4: .* 400 value\(s\) beyond its lower bound"),
    ({}, "[features]\ninclude = ['age']", "line 5: there is no column 'age'"),
    ({}, "[model]\nkind = 'network'\nfeature_sparsities = [0.5]", "line 6: feature_sparsities"),
    ({}, "[model]\nkind = 'tobit'", 'line 5: kind = "tobit" needs all rows in memory'),
    (
        {"x": lambda frame: frame.x.where(frame.index > 0)},
        "[features]\nmissing = 'error'",
        r"a.parquet, line 2: feature 'x' is missing .* in 1 row\(s\)",
    ),
]


@pytest.mark.parametrize(("columns", "settings", "sentence"), WRONG)
def test_what_is_wrong_is_said_with_its_place(
    columns: dict[str, Any], settings: str, sentence: str, tmp_path: Path
) -> None:
    _frame().assign(**columns).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match=sentence):
        stream_study(_study(tmp_path, f"[targets.y]\n{settings}"), tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (2 * ["a", "b"], "there are 2 groups of 'who', which are never split, and at least"),
        (["a", None, "b", "c"], "'who' is blank in"),
    ],
)
def test_groups_are_needed_in_every_row(groups: list[Any], sentence: str, tmp_path: Path) -> None:
    _frame().assign(who=100 * groups).to_parquet(tmp_path / "a.parquet")
    study = _study(tmp_path, "[targets.y]", 'group = "who"')
    with pytest.raises(StudyError, match=sentence):
        stream_study(study, tmp_path / "a.parquet")


def test_a_file_without_a_column_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "a.parquet"
    folder.mkdir()
    _frame().to_parquet(folder / "1.parquet")
    _frame().drop(columns="x").to_parquet(folder / "2.parquet")
    with pytest.raises(StudyError, match=r"^/.*2.parquet has no column 'x'; it has 'y', 'who'$"):
        stream_study(_study(tmp_path, "[targets.y]"), folder)


def test_too_little_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _frame(0).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match=r"a.parquet has a header but no row of data"):
        stream_study(_study(tmp_path, "[targets.y]"), tmp_path / "a.parquet")
    monkeypatch.setattr(stream, "_SHARE", 0.0)
    _frame(12).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match="0 of 12 rows would be held out, which leaves none"):
        stream_study(_study(tmp_path, "[targets.y]"), tmp_path / "a.parquet")
