"""Formulas give the model that the same columns give by hand, and predict from raw columns."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.estimators.formula import FormulaDesign
from deeptobit.exceptions import MissingExtraError, ModelFileError
from tests.estimators.problems import assert_close

BOUNDS: dict[str, Any] = {"lower": 0.0, "upper": {"MMSE": 30.0}}


def cohort(n: int = 200, seed: int = 0) -> pd.DataFrame:
    """Two outcomes, one with gaps, and an index that is not 0, 1, 2."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "age": rng.normal(70.0, 8.0, n),
            "apoe4": rng.integers(0, 3, n),
            "site": rng.choice(["Aachen", "Bonn", "Köln"], n),
            "visit no": rng.integers(1, 4, n),
        },
        index=1000 + rng.permutation(n),
    )
    bonn = (data["site"] == "Bonn").to_numpy()
    data["MMSE"] = rng.normal(36.0 - 0.1 * data["age"] + bonn, 2.0).clip(max=30.0)
    data["ADAS 13"] = rng.normal(0.1 * data["age"] + data["apoe4"] - 5.0, 3.0).clip(min=0.0)
    data.loc[data.index[:5], "MMSE"] = np.nan
    return data


def by_hand(data: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": data["age"],
            "apoe4": data["apoe4"].astype(float),
            "C(site)[T.Bonn]": (data["site"] == "Bonn").astype(float),
            "C(site)[T.Köln]": (data["site"] == "Köln").astype(float),
            "age:apoe4": data["age"] * data["apoe4"],
        }
    )


FORMULA = "MMSE + `ADAS 13` ~ age * apoe4 + C(site)"


@pytest.mark.parametrize("kind", [TobitRegressor, SubspaceTobitRegressor])
def test_a_formula_is_the_model_of_its_columns(kind: Any) -> None:
    data = cohort()
    model = kind.from_formula(FORMULA, data, **BOUNDS)
    expected = kind(**BOUNDS).fit(by_hand(data), data[["MMSE", "ADAS 13"]])
    assert isinstance(model, kind)
    assert model.feature_names_in_.tolist() == by_hand(data).columns.tolist()
    assert model.target_names_ == ["MMSE", "ADAS 13"]
    assert_close(model.coef_, expected.coef_)
    assert_close(model.predict(data), expected.predict(by_hand(data)))
    assert repr(model.formula_) == f"FormulaDesign({FORMULA!r})"


def test_missing_outcomes_drop_no_row() -> None:
    model = TobitRegressor.from_formula(FORMULA, cohort(), **BOUNDS)
    entries = model._trained.problem.targets.describe()["entries"]
    assert entries.to_dict() == {"MMSE": 195, "ADAS 13": 200}


def test_every_method_that_predicts_takes_raw_columns() -> None:
    data, new = cohort(), cohort(seed=1)
    model = TobitRegressor.from_formula(FORMULA, data, **BOUNDS)
    outcomes, encoded = new[["MMSE", "ADAS 13"]], by_hand(new)
    assert model.score(new, outcomes) == pytest.approx(model.score(encoded, outcomes))
    assert model.score_log(new, outcomes) == pytest.approx(model.score_log(encoded, outcomes))
    assert_close(model.predict_quantile(new, 0.3), model.predict_quantile(encoded, 0.3), 1e-12)
    assert_close(model.predict_bound_proba(new), model.predict_bound_proba(encoded), 1e-12)
    model.calibrate_intervals(new, outcomes)
    assert_close(model.predict_interval(new, 0.8), model.predict_interval(encoded, 0.8), 1e-12)
    assert_close(model.feature_importance(new), model.feature_importance(encoded), 1e-12)


def test_a_row_alone_is_encoded_as_among_others() -> None:
    data = cohort()
    formula = "MMSE ~ center(age) + poly(age, 2) + bs(age, df=5) + site + C(Q('visit no'))"
    model = TobitRegressor.from_formula(formula, data, alpha=0.01, **BOUNDS)
    whole = model.predict(data)
    for row in range(3):
        assert_close(model.predict(data.iloc[[row]]), whole[[row]], 1e-10)


