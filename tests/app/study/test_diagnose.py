from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import build_data, diagnose, read_data, read_study
from deeptobit.app.study.data import WRITTEN
from deeptobit.app.study.doctor.features import dependences
from tests.app.study.problems import write_study

N_ROWS = 60


def _findings(folder: Path, study: str, data: str = "", **columns: object) -> list[str]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(70, 5, N_ROWS), "y": rng.normal(size=N_ROWS)})
    table = frame.assign(**columns).to_csv(index=False)  # type: ignore[arg-type]
    settings = read_study(write_study(folder, study, table, data=data))
    found = diagnose(settings, build_data(settings, read_data(settings)))
    return [f"{one.level} {one.name}: {one.message}" for one in found]


def test_nothing_to_say(tmp_path: Path) -> None:
    assert _findings(tmp_path, "[targets.y]\n") == []


def test_targets(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    latent = rng.normal(size=N_ROWS)
    mmse = np.clip(np.round(26 + 3 * latent), 0, 30)
    found = _findings(
        tmp_path,
        "[targets.floor]\n[targets.MMSE]\nlower = 0\n[targets.stuck]\nlower = 0\n[targets.rare]\n",
        floor=np.maximum(latent, -0.5),
        MMSE=mmse,
        stuck=np.where(np.arange(N_ROWS) < 1, 1.0, 0.0),
        rare=np.where(np.arange(N_ROWS) < 25, latent, np.nan),
    )
    start = "warning bound:floor: "
    [floor] = [one for one in found if one.startswith(start)]
    assert floor.endswith("of the values are -0.5, its smallest, and lower is not set")
    assert {one for one in found if not one.startswith(start)} == {
        "warning bound:MMSE: no upper bound, but MMSE (Folstein 1975) has one: 30",
        "warning target:stuck: 98% of the values are at its lower bound",
        "warning target:stuck: only 1 values lie between its bounds",
        "warning target:rare: 58% of the values are missing",
    }


def test_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(2, N_ROWS))
    found = _findings(
        tmp_path,
        "[targets.y]\n",
        constant=1,
        grams=1000 * left,
        left=left,
        right=right,
        both=left + right,
        site=["a"] * 40 + ["b"] * 18 + ["c"] * 2,
        blank=np.where(np.arange(N_ROWS) < 45, np.nan, right**2),
    )
    start = "warning collinear:features: linear combinations of other features: "
    assert len([one for one in found if one.startswith(start)]) == 1
    assert {one for one in found if not one.startswith(start)} == {
        "warning constant:features: the same value in every row of 'constant'",
        "warning sparse:features: at least 50% of the cells missing in 'blank'",
        "warning collinear:left: correlation 1 with 'grams'; exclude one",
        "note category:site: categories with fewer than 5 rows: 'c'",
        "note site:site: holds sites: as a feature it says nothing of people from a new one",
    }


def test_features_that_look_like_identifiers(tmp_path: Path) -> None:
    rows = np.arange(N_ROWS)
    found = _findings(
        tmp_path,
        "[targets.y]\n",
        PATNO=7 * rows + 3,
        scan=[f"{row * row:04d}" for row in rows],
        line=1001 + rows,
        age=30 + rows,
        year=1950 + rows,
        count=rows % 25,
        pid=rows % 2,
        code=rows % 3,
    )
    end = ", and is a feature"
    assert [message for message in found if "identifier" in message] == [
        f"warning identifier:PATNO: looks like an identifier (by its name){end}",
        f"warning identifier:scan: looks like an identifier (by its leading zeros){end}",
        f"warning identifier:line: looks like an identifier (it numbers the rows){end}",
    ]


