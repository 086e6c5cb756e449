"""From a table nobody prepared to predictions, comparison and report, without editing anything."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import read_table
from tests.app.study.messy import write_messy_csv


def _run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*(str(argument) for argument in arguments), "--json"])
    assert result.exit_code == 0, result.stdout
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its study and its model: init, check, fit."""
    folder = tmp_path_factory.mktemp("clinic")
    write_messy_csv(folder / "kohorte.csv")
    _run("init", folder / "kohorte.csv")
    assert _run("check", folder / "kohorte.toml")["findings"] == []
    report = _run("fit", folder / "kohorte.toml", "--jobs", 1)
    assert (report["rows"], report["groups"]) == (150, 12)
    for target in report["targets"]:
        assert target["r2"] > 0.3, target
        assert target["crps"] < 0.8 * target["null_crps"], target
        assert 0.8 < target["coverage"] <= 1.0, target
    return folder


def test_new_people_are_predicted(folder: Path) -> None:
    cohort = read_table(write_messy_csv(folder / "neu.csv", seed=1))
    report = _run("predict", folder / "kohorte.deeptobit", folder / "neu.csv")
    assert report["rows"] == len(cohort)
    predicted = read_table(folder / "neu-predictions.csv")
    assert predicted.text("Proband").tolist() == cohort.text("Proband").tolist()
    mmse, low, high = (predicted.numbers(f"MMSE{end}") for end in ("", " low", " high"))
    truth = cohort.numbers("MMSE")
    known = ~np.isnan(truth)
    assert np.corrcoef(mmse[known], truth[known])[0, 1] > 0.6
    assert ((low <= truth) & (truth <= high))[known].mean() > 0.8
    assert (high <= 30.0).all()


def test_the_network_is_compared_with_other_methods(folder: Path) -> None:
    quick = ("--methods", "null,ridge,network", "--repeats", 1, "--train-shares", 0.7)
    report = _run("evaluate", folder / "kohorte.toml", *quick, "--out", folder / "results")
    r2 = {row["method"]: row["mean"] for row in report["summary"] if row["measure"] == "r2"}
    assert r2["null"] < 0.1 < 0.3 < r2["network"]
    assert r2["network"] > r2["ridge"] - 0.1
    assert report["skipped"] == []
    assert "network" in (folder / "results" / "summary.html").read_text(encoding="utf-8")


def test_a_page_tells_it_all(folder: Path) -> None:
    written = _run("report", folder / "kohorte.deeptobit")
    assert written["targets"] == 3
    page = (folder / "kohorte.html").read_text(encoding="utf-8")
    assert len(page.encode()) == written["bytes"]
    text = _text(page)
    assert re.search(r"The study predicts 3 outcomes from \d features", text)
    assert "12 groups kept together" in text
    assert "Hippocampus µl" in text
    for number in ("nan", "inf", "None"):
        assert not re.search(rf"\b{number}\b", text), number
    for name in ("0001", "0150"):
        assert not re.search(rf"\b{name}\b", text), "a page has no ids"


def _text(page: str) -> str:
    """What a reader sees: no pictures, no style, no script."""
    bare = re.sub(r"<(svg|style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())
