"""Every estimator inside scikit-learn's tools gives what the same steps give by hand."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit import CensoredTargets, SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import StudentT
from tests.estimators.models import EVERY_MODEL, MODELS
from tests.estimators.problems import assert_close, bounded, censored
from tests.estimators.test_network import data, network

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

FOLDS = KFold(2)
FEATURES, TARGETS = ["age", "volume", "marker"], ["MMSE", "errors"]
FRAMES: dict[str, Callable[[FloatArray, list[str]], Any]] = {
    "pandas": lambda array, names: pd.DataFrame(array, columns=names),
    "polars": lambda array, names: pl.DataFrame(array, schema=names),
}
EVERY_FRAME = pytest.mark.parametrize(
    ("model", "frame"),
    [
        pytest.param(MODELS[name], frame, id=f"{kind}-{name}")
        for kind, frame in FRAMES.items()
        for name in MODELS
        if kind == "pandas" or name not in ("cv", "auto")  # searches take the same way as networks
    ],
)
EVERY_TRANSFORMER = pytest.mark.parametrize("name", ["subspace", "network", "cv"])


def problem(*, with_holes: bool) -> tuple[FloatArray, FloatArray]:
    X, Y = censored()
    if with_holes:
        Y[::7, 0] = np.nan
    return X, Y


@cache
def fitted(model: Any) -> Any:
    return clone(model).fit(*censored())


@cache
def by_hand(
    model: Any, *, with_holes: bool = False, fit_intercept: bool = True
) -> tuple[list[float], FloatArray]:
    """Scores of the folds, and the predictions of all rows by the models that did not see them."""
    X, Y = problem(with_holes=with_holes)
    scores, predictions = [], []
    for train, test in FOLDS.split(X):
        model = clone(model).set_params(fit_intercept=fit_intercept).fit(X[train], Y[train])
        scores.append(model.score(X[test], Y[test]))
        predictions.append(model.predict(X[test]))
    return scores, np.concatenate(predictions)


@EVERY_FRAME
def test_cross_validation_of_data_frames(model: Any, frame: Callable[..., Any]) -> None:
    X, Y = problem(with_holes=True)
    given = frame(X, FEATURES), frame(Y, TARGETS)
    found = cross_validate(model, *given, cv=FOLDS)["test_score"]
    scores, predictions = by_hand(model, with_holes=True)
    assert_close(found, scores, 1e-10)
    assert_close(cross_val_predict(model, *given, cv=FOLDS), predictions, 1e-10)


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
    model = fitted(model)
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
    model = clone(model).fit(given, Y) if named else fitted(model)
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
    X, _ = censored()
    model = fitted(MODELS[name])
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert model.transform(X).dtype == np.float64
    assert_close(single, model.transform(X), 1e-5)


@EVERY_MODEL
def test_censored_targets_are_sliced(model: Any) -> None:
    X, Y = censored()
    targets = CensoredTargets.from_bounds(Y, lower=0, upper=3)
    found = cross_validate(model, X, targets, cv=FOLDS)["test_score"]
    assert_close(found, by_hand(model)[0], 1e-10)


@EVERY_MODEL
def test_scaling_in_a_pipeline_changes_nothing(model: Any) -> None:
    X, Y = censored()
    piped = make_pipeline(StandardScaler(), clone(model)).fit(100.0 * X, Y)
    assert_close(piped.predict(100.0 * X), fitted(model).predict(X), 1e-5)


@EVERY_MODEL
def test_other_names_than_those_of_the_fit_are_refused(model: Any) -> None:
    X, Y = censored()
    frame, scores = pd.DataFrame(X, columns=FEATURES), pd.DataFrame(Y, columns=TARGETS)
    named = clone(model).fit(frame, scores)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[FEATURES[::-1]])
    with pytest.raises(ValueError, match="the columns of y are"):
        named.score(frame, scores[TARGETS[::-1]])


def test_transformed_target_is_fitted_on_the_transformed_scale() -> None:
    X, Y = censored()
    model = TransformedTargetRegressor(
        TobitRegressor(lower=0.0, upper=np.log1p(3.0)), func=np.log1p, inverse_func=np.expm1
    ).fit(X, Y)
    direct = TobitRegressor(lower=0.0, upper=np.log1p(3.0)).fit(X, np.log1p(Y))
    np.testing.assert_allclose(model.predict(X), np.expm1(direct.predict(X)), rtol=1e-12)


def test_clone_keeps_every_setting_and_nothing_fitted() -> None:
    X, Y = censored()
    model = bounded(
        outside="clip", noise=StudentT(df=5), alpha=0.2, sigma=[1.0, 2.0], max_iter=50, tol=1e-6
    ).fit(X, Y)
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    assert not hasattr(copy, "coef_")
    assert_close(copy.fit(X, Y).coef_, model.coef_, 1e-9)


def test_fit_leaves_the_settings_as_they_were_given() -> None:
    X, Y = censored()
    lower, upper, sigma = [0.0, -np.inf], {"y0": 3.0}, {"y0": 1.0, "y1": 2.0}
    model = TobitRegressor(lower=lower, upper=upper, sigma=sigma).fit(X, Y)
    assert model.get_params()["lower"] is lower
    assert model.get_params()["upper"] is upper
    assert model.get_params()["sigma"] is sigma
    assert (lower, upper, sigma) == ([0.0, -np.inf], {"y0": 3.0}, {"y0": 1.0, "y1": 2.0})


def test_a_pickle_does_not_grow_with_the_training_data() -> None:
    small = len(pickle.dumps(bounded().fit(*censored(n_samples=100))))
    large = len(pickle.dumps(bounded().fit(*censored(n_samples=4000))))
    assert large < small + 100


def test_a_stored_model_says_that_inference_needs_the_training_data() -> None:
    X, Y = censored()
    stored = pickle.loads(pickle.dumps(bounded().fit(X, Y)))
    for ask in (
        stored.summary,
        stored.print_summary,
        stored.aic,
        stored.bic,
        stored.wald_test,
        stored.likelihood_ratio_test,
        lambda: stored.marginal_effects(X),
        lambda: stored.predict_mean_interval(X),
    ):
        with pytest.raises(ValueError, match="training data, which are never stored"):
            ask()


def test_grid_search_finds_the_true_rank() -> None:
    X, Y, _ = make_subspace(300, 10, 8, 3, sigma=1.0, random_state=0)
    grid = {"rank": [1, 2, 3]}
    search = GridSearchCV(SubspaceTobitRegressor(), grid, cv=FOLDS).fit(X, Y)
    assert search.best_params_ == {"rank": 3}
    means = search.cv_results_["mean_test_score"]
    assert means.tolist() == sorted(means)


def test_a_grid_over_depth_finds_that_it_pays() -> None:
    X, Y = data()
    grid = {"n_layers": np.array([1, 2]), "joint_tuning": np.array([False])}
    search = GridSearchCV(network(alpha=0.02), grid, cv=FOLDS).fit(X, Y)
    assert search.best_params_["n_layers"] == 2
    assert search.best_estimator_.history_["tuning"]["objective"] == ()
