"""Counts under five, and what would tell them, are told only where they are asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.report import card_markdown, render_report, study_card
from deeptobit.app.report.page import outcome_rows
from deeptobit.app.report.pictures import draw_outcomes, drawn_rows
from deeptobit.app.report.privacy import histogram_bins, published
from deeptobit.app.study import FEWEST, Finding, FittedStudy, load_fitted
from deeptobit.app.study.columns import reveals_small_count
from deeptobit.app.study.evaluation import Split, find_usable
from deeptobit.inspection import pit_values
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets
from tests.privacy.canaries import N_ROWS, RARE, run


@pytest.fixture(scope="module")
def fitted(clinic: Path) -> FittedStudy:
    return load_fitted(clinic / "clinic.deeptobit")


def test_rare_categories_have_no_name(clinic: Path, fitted: FittedStudy) -> None:
    assert fitted.encoder.rare == {f"condition={RARE}": "condition=rare category 1"}
    page = (clinic / "clinic.html").read_text(encoding="utf-8")
    assert RARE not in page
    assert "condition=rare category 1" in page
    assert "categories with fewer than 5 rows<" in page


def test_the_mean_of_a_rare_flag_is_not_told(fitted: FittedStudy) -> None:
    shown = {row["name"]: row for row in study_card(fitted)["data"]["features"]}
    assert (shown["implant"]["mean"], shown["implant"]["sd"]) == (None, None)
    assert shown["volume"]["mean"] is not None
    asked = study_card(fitted, small_counts=True)["data"]["features"]
    (implant,) = [row for row in asked if row["name"] == "implant"]
    assert implant["mean"] == pytest.approx(3 / N_ROWS)


@pytest.fixture(scope="module")
def asked(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the command, with small counts."""
    path = tmp_path_factory.mktemp("asked") / "asked.html"
    run("report", clinic / "clinic.deeptobit", "--out", path, "--small-counts")
    return path.read_text(encoding="utf-8")


def test_small_counts_are_told_where_they_are_asked_for(fitted: FittedStudy, asked: str) -> None:
    page, card = asked, study_card(fitted, small_counts=True)
    assert f"condition={RARE}" in page
    assert "not for publication" in page
    assert "not for publication" in card_markdown(card)
    assert RARE in json.dumps(card["findings"])
    assert "no counts from 1 to 4" in card_markdown(study_card(fitted))


def test_a_study_may_ask_for_them(fitted: FittedStudy) -> None:
    asking = replace(fitted, text=f"{fitted.text}\n[report]\nsmall_counts = true\n")
    assert RARE in render_report(asking)
    assert RARE in json.dumps(study_card(asking))
    assert RARE not in json.dumps(study_card(asking, small_counts=False))


def test_so_may_the_command(clinic: Path, asked: str) -> None:
    assert RARE in asked
    assert RARE not in (clinic / "clinic.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("3 of 20 groups have one row", "fewer than 5 of 20 groups have one row"),
        ("18 of 20 groups have one row", "over 15 of 20 groups have one row"),
        ("10 of 20 groups have one row", "10 of 20 groups have one row"),
        ("98% of the values are at its lower bound", "nearly all of the values are at its lower"),
        ("its largest group has 93% of the rows", "its largest group has most of the rows"),
        ("categories with fewer than 5 rows: 'a', 'b'", "categories with fewer than 5 rows"),
        ("features 'dx=a' are constant", "features 'dx=rare category 1' are constant"),
        ("14 rows have no target", "14 rows have no target"),
    ],
)
def test_findings(message: str, told: str) -> None:
    finding = Finding("note", "dx=a", message)
    (remark,) = published([finding], {"dx=a": "dx=rare category 1"})
    assert remark.message.startswith(told)
    assert remark.about == "dx=rare category 1"
    (asked,) = published([finding], min_count=1)
    assert tuple(asked) == tuple(finding)