def test_one_outcome_is_one_dimensional_and_keeps_its_name() -> None:
    data = cohort()
    model = TobitRegressor.from_formula("MMSE ~ age", data, upper=30.0)
    assert model.predict(data).shape == (len(data),)
    assert model.target_names_ == ["MMSE"]
    assert model.summary().index.get_level_values("target").unique().tolist() == ["MMSE"]


@pytest.mark.parametrize("formula", ["MMSE ~ 0 + age + apoe4", "MMSE ~ age + apoe4 - 1"])
def test_the_formula_decides_about_the_intercept(formula: str) -> None:
    data = cohort()
    without = TobitRegressor.from_formula(formula, data, upper=30.0)
    assert without.fit_intercept is False
    assert without.intercept_[0] == 0.0
    assert without.feature_names_in_.tolist() == ["age", "apoe4"]
    assert TobitRegressor.from_formula("MMSE ~ age", data, upper=30.0).fit_intercept is True


def test_the_dot_is_every_column_that_is_no_outcome() -> None:
    data = cohort().drop(columns=["ADAS 13", "visit no"])
    model = TobitRegressor.from_formula("MMSE ~ .", data, upper=30.0)
    assert model.feature_names_in_.tolist() == ["age", "apoe4", "site[T.Bonn]", "site[T.Köln]"]


def test_weights_are_passed_on() -> None:
    data = cohort()
    weight = np.arange(len(data)) % 3
    weighted = TobitRegressor.from_formula(FORMULA, data, sample_weight=weight, **BOUNDS)
    repeated = data.loc[data.index.repeat(weight)]
    assert_close(weighted.coef_, TobitRegressor.from_formula(FORMULA, repeated, **BOUNDS).coef_)


def test_pickles_carry_the_encoding_and_clones_do_not() -> None:
    data = cohort()
    model = TobitRegressor.from_formula(FORMULA, data, **BOUNDS)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    fresh = clone(model)
    assert not hasattr(fresh, "formula_")
    assert_close(fresh.fit(by_hand(data), data[["MMSE", "ADAS 13"]]).coef_, model.coef_)


def test_a_new_fit_forgets_the_formula() -> None:
    data = cohort()
    model = TobitRegressor.from_formula("MMSE ~ age", data, upper=30.0)
    model.fit(data[["apoe4"]], data["MMSE"])
    assert not hasattr(model, "formula_")
    assert model.predict(data[["apoe4"]]).shape == (len(data),)


CHANGED = [
    ("site", "Düren", r"'site' has the level\(s\) 'Düren', .* it saw 'Aachen', 'Bonn', 'Köln'"),
    ("visit no", 7, r"'visit no' has the level\(s\) 7, .* it saw 1, 2, 3"),
    ("age", np.nan, r"column 'age' is missing in row 4 \(1 such rows\)"),
    ("site", None, r"column 'site' is missing in row 4"),
    ("age", "old", "the formula cannot be evaluated: .*center"),
]


@pytest.mark.parametrize(("column", "value", "message"), CHANGED)
def test_new_rows_that_cannot_be_encoded_are_named(column: str, value: Any, message: str) -> None:
    data = cohort()
    formula = "MMSE ~ center(age) + site + C(Q('visit no'))"
    model = TobitRegressor.from_formula(formula, data, upper=30.0)
    data[column] = data[column].astype(object)
    data.loc[data.index[4], column] = value
    with pytest.raises(ValueError, match=message):
        model.predict(data)
    with pytest.raises(ValueError, match="needs the column"):
        model.predict(data.drop(columns=column))


