import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.app.study import (
    build_data,
    diagnose,
    make_model,
    propose_study,
    read_data,
    read_study,
    read_table,
)
from deeptobit.app.study.columns import number_repair
from deeptobit.app.study.propose import Proposal, inspect_table
from tests.app.study.messy import N_ROWS, write_messy_csv


def _propose(folder: Path, columns: dict[str, list[object]]) -> Proposal:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (folder / "a.csv").write_text("\n".join(lines))
    return inspect_table(read_table(folder / "a.csv"))


def test_a_messy_table_becomes_a_study_that_fits(tmp_path: Path) -> None:
    path = write_messy_csv(tmp_path / "kohorte.csv")
    text, proposal = propose_study(read_table(path), path.name)
    assert (proposal.id, proposal.group) == ("Proband", "site")
    assert list(proposal.excluded) == ["Visite", "Notiz", "Gerät"]
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = read_study(tmp_path / "study.toml")
    assert [(t.name, t.lower, t.upper) for t in study.targets] == [
        ("MMSE", 0, 30),
        ("ADAS13", 0, 85),
        ("Tau", 0.4, None),
    ]
    data = build_data(study, read_data(study))
    assert list(data.X.index[:2]) == ["0001", "0002"]
    assert len(data.X) == N_ROWS
    assert {"Alter", "Geschlecht=w", "Zentrum=Zentrum 1"} <= set(data.X.columns)
    assert not [finding for finding in diagnose(study, data) if finding.level == "warning"]
    model: Any = make_model(study)
    model.fit(data.X, data.targets, groups=data.groups)
    assert model.score(data.X, data.targets) > 0.5
    assert model.predict(data.encoder.encode(read_table(path))).shape == (N_ROWS, 3)


