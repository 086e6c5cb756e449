"""From the command line to a table beyond memory and back."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import load_fitted, read_table
from deeptobit.arrays import FloatArray
from deeptobit.scale import rounds as _rounds
from deeptobit.scale.rounds import ShardedProblem
from tests.app.study.streams import write_parquet


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with a study that was streamed, and what the command said."""
    folder = tmp_path_factory.mktemp("cohort")
    _, _, table = write_parquet(folder, n_people=200, n_files=2)
    code, shown, said = _run(
        "fit", folder / "cohort.toml", "--data", table, "--memory", "200kB", "--jobs", 1
    )
    assert code == 0, said
    return folder, shown, said


def test_fit_says_why_it_streams_and_what_that_means(streamed: tuple[Path, str, str]) -> None:
    folder, shown, said = streamed
    assert said == (
        "cohort (400 rows × 9 columns) would take about 960.0 kB, more than half of the 200.0 kB "
        "of available memory, so its rows are streamed, and a network is fitted to nine tenths of "
        "them or more without cross-validation."
    )
    assert "400 rows, 4 features, 3 target(s); streaming them gave 1 layer of rank 3" in shown
    assert "40 were held out at random: the model has not seen them, nor any other row" in shown
    assert " s, and its model card (cohort-card.md and cohort-card.json)" in shown
    table = load_fitted(folder / "cohort.deeptobit").held_out.table()
    assert f"MMSE 0 – 30 40 {table['r2'].iloc[0]:.2f}" in shown


def test_what_comes_after_works_as_ever(streamed: tuple[Path, str, str], tmp_path: Path) -> None:
    shutil.copy(streamed[0] / "cohort.deeptobit", tmp_path)
    model = tmp_path / "cohort.deeptobit"
    new = "visit,age,sex,volume,lod\n007,70,f,3000,0.5\n008,75,m,3500,0.9\n"
    (tmp_path / "new.csv").write_text(new)
    code, _, error = _run("predict", model, tmp_path / "new.csv")
    assert (code, error) == (0, "")
    table = read_table(tmp_path / "new-predictions.csv")
    assert table.text("visit").tolist() == ["007", "008"]
    assert (table.numbers("tau low") >= [0.5, 0.9]).all()
    assert (table.numbers("MMSE") <= 30).all()
    assert _run("report", model)[0] == 0
    page = " ".join((tmp_path / "cohort.html").read_text().split())
    assert "40 were held out at random" in page
    assert "by a rule, since rows were streamed" in page
    assert _run("export", model)[0] == 0
    card = json.loads((streamed[0] / "cohort-card.json").read_text())
    assert (card["data"]["rows"], card["data"]["held_out_rows"]) == (400, 40)
    assert card["model"]["class"] == "SubspaceNetworkRegressor"


def test_with_room_enough_nothing_changes(tmp_path: Path) -> None:
    _, _, table = write_parquet(tmp_path, n_people=20, cv=2)
    options = ("--data", table, "--memory", "1GB", "--jobs", 1, "--json")
    code, shown, error = _run("fit", tmp_path / "cohort.toml", *options)
    report = json.loads(shown)
    assert (code, error) == (0, "")
    assert (report["streamed"], report["rows"], report["held_out_rows"]) == (False, 40, 40)


def test_streaming_for_machines(tmp_path: Path) -> None:
    _, _, table = write_parquet(tmp_path, n_people=100, grouped=False)
    options = ("--data", table, "--memory", "10kB", "--json")
    code, shown, said = _run("fit", tmp_path / "cohort.toml", *options)
    report = json.loads(shown)
    assert (code, report["streamed"], report["rows"], report["groups"]) == (0, True, 200, None)
    assert 5 <= report["held_out_rows"] <= 40
    assert "a network is fitted to nine tenths of them or more without cross-validation." in said


