"""Every estimator inside scikit-learn's tools gives what the same steps give by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit.arrays import FloatArray
from tests.estimators.models import EVERY_MODEL, MODELS
from tests.estimators.problems import assert_close, censored

FOLDS = KFold(3)
FEATURES, TARGETS = ["age", "volume", "marker"], ["MMSE", "errors"]
FRAMES: dict[str, Callable[[FloatArray, list[str]], Any]] = {
    "pandas": lambda array, names: pd.DataFrame(array, columns=names),
    "polars": lambda array, names: pl.DataFrame(array, schema=names),
}
EVERY_FRAME = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
EVERY_TRANSFORMER = pytest.mark.parametrize("name", ["subspace", "network", "cv"])


def scores_by_hand(model: Any, X: FloatArray, Y: FloatArray) -> list[float]:
    return [
        clone(model).fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in FOLDS.split(X)
    ]


@EVERY_MODEL
def test_cross_validation(model: Any) -> None:
    X, Y = censored()
    found = cross_validate(model, X, Y, cv=FOLDS)["test_score"]
    assert_close(found, scores_by_hand(model, X, Y), 1e-10)


@EVERY_MODEL
@EVERY_FRAME
def test_cross_validation_of_data_frames(frame: Callable[..., Any], model: Any) -> None:
    X, Y = censored()
    Y[::7, 0] = np.nan
    given = frame(X, FEATURES), frame(Y, TARGETS)
    found = cross_validate(model, *given, cv=FOLDS)["test_score"]
    assert_close(found, scores_by_hand(model, X, Y), 1e-10)
    predictions = cross_val_predict(model, *given, cv=FOLDS)
    assert_close(predictions, cross_val_predict(model, X, Y, cv=FOLDS), 1e-10)


@EVERY_MODEL
def test_a_grid(model: Any) -> None:
    X, Y = censored()
    grid = {"fit_intercept": [True, False]}
    search = GridSearchCV(model, grid, cv=FOLDS).fit(X, Y)
    by_hand = [
        np.mean(scores_by_hand(clone(model).set_params(fit_intercept=fit_intercept), X, Y))
        for fit_intercept in grid["fit_intercept"]
    ]
    assert_close(search.cv_results_["mean_test_score"], by_hand, 1e-10)
    assert search.best_params_ == {"fit_intercept": True}
    best = clone(model).set_params(fit_intercept=True).fit(X, Y)
    assert_close(search.predict(X), best.predict(X), 1e-10)


@EVERY_MODEL
def test_columns_in_a_pipeline(model: Any) -> None:
    X, Y = censored()
    columns = ColumnTransformer([("scaled", StandardScaler(), ["marker", "age"])])
    frame = pd.DataFrame(X, columns=FEATURES)
    piped = make_pipeline(columns.set_output(transform="pandas"), model).fit(frame, Y)
    scaled = StandardScaler().fit_transform(X[:, [2, 0]])
    assert piped[-1].feature_names_in_.tolist() == ["scaled__marker", "scaled__age"]
    assert_close(piped.predict(frame), clone(model).fit(scaled, Y).predict(scaled), 1e-10)


@EVERY_MODEL
def test_permuting_a_column_that_is_constant_costs_nothing(model: Any) -> None:
    X, Y = censored()
    model = clone(model).fit(X, Y)
    X[:, 1] = 0.3
    weight = np.linspace(0.5, 2.0, len(X))
    found = permutation_importance(
        model, X, Y, n_repeats=3, random_state=0, sample_weight=weight
    ).importances
    assert (found[1] == 0.0).all()
    assert (found[[0, 2]] > 0.0).all()


@EVERY_MODEL
@pytest.mark.parametrize("named", [False, True], ids=["array", "data frame"])
def test_partial_dependence_is_the_mean_prediction_on_a_grid(model: Any, named: bool) -> None:
    X, Y = censored()
    given: Any = pd.DataFrame(X, columns=FEATURES) if named else X
    model = clone(model).fit(given, Y)
    found = partial_dependence(model, given, [1], grid_resolution=4)
    assert found["average"].shape == (2, 4)
    for value, average in zip(found["grid_values"][0], found["average"].T, strict=True):
        moved = given.copy()
        if named:
            moved["volume"] = value
        else:
            moved[:, 1] = value
        assert_close(average, model.predict(moved).mean(axis=0), 1e-12)


@EVERY_TRANSFORMER
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_coordinates_as_a_data_frame(name: str, kind: Any) -> None:
    X, Y = censored()
    model = clone(MODELS[name]).fit(X, Y)
    expected = model.transform(X)
    found = model.set_output(transform=kind.__module__.split(".")[0]).transform(X)
    assert isinstance(found, kind)
    assert list(found.columns) == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(clone(model).fit_transform(X, Y)), expected)


@EVERY_TRANSFORMER
def test_coordinates_beside_other_columns(name: str) -> None:
    X, Y = censored()
    model = clone(MODELS[name])
    columns = ColumnTransformer([("shared", clone(model), [0, 1])], remainder="passthrough")
    found = columns.set_output(transform="pandas").fit_transform(X, Y)
    alone = clone(model).fit(X[:, :2], Y).transform(X[:, :2])
    np.testing.assert_array_equal(found, np.column_stack([alone, X[:, 2]]))
    assert found.columns[0] == f"shared__{type(model).__name__.lower()}0"


@EVERY_TRANSFORMER
def test_coordinates_keep_the_precision(name: str) -> None:
    X, Y = censored()
    model = clone(MODELS[name]).fit(X, Y)
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert model.transform(X).dtype == np.float64
    assert_close(single, model.transform(X), 1e-5)
