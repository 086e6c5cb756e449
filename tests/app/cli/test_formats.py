"""The same cohort in every kind of file gives the same numbers, from init to predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import read_table
from fuzz.tables import write_ods, write_xls

N_ROWS = 60
Write = Callable[[pd.DataFrame, Path], None]


def _cohort() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, volume = rng.normal(70.0, 8.0, N_ROWS).round(1), rng.normal(3.0, 0.3, N_ROWS).round(3)
    sex = rng.choice(["f", "m"], N_ROWS)
    mmse = 27.0 + 6.0 * (volume - 3.0) + (sex == "f") + rng.normal(size=N_ROWS)
    mmse = np.clip(np.round(mmse), 0, 30)
    mmse[3] = -4.0
    age[5] = np.nan
    ids = [f"{row:04d}" for row in range(N_ROWS)]
    return pd.DataFrame({"id": ids, "age": age, "volume": volume, "sex": sex, "MMSE": mmse})


def _coded(table: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
    return table.assign(sex=table["sex"].map({"f": 1, "m": 2})), {"sex": {1: "f", 2: "m"}}


def _write_sav(table: pd.DataFrame, path: Path) -> None:
    coded, labels = _coded(table)
    labels["MMSE"] = {-4: "refused"}
    ranges: Any = {"MMSE": [{"lo": -9, "hi": -1}]}
    pyreadstat.write_sav(coded, path, variable_value_labels=labels, missing_ranges=ranges)


def _write_dta(table: pd.DataFrame, path: Path) -> None:
    coded, labels = _coded(table)
    pyreadstat.write_dta(coded, path, variable_value_labels=labels)


def _write_folder(table: pd.DataFrame, path: Path) -> None:
    path.mkdir()
    for part, rows in enumerate((table.iloc[:25], table.iloc[25:])):
        rows.to_parquet(path / f"part-{part}.parquet", index=False)


FORMATS: dict[str, Write] = {
    "a.csv": lambda table, path: table.to_csv(path, index=False),
    "a.xlsx": lambda table, path: table.to_excel(path, index=False),
    "a.ods": write_ods,
    "a.xls": write_xls,
    "a.sav": _write_sav,
    "a.dta": _write_dta,
    "a.parquet": lambda table, path: table.to_parquet(path, index=False),
    "a.arrow": lambda table, path: table.to_feather(path),
    "a": _write_folder,
}


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _follow(name: str, folder: Path) -> tuple[dict[str, object], pd.DataFrame]:
    """What check found, and the predictions of the fitted model."""
    FORMATS[name](_cohort(), folder / name)
    _run("init", folder / name)
    study = folder / "a.toml"
    text = study.read_text().replace('kind = "auto"', 'kind = "tobit"').replace("# cv = 5", "cv=2")
    study.write_text(text)
    checked = json.loads(_run("check", study, "--json"))
    fitted = json.loads(_run("fit", study, "--jobs", 1, "--json"))
    _run(
        "predict", folder / "a.deeptobit", folder / name, "--only", "id", "--out", folder / "p.csv"
    )
    numbers = {key: fitted[key] for key in ("rows", "held_out_rows", "features", "targets")}
    return {**checked, **numbers}, pd.read_csv(folder / "p.csv", dtype={"id": str})


@pytest.fixture(scope="module")
def of_csv(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], pd.DataFrame]:
    return _follow("a.csv", tmp_path_factory.mktemp("csv"))


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "a.csv"])
def test_every_format_gives_the_numbers_of_csv(
    name: str, of_csv: tuple[dict[str, object], pd.DataFrame], tmp_path: Path
) -> None:
    found, predictions = _follow(name, tmp_path)
    assert found == of_csv[0]
    pd.testing.assert_frame_equal(predictions, of_csv[1], check_exact=True)
    assert predictions["id"].tolist() == _cohort()["id"].tolist()
    assert found["rows"] == N_ROWS - 1  # one outcome is a code for missing


def test_compressed_files_of_spss_are_the_same_table(tmp_path: Path) -> None:
    tables = []
    for path in (tmp_path / "a.sav", tmp_path / "a.zsav"):
        _write_sav(_cohort(), path)
        tables.append(read_table(path))
    for name in tables[0].columns:
        assert tables[1].text(name).tolist() == tables[0].text(name).tolist()