WRONG = [
    ("~ age", "a formula has outcomes, one ~ and features"),
    ("MMSE ~ age | site", "a formula has outcomes, one ~ and features"),
    ("MMSE ~ 1", "names no feature"),
    ("MMSE ~ log(", "the formula .* cannot be read: "),
    ("MMSE ~ nope", r"needs the column\(s\) 'nope'"),
    ("log(MMSE) ~ age", r"the outcome 'log\(MMSE\)' is not a column"),
    ("MMSE:age ~ age", "the outcome 'MMSE:age' is not a column"),
    ("MMSE ~ C(apoe4, levels=[0, 1])", "outside of the nominated levels"),
    ("MMSE ~ np.log(age - 500)", r"X contains NaN: feature 'np.log\(age - 500\)'"),
    ("MMSE ~ age + open('x')", "'open' is neither a column nor a known function"),
    ("MMSE ~ I(log)", "log is a function; what does it act on"),
    ("MMSE ~ Diff(site)", r"Diff says how C encodes categories: C\(column, Diff\)"),
    ("MMSE ~ log(site)", r"cannot be evaluated: .*`log\(site\)`"),
    ("MMSE ~ (age + apoe4)**30", "has more than 2000 terms"),
    ("MMSE ~ " + " * ".join(["age"] * 40), "has more than 2000 terms"),
    ("MMSE ~ " + " + ".join(["age"] * 3000), "has more than 2000 terms"),
    ("MMSE ~ " + " + ".join(["age"] * 20_000), "has 119998|characters; at most|more than 2000"),
    ("MMSE ~ I(site * 10**9)", "'site' holds texts"),
    ("MMSE ~ bs(age, 99):bs(apoe4, 99):site", "features; at most 10,000 are made"),
    ("MMSE ~ (age + apoe4)**" + "9" * 5000, "has more than 2000 terms"),
    ("MMSE ~ " + "a" * 50_000, r"needs the column\(s\) 'a{60}' …"),
    ("MMSE ~ I(" + "(" * 500 + "age" + ")" * 500 + ")", "nested"),
]


@pytest.mark.parametrize(("formula", "message"), WRONG)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")
def test_a_wrong_formula_is_explained(formula: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TobitRegressor.from_formula(formula, cohort(), upper=30.0)


def test_a_formula_of_a_file_has_the_same_limits() -> None:
    wide = "y ~ bs(a, 99):bs(b, 99):bs(a + b, 99)"
    for formula in ("y ~ (a + b)**30", "y ~ I(9**9**9**9)", "y ~ I([1] * 10**9)", wide):
        design = FormulaDesign(formula, ("y",), ["a", "b"], {}, {}, {})
        with pytest.raises(ModelFileError, match=r"the stored formula .* fails"):
            design.columns(pd.DataFrame({"a": [1.0], "b": [2.0]}))


def test_names_with_quotes_are_written_in_backticks() -> None:
    data = cohort().rename(columns={"age": 'the "age"'})
    model = TobitRegressor.from_formula('MMSE ~ `the "age"`', data, upper=30.0)
    assert list(model.feature_names_in_) == ['the "age"']
    with pytest.raises(ValueError, match='Q takes the name of one column, in quotes, without "'):
        TobitRegressor.from_formula("MMSE ~ Q('the \"age\"')", data, upper=30.0)


def test_other_inputs_are_refused() -> None:
    data = cohort()
    with pytest.raises(TypeError, match="needs a pandas DataFrame; got dict"):
        TobitRegressor.from_formula("MMSE ~ age", {"MMSE": [1]})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the formula decides about the intercept"):
        TobitRegressor.from_formula("MMSE ~ age", data, fit_intercept=False)
    with pytest.raises(ValueError, match="upper names unknown target"):
        TobitRegressor.from_formula("MMSE ~ age", data, upper={"ADAS 13": 70.0})


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> None:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr("deeptobit.extras.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"pip install '.*\[formula\]'"):
        TobitRegressor.from_formula("MMSE ~ age", cohort())