@pytest.mark.parametrize("features", ["", '[features]\nexclude = ["Pat-ID"]\n'])
def test_people_whose_rows_would_be_split(features: str, tmp_path: Path) -> None:
    people = {"Pat-ID": np.arange(N_ROWS) // 2}
    assert _findings(tmp_path, f"{features}[targets.y]\n", "", **people) == [
        "warning people:Pat-ID: looks like an identifier that repeats, so that rows of a person "
        "may be both in the training and in the held-out rows"
    ]
    assert _findings(tmp_path, "[targets.y]\n", 'group = "Pat-ID"', **people) == []


def test_codes_for_missing_that_are_taken_for_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    bmi, volume, years = rng.normal(26, 3, N_ROWS), rng.normal(3e3, 300, N_ROWS), 9 + rng.random(60)
    weight = rng.normal(80, 12, N_ROWS).round()
    smokes = rng.integers(0, 2, N_ROWS)
    bmi[:3], volume[5:9], years[7:9], smokes[:2], weight[:3] = 999, -9, 99, -9, [97, 99, 101]
    columns = {"bmi": bmi, "volume": volume, "years": years, "smokes": smokes, "weight": weight}
    where = "where it is far from all values"
    expected = [
        f"warning code:-9: seems to mean missing in 'volume', 'smokes', {where}",
        f"warning code:99: seems to mean missing in 'years', {where}",
        f"warning code:999: seems to mean missing in 'bmi', {where}",
    ]
    found = _findings(tmp_path, "[targets.y]\n", "missing = [-4]", **columns)
    assert sorted(found) == sorted(expected)
    declared = "missing = [-4, -9, 999]"  # cells are -9.0 and 999.0
    assert _findings(tmp_path, "[targets.y]\n", declared, **columns) == expected[1:2]


def test_numbers_that_only_look_like_codes(tmp_path: Path) -> None:
    rows = np.arange(N_ROWS)
    rng = np.random.default_rng(4)
    columns = {
        "day": np.array([-7, 0, 7, 28])[rows % 4],
        "answer": rows % 3 - 1,
        "z": np.r_[-4, -4, rng.normal(0, 2, N_ROWS - 2)],
        "percent": rng.integers(80, 100, N_ROWS),
        "cells": np.r_[999, 999, rng.integers(200, 700, N_ROWS - 2)],
        "mostly": np.where(rows < 40, 999, rng.normal(size=N_ROWS)),
    }
    assert _findings(tmp_path, "[targets.y]\n", "", **columns) == []


def test_numbers_that_are_taken_for_categories(tmp_path: Path) -> None:
    dose = [f"{5 * (row % 4)}%" for row in range(N_ROWS)]
    message = f"read as categories, but holds {WRITTEN}"
    assert _findings(tmp_path, "[targets.y]\n", dose=dose) == [f"warning category:dose: {message}"]
    declared = '[features]\ncategorical = ["dose"]\n[targets.y]\n'
    assert _findings(tmp_path, declared, dose=dose) == []


def test_groups(tmp_path: Path) -> None:
    site = ["a"] * 40 + ["b"] * 19 + ["c"]
    found = _findings(tmp_path, "[targets.y]\n", 'group = "site"', site=site)
    assert found == [
        "warning group:site: 3 groups for 5 folds, which never split one: too few",
        "warning group:site: its largest group has 67% of the rows",
        "note group:site: 1 of 3 groups have one row",
    ]


def test_an_id_that_repeats_once_is_perhaps_a_mistake(tmp_path: Path) -> None:
    person = ["a", "a", *(f"p{row}" for row in range(2, N_ROWS))]
    found = _findings(tmp_path, "[targets.y]\n", 'group = "person"', person=person)
    assert len(found) == 1
    assert found[0].startswith(
        "warning group:person: nearly all groups have one row; if one is an id"
    )
    assert "id = 'person' in place of group says where" in found[0]


def test_a_target_of_one_value(tmp_path: Path) -> None:
    found = _findings(tmp_path, "[targets.flat]\n", flat=[25] * N_ROWS)
    assert found == [
        "warning constant:flat: is a target with the same value in every row; leave it out"
    ]


def test_a_subscale_with_its_own_bounds_is_right(tmp_path: Path) -> None:
    scores = np.random.default_rng(5).permutation(np.linspace(0, 100, N_ROWS).round())
    assert _findings(tmp_path, "[targets.sf36_pf]\nlower = 0\nupper = 100\n", sf36_pf=scores) == []


def test_units_that_no_name_suggests_are_those_of_any_column(tmp_path: Path) -> None:
    values = np.exp(np.random.default_rng(6).normal(0.0, 0.2, N_ROWS))
    values[:12] *= 1000.0
    [found] = _findings(tmp_path, "[targets.y]\n", marker=values)
    assert "a factor of 1000 apart: thousandths of the unit and the unit?" in found


def test_what_fit_will_refuse(tmp_path: Path) -> None:
    few = np.where(np.arange(N_ROWS) < 9, np.arange(N_ROWS), np.nan)
    found = _findings(tmp_path, "[targets.few]\n", few=few)
    [refused] = [one for one in found if one.startswith("warning rows:fit: will refuse: ")]
    assert "target 'few' has values in 9 rows and needs at least 10" in refused


def test_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    many = {f"x{i}": rng.normal(size=N_ROWS) for i in range(60)}
    y = np.where(np.arange(N_ROWS) < 3, np.nan, rng.normal(size=N_ROWS))
    assert _findings(tmp_path, "[targets.y]\n", "", y=y, **many) == [
        "note rows:features: 61 features for 60 rows: the model relies on its prior",
        "note rows:outcomes: 3 rows have no outcome and are left out",
    ]


def test_dependence_knows_scale_sign_and_constants() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    X = pd.DataFrame({"a": a, "minus": 5.0 - 1e6 * a, "b": b, "one": 1.0})
    assert dependences(X) == ([("a", "minus", -1.0)], [])
    assert len(dependences(X.assign(c=a - 2 * b).drop(columns="minus"))[1]) == 1
    assert dependences(X[["a", "b"]].assign(c=a - 2 * b).head(3))[1] == []
    assert dependences(X[["one"]]) == ([], [])