def test_people_seen_more_than_once_are_the_group(tmp_path: Path) -> None:
    proposal = _propose(tmp_path, {"subject_id": [i // 2 for i in range(40)], "age": [*range(40)]})
    assert (proposal.id, proposal.group) == (None, "subject_id")


@pytest.mark.parametrize(
    "name",
    [
        *("Patienten-ID", "PatientenID", "Patientennummer", "Pat-ID", "Pat_Nr", "Fallnummer"),
        *("Probanden-Nr", "PATNO", "USUBJID", "ID_Patient", "pid", "eid", "Study ID", "SUBJID"),
        *("patient identifier", "Chart No.", "Teilnehmer-Nr."),
    ],
)
def test_numbers_of_people_are_known_by_their_name(name: str, tmp_path: Path) -> None:
    ages: list[object] = [*range(40)]
    visits = _propose(tmp_path, {name: [101 + i // 2 for i in range(40)], "age": ages})
    assert (visits.id, visits.group, visits.excluded) == (None, name, {})
    once = _propose(tmp_path, {"age": ages, name: [7 * i + 3 for i in range(40)]})
    assert (once.id, once.group, once.excluded) == (name, None, {})


def test_digits_with_leading_zeros_are_identifiers(tmp_path: Path) -> None:
    def proposal(rows: list[int], name: str = "Name") -> Proposal:
        return _propose(tmp_path, {"age": [*range(60)], name: [f"{row:03d}" for row in rows]})

    assert proposal([*range(60)]).id == "Name"
    assert proposal([row // 2 for row in range(60)]).group == "Name"
    barthel = proposal([row % 21 for row in range(60)], "Barthel")
    assert (barthel.group, [target.column for target in barthel.targets]) == (None, ["Barthel"])
    several = {"id": [*range(60)], "scan": [f"{7 * row:04d}" for row in range(60)]}
    found = _propose(tmp_path, {**several, "age": [*range(60)]})
    assert (found.id, found.excluded) == ("id", {"scan": "an identifier, by its leading zeros"})


def test_a_flag_is_no_identifier_whatever_its_name(tmp_path: Path) -> None:
    ages: list[object] = [*range(40)]
    proposal = _propose(tmp_path, {"age": ages, "PID": [i % 2 for i in range(40)]})
    assert (proposal.id, proposal.group, proposal.excluded) == (None, None, {})


def test_few_sites_are_a_category_not_a_group(tmp_path: Path) -> None:
    proposal = _propose(tmp_path, {"site": [i % 4 for i in range(40)], "age": [*range(40)]})
    assert (proposal.group, proposal.categorical) == (None, ["site"])


def test_row_names_are_an_id(tmp_path: Path) -> None:
    assert _propose(tmp_path, {"": [*range(30)], "age": [*range(30)]}).id == "column_1"


def test_a_detection_limit_and_a_flag_beside_an_assay(tmp_path: Path) -> None:
    values: list[object] = [*range(1, 31)]
    flags: list[object] = [0, 1] * 15
    proposal = _propose(
        tmp_path, {"tau": values, "tau_LOD": [0.5, 1] * 15, "crp": values, "crp_below": flags}
    )
    assert [(t.column, t.bounds) for t in proposal.targets] == [
        ("tau", {"lower": "tau_LOD"}),
        ("crp", {"below": "crp_below"}),
    ]


def test_floors_are_targets_only_if_nothing_better_is_known(tmp_path: Path) -> None:
    dose: list[object] = [0.0] * 10 + [*range(1, 31)]
    alone = _propose(tmp_path, {"dose": dose, "age": [*range(40)]})
    assert [(t.column, t.bounds, t.certain) for t in alone.targets] == [
        ("dose", {"lower": 0}, True)
    ]
    beside = _propose(tmp_path, {"dose": dose, "MMSE": [20 + i % 10 for i in range(40)]})
    assert [(t.column, t.certain) for t in beside.targets] == [("MMSE", True), ("dose", False)]
    text, _ = propose_study(read_table(tmp_path / "a.csv"), "a.csv")
    assert list(tomllib.loads(text)["targets"]) == ["MMSE"]
    assert "# [targets.dose]  # 25% of the values are 0, the smallest" in text


def test_codes_for_missing_do_not_hide_a_scale(tmp_path: Path) -> None:
    proposal = _propose(tmp_path, {"MMSE": [-4, *range(1, 30)], "ess": [*range(100, 130)]})
    assert [(t.column, t.bounds) for t in proposal.targets] == [("MMSE", {"lower": 0, "upper": 30})]
    assert proposal.targets[0].why.endswith("but -4 to 29 here: codes for missing?")


def test_subscales_of_the_sf36_are_targets_where_they_stand_together(tmp_path: Path) -> None:
    scores: list[object] = [*range(0, 101, 5)]
    names = ("PF", "RP", "BP", "GH", "VT", "SF", "RE", "MH")
    norms: list[object] = [20 + i for i in range(21)]
    proposal = _propose(tmp_path, {name: scores for name in names} | {"PCS": norms, "MCS": norms})
    assert [target.column for target in proposal.targets] == list(names)
    assert proposal.targets[2].bounds == {"lower": 0, "upper": 100}
    assert proposal.targets[2].why == "SF-36 bodily pain (Ware & Sherbourne 1992)"
    alone = _propose(tmp_path, {"BP": scores, "RE": scores, "PCS": norms})
    assert alone.targets == []


def test_items_of_a_scale_are_not_the_scale(tmp_path: Path) -> None:
    items: dict[str, list[object]] = {f"phq9_{k}": [i % 4 for i in range(40)] for k in range(1, 10)}
    proposal = _propose(tmp_path, {**items, "phq9_total": [i % 28 for i in range(40)]})
    assert [target.column for target in proposal.targets if target.certain] == ["phq9_total"]


def test_words_among_numbers_are_pointed_out(tmp_path: Path) -> None:
    proposal = _propose(tmp_path, {"age": ["unknown", *range(29)], "x": [*range(30)]})
    assert proposal.excluded == {"age": "numbers and words; list the words in [data] missing"}


def test_numbers_in_an_unusual_form_are_not_called_text(tmp_path: Path) -> None:
    rows = range(30)
    proposal = _propose(
        tmp_path,
        {
            "vol": [f'"{row},5"' for row in rows],
            "some": [f'"{row},5"' if row % 3 == 0 else row for row in rows],
            "CD4": [f"{row + 10}%" for row in rows],
            "lymph": [f'"{row + 1}.250,5"' for row in rows],
            "cells": [f'"{row + 1},250"' for row in rows],
            "note": [f"see page {row}" for row in rows],
            "age": [*rows],
        },
    )
    assert proposal.excluded == {"note": "free text, an identifier or over 20 categories"}
    table = read_table(tmp_path / "a.csv")
    assert {name: number_repair(table, name) for name in table.columns} == {
        "vol": {"decimal_comma": True},
        "some": {"decimal_comma": True},
        "CD4": {"remove": ("%",)},
        "lymph": {"remove": (".",)},
        "cells": {"remove": (",",)},
        "note": {},
        "age": {},
    }


def test_without_any_target_the_file_says_how_to_name_one(tmp_path: Path) -> None:
    ages = np.random.default_rng(0).normal(size=40).tolist()
    _propose(tmp_path, {"age": ages})
    text, _ = propose_study(read_table(tmp_path / "a.csv"), "a.csv")
    assert "No column looks like a bounded score" in text
    assert "targets" not in tomllib.loads(text)


def test_names_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"MMSE ""total""",x\n1,2\n2,3\n')
    table = read_table(tmp_path / "a.csv")
    text, _ = propose_study(table, 'odd "name".csv')
    content = tomllib.loads(text)
    assert content["data"]["file"] == 'odd "name".csv'
    assert list(content["targets"]) == ['MMSE "total"']
