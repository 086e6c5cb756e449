import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceNetworkCV, SubspaceTobitRegressor, TobitRegressor
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.exceptions import MissingExtraError, ModelFileError
from tests.estimators.saved import assert_same, round_trip

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "age": RNG.normal(70, 8, 120),
        "years of school": RNG.integers(8, 20, 120),
        "site": ["A", "B", "C"] * 40,
        "dose": np.tile([0, 10, 20, 30], 30),
        "carrier": RNG.random(120) > 0.5,
        "stage": pd.Categorical(["late", "early"] * 60, categories=["early", "late", "never"]),
    }
).assign(MMSE=RNG.normal(20, 3, 120), errors=RNG.normal(10, 3, 120))


@pytest.mark.parametrize(
    "right",
    [
        ".",
        ". - site",
        "0 + site:age + carrier",
        "center(age) * site + `years of school`",
        "poly(age, 2) + bs(dose, df=4) + cr(age, df=3)",
        "C(dose, Sum) + C(site, Treatment('B')) + C(age > 70) + C(dose, levels=[30, 20, 10, 0])",
        "np.log(age) + I(age ** 2) * stage",
    ],
)
def test_raw_columns_are_encoded_as_before(right: str, tmp_path: Path) -> None:
    model = TobitRegressor.from_formula(f"MMSE + errors ~ {right}", ROWS, lower=None, alpha=0.1)
    again = round_trip(model, tmp_path)
    pd.testing.assert_frame_equal(model.formula_.columns(ROWS), again.formula_.columns(ROWS))
    for rows in (ROWS, ROWS[3:4], ROWS[::-1]):
        assert_same(model.predict(rows), again.predict(rows))
    assert_same(model, again)
    assert_same(model, round_trip(again, tmp_path))


@pytest.mark.parametrize(
    "cls", [SubspaceTobitRegressor, SubspaceNetworkCV], ids=lambda cls: cls.__name__
)
def test_other_models_keep_their_formula(cls: Any, tmp_path: Path) -> None:
    params = {"ranks": [1], "alphas": [0.1], "max_layers": 1} if cls is SubspaceNetworkCV else {}
    model = cls.from_formula("MMSE ~ age + site", ROWS, **params)
    again = round_trip(model, tmp_path)
    assert_same(model.predict(ROWS), again.predict(ROWS))
    with pytest.raises(ValueError, match="column 'site' has the level"):
        again.predict(ROWS.replace({"site": {"A": "Z"}}))
    with pytest.raises(ValueError, match=r"needs the column\(s\) 'age'"):
        again.predict(ROWS.drop(columns="age"))


def test_a_formula_that_cannot_be_read_again_is_refused_on_saving(tmp_path: Path) -> None:
    model = TobitRegressor.from_formula("MMSE ~ scale(bs(age, df=3))", ROWS)
    with pytest.raises(TypeError, match=r"'MMSE ~ scale\(bs\(age, df=3\)\)' cannot be saved"):
        model.save(tmp_path / "a.model")


@cache
def fitted() -> TobitRegressor:
    return TobitRegressor.from_formula("MMSE ~ center(age) + site", ROWS)


def features() -> pd.DataFrame:
    found: pd.DataFrame = fitted().formula_.columns(ROWS)
    return found


def packed() -> tuple[dict[str, Any], dict[str, Any]]:
    """A state, and the fields of its formula."""
    state = estimator_state(fitted())
    return state, state["model"]["fields"]["fitted"]["formula_"]["fields"]


@pytest.mark.parametrize(
    "text",
    [
        "MMSE ~ __import__('os').system('exit') + age",
        "MMSE ~ center(age.__class__) + site",
        "MMSE ~ I((lambda: age)()) + site",
        "MMSE ~ `age` + {open('x')} + site",
        "MMSE ~ center(age) + site + other",
        "errors ~ center(age) + site",
        "center(age) + site",
        "~",
        "",
        "MMSE ~ I(age * (9 ** 9 ** 9 ** 9))",
    ],
)
def test_a_formula_from_a_file_is_as_restricted_as_any(text: str) -> None:
    state, formula = packed()
    formula["formula"] = text
    model = estimator_from_state(state)  # nothing is evaluated, not even what takes for ever
    assert model.predict(features()).shape == (120,)
    if "**" not in text:
        with pytest.raises(ModelFileError, match="the stored formula"):
            model.predict(ROWS)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("levels", {"site": ["A", "B"]}),
        ("kinds", {"site": "numerical", "center(age)": "numerical"}),
        ("kinds", {"site": "code", "center(age)": "numerical"}),
        ("reads", ["age"]),
        ("formula", "MMSE ~ center(age)"),
    ],
)
def test_the_encoding_must_give_the_columns_of_the_model(name: str, wrong: Any) -> None:
    state, formula = packed()
    assert name in formula
    formula[name] = wrong
    with pytest.raises(ValueError, match=r"formula|feature names should match|level\(s\)"):
        estimator_from_state(state).predict(ROWS)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("levels", {"site": "ABC"}), ("constants", []), ("targets", []), ("formula", None)],
)
def test_a_formula_without_its_parts_is_refused(name: str, wrong: Any) -> None:
    state, formula = packed()
    formula[name] = wrong
    with pytest.raises(ModelFileError):
        estimator_from_state(state)


def test_a_model_loads_without_formulaic(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = packed()
    encoded = features()
    monkeypatch.setitem(sys.modules, "formulaic", None)
    model = estimator_from_state(state)
    assert model.predict(encoded).shape == (120,)
    with pytest.raises(MissingExtraError):
        model.predict(ROWS)
