"""Model cards: the numbers they must have, and what they must not tell."""

import json
import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import CensoredTargets, SubspaceNetworkCV, TobitRegressor, __version__, metrics
from deeptobit.app.report import card_markdown, model_card, study_card, write_card
from tests.app.report.studies import HOSTILE, N_ROWS, N_TARGETS, SECRET, cohort_study, one_outcome
from tests.estimators.problems import bounded, censored, one_task


def test_a_study() -> None:
    fitted = cohort_study()
    card, table = study_card(fitted), fitted.held_out.table()
    assert card["name"] == "cohort"
    assert (card["data"]["rows"], card["data"]["groups"]) == (N_ROWS, N_ROWS // 2)
    assert len(card["data"]["targets"]) == len(card["scores"]["targets"]) == N_TARGETS
    for score, (name, row) in zip(card["scores"]["targets"], table.iterrows(), strict=True):
        assert score["name"] == name
        assert score["crps"] == pytest.approx(row["crps"], rel=5e-3)
        assert score["null_r2"] == pytest.approx(row["null_r2"], rel=5e-3)
    features = {feature["name"]: feature for feature in card["data"]["features"]}
    assert len(features) == 41
    assert features["sex"] == {
        "name": "sex",
        "kind": "2 categories",
        "mean": None,
        "sd": None,
        "missing_cells": "none",
    }
    column = fitted.model.feature_names_in_.tolist().index("marker 7")
    deviation = fitted.model.feature_scale_[column]
    assert features["marker 7"]["sd"] == pytest.approx(deviation, rel=5e-3)
    assert card["settings"]["model.ranks"] == [2]
    assert card["made_with"]["deeptobit"] == __version__


def test_a_card_is_plain_json_and_markdown(tmp_path: Path) -> None:
    card = study_card(cohort_study())
    for_people, for_machines = write_card(card, tmp_path / "cohort.deeptobit")
    assert json.loads(for_machines.read_text(encoding="utf-8")) == card
    text = for_people.read_text(encoding="utf-8")
    for heading in ("Model", "Data", "Scores", "Settings", "Made with"):
        assert f"\n## {heading}\n" in text
    json.dumps(card, allow_nan=False)


def test_names_are_text() -> None:
    """Neither HTML nor Markdown nor a cell of its own."""
    text = card_markdown(study_card(cohort_study()))
    assert "<img" not in text
    assert "<script" not in text
    assert HOSTILE.replace("<", "&lt;").split("$")[0] in text
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.M)
    assert len(tables) == 4
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_no_person_is_in_it() -> None:
    fitted = cohort_study()
    assert SECRET not in json.dumps(study_card(fitted))
    values = fitted.held_out.targets.values[:, 0].copy()
    values[3:] = np.nan
    few = CensoredTargets.from_bounds(values[:, None], names=["rare"])
    lost = np.full((N_ROWS, 1), 1.0)
    lost[:2] = np.nan
    most = CensoredTargets.from_bounds(lost, 0.0, 1.0, names=["most"])
    for targets, told in ((few, "fewer than 5"), (most, "over 145")):
        card = study_card(replace(fitted, held_out=_held_out(fitted, targets), model=_one(fitted)))
        (target,), (score,) = card["data"]["targets"], card["scores"]["targets"]
        assert target["values"] == told
        if targets is few:
            assert {value for key, value in score.items() if key != "name"} == {None}


def test_bounds_by_row() -> None:
    card = study_card(one_outcome('lower = "limit"\nupper = 2\noutside = "clip"\n'))
    (target,) = card["model"]["targets"]
    assert (target["lower"], target["upper"]) == ("by row", 2.0)


def test_an_estimator_and_rows_it_has_not_seen() -> None:
    X, Y = censored(n_samples=200)
    model = bounded().fit(X[:150], Y[:150])
    card = model_card(model, X[150:], Y[150:], name="clinic")
    assert (card["name"], card["data"]["rows"]) == ("clinic", 50)
    error = metrics.centred_anmse(Y[150:], model.predict(X[150:]), multioutput="raw_values")
    scores = [score["r2"] for score in card["scores"]["targets"]]
    np.testing.assert_allclose(scores, 1.0 - error, rtol=5e-3)
    shares = [target["at_lower"] for target in card["data"]["targets"]]
    np.testing.assert_allclose(shares, (Y[150:] == 0.0).mean(axis=0), atol=0.005)
    assert card["settings"]["upper"] == 3.0
    json.dumps(card, allow_nan=False)


def test_an_estimator_alone() -> None:
    X, y = one_task()
    search = SubspaceNetworkCV(cv=2, alphas=[1.0], ranks=[1], max_layers=1, upper=3.0).fit(X, y)
    card = model_card(search)
    assert list(card["scores"]) == ["cross_validated_r2"]
    assert card["scores"]["cross_validated_r2"] == pytest.approx(search.best_score_, rel=5e-3)
    assert [feature["name"] for feature in card["data"]["features"]] == ["x0", "x1", "x2"]
    assert model_card(search, X, y)["data"]["rows"] == len(y)
    assert "## Scores" not in card_markdown(model_card(TobitRegressor(upper=3.0).fit(X, y)))
    with pytest.raises(ValueError, match="pass both, or neither"):
        model_card(search, X)


def test_settings_that_are_objects() -> None:
    X, Y = censored()
    model: Any = TobitRegressor(lower=np.zeros(2), upper={"y0": 3.0, "y1": np.inf}).fit(X, Y)
    settings = model_card(model)["settings"]
    assert settings["lower"] == [0.0, 0.0]
    assert settings["upper"] == {"y0": 3.0, "y1": None}


def test_long_tables_are_cut() -> None:
    rows = [{"name": f"x{at}", "sd": 1.0} for at in range(60)]
    text = card_markdown({"name": "a", "data": {"features": rows}})
    assert text.count("\n| x") == 50
    assert "and 10 more in the JSON file" in text


def _held_out(fitted: Any, targets: CensoredTargets) -> Any:
    first = {
        name: replace(
            predictive,
            latent=predictive.latent[:, :1],
            sigma=predictive.sigma[:, :1],
            lower=targets.lower,
            upper=targets.upper,
        )
        for name, predictive in (
            ("predictive", fitted.held_out.predictive),
            ("null", fitted.held_out.null),
        )
    }
    return replace(fitted.held_out, targets=targets, **first)


def _one(fitted: Any) -> Any:
    """The model, with its first target alone."""
    model = copy(fitted.model)
    model.target_names_ = model.target_names_[:1]
    model.sigma_ = model.sigma_[:1]
    return model