def test_a_stopped_fit_goes_on_from_its_checkpoint(
    streamed: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, out = tmp_path / "fit.checkpoint", tmp_path / "again.deeptobit"
    table = streamed[0] / "cohort"
    fit = ("fit", streamed[0] / "cohort.toml", "--data", table, "--memory", "200kB")
    command = (*fit, "--jobs", 1, "--out", out, "--checkpoint", checkpoint)
    rounds = []

    def stop_at_the_third(self: ShardedProblem, point: FloatArray, tasks: object = None) -> Any:
        rounds.append(point)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return evaluate(self, point, tasks)

    evaluate = ShardedProblem.evaluate
    monkeypatch.setattr(ShardedProblem, "evaluate", stop_at_the_third)
    assert _run(*command)[0] == 130
    assert (checkpoint.exists(), out.exists()) == (True, False)
    code, _, error = _run(*command[:-1], table)
    refusal = "is already used by this command; --checkpoint writes elsewhere"
    assert (code, refusal in error) == (1, True)
    code, _, error = _run(*command[:-1], out.with_name(f"{out.stem}-card.json"))
    assert (code, refusal in error) == (1, True)
    monkeypatch.setattr(_rounds, "SumMoments", None)  # the first pass is not made again
    assert _run(*command)[0] == 0
    assert not checkpoint.exists()
    models = [load_fitted(file).model for file in (out, streamed[0] / "cohort.deeptobit")]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_fit_in_memory_leaves_a_file_at_the_checkpoint_alone(
    streamed: tuple[Path, str, str], tmp_path: Path
) -> None:
    mine, out = tmp_path / "mine.txt", tmp_path / "in-memory.deeptobit"
    mine.write_text("not a checkpoint")
    fit = ("fit", streamed[0] / "cohort.toml", "--data", streamed[0] / "cohort", "--jobs", 1)
    assert _run(*fit, "--out", out, "--checkpoint", mine)[0] == 0
    assert mine.read_text() == "not a checkpoint"
    code, _, error = _run(*fit, "--memory", "200kB", "--out", tmp_path / "b", "--checkpoint", mine)
    assert (code, "mine.txt" in error) == (1, True)
    assert mine.read_text() == "not a checkpoint"


def test_a_csv_file_is_streamed_as_its_parquet_file_is(tmp_path: Path) -> None:
    write_parquet(tmp_path, n_people=100)
    study, models = tmp_path / "cohort.toml", []
    code, shown, _ = _run("convert", tmp_path / "cohort.csv", "--force")
    assert (code, "cohort.parquet: 200 row(s)." in shown) == (0, True)
    for kind in ("csv", "parquet"):
        data = ("--data", tmp_path / f"cohort.{kind}", "--out", tmp_path / f"{kind}.deeptobit")
        code, _, said = _run("fit", study, "--memory", "10kB", *data)
        assert (code, "so its rows are streamed" in said) == (0, True)
        models.append(load_fitted(tmp_path / f"{kind}.deeptobit"))
    assert [fitted.n_rows for fitted in models] == [200, 200]
    np.testing.assert_allclose(models[0].model.coef_, models[1].model.coef_, rtol=1e-10)


def test_wrong_amounts_and_files_are_one_sentence(tmp_path: Path) -> None:
    _, _, table = write_parquet(tmp_path, n_people=20)
    study = tmp_path / "cohort.toml"
    code, _, error = _run("fit", study, "--memory", "plenty")
    assert code == 1
    assert error == "deeptobit: an amount of memory is written 500MB or 4GB; got 'plenty'"
    table.write_bytes(table.read_bytes()[:-100])
    code, _, error = _run("fit", study, "--data", table, "--memory", "10kB")
    assert (code, error) == (
        1,
        "deeptobit: cohort.parquet cannot be read as a Parquet file; write it again",
    )
    code, shown, _ = _run("convert", tmp_path / "cohort.csv", "--json")
    assert (code, "exists; --force replaces it" in json.loads(shown)["error"]) == (1, True)
    code, shown, _ = _run("convert", tmp_path / "cohort.csv", "--json", "--force")
    assert (code, json.loads(shown)) == (0, {"parquet": str(table), "rows": 40})
    assert len(pd.read_parquet(table)) == 40