def test_others_cannot_be_subtracted_from_a_total() -> None:
    """60 rows, 58 values, 56 of them at a bound: neither the 2 nor the 4 are told."""
    entries = {"lower": 0.0, "upper": 30.0, "entries": 58, "at_lower": 0.0, "at_upper": 56 / 58}
    measures = {
        f"{of}{name}": 57 / 58 for of in ("", "null_") for name in ("mae", "r2", "crps", "coverage")
    }
    table = pd.DataFrame([entries | measures], index=["MMSE"])
    (row,) = outcome_rows(table, 60, 0.9)
    assert [cell.text for cell in row.cells[1:4]] == ["over 55", "0 %", "all but < 5 rows"]
    assert [cell.key for cell in row.cells[1:4]] == [None, 0.0, None]
    assert row.cells[-2].key == 0.98, "with more digits it would be 57 of 58"
    (asked,) = outcome_rows(table, 60, 0.9, min_count=1)
    assert [cell.text for cell in asked.cells[1:4]] == ["58", "0 %", "97 %"]
    (few,) = outcome_rows(table.assign(entries=3), 60, 0.9)
    assert {cell.text for cell in few.cells[4:]} == {"–"}


def test_bars_are_merged_until_none_is_small() -> None:
    rng = np.random.default_rng(0)
    for n_rows in (12, 40, 400):
        Y = rng.normal(size=(n_rows, 1))
        targets = CensoredTargets.from_bounds(Y)
        predictive = Predictive(Gaussian(), np.zeros((n_rows, 1)), np.ones(1))
        counts, _ = np.histogram(
            pit_values(targets, predictive), histogram_bins(targets, predictive), (0.0, 1.0)
        )
        assert not set(counts) & {1, 2, 3, 4}
    assert histogram_bins(targets, predictive) == 10
    few = targets[:3]
    assert histogram_bins(few, replace(predictive, latent=np.zeros((3, 1)))) == 1


@pytest.mark.parametrize(
    ("n_there", "n_drawn", "n_asked"), [(2, 58, 60), (5, 60, 60), (57, 57, 60), (60, 60, 60)]
)
def test_values_at_a_bound_that_few_have_are_not_drawn(
    n_there: int, n_drawn: int, n_asked: int
) -> None:
    Y = np.append(np.linspace(1.0, 20.0, 60 - n_there), np.full(n_there, 30.0))[:, None]
    targets = CensoredTargets.from_bounds(Y, 0.0, 30.0)
    assert drawn_rows(targets, 0, FEWEST).size == n_drawn
    assert drawn_rows(targets, 0, 1).size == n_asked


def test_an_outcome_of_which_every_kind_is_rare_has_no_picture(fitted: FittedStudy) -> None:
    held_out, table = fitted.held_out, fitted.held_out.table()
    assert len(draw_outcomes(held_out, table)) == len(table)
    Y = np.tile([[0.0], [0.0], [1.0], [2.0], [30.0]], (1, len(table)))
    few = CensoredTargets.from_bounds(Y, 0.0, 30.0)
    predictive = Predictive(Gaussian(), np.ones_like(Y), np.ones(len(table)), few.lower, few.upper)
    small = replace(held_out, targets=few, predictive=predictive)
    assert draw_outcomes(small, table) == []
    assert len(draw_outcomes(small, table, min_count=1)) == len(table)


def test_few_test_values_are_not_compared() -> None:
    """Their R² would be that of one or two people."""
    rng = np.random.default_rng(0)
    Y = np.maximum(rng.normal(size=(60, 2)), 0.0)
    Y[34:, 1] = np.nan
    Y[[40, 50], 1] = [1.0, 2.0]
    split = Split(0.5, 0, np.arange(34), np.arange(34, 60))
    folds = [(np.arange(30), np.arange(30, 34))]
    usable, (skipped,) = find_usable(CensoredTargets.from_bounds(Y), split, folds)
    assert usable == [0]
    assert skipped.reason == "fewer than 5 values to test on"


def test_which_columns_tell() -> None:
    values = np.array([1.0, 2.0] * 10 + [np.nan])
    assert not reveals_small_count(values)
    assert reveals_small_count(np.append(values, 3.0))
    assert not reveals_small_count(np.full(3, 7.0))
    assert not reveals_small_count(np.arange(30.0))


def test_no_number_of_the_page_is_a_small_count(clinic: Path) -> None:
    """Two people have the rare condition, three the implant."""
    page = (clinic / "clinic.html").read_text(encoding="utf-8")
    page = re.sub(r"<(svg|style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert not re.search(r"\b[1-4] (rows|values|people|groups)\b", text)
