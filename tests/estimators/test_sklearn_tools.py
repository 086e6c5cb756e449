"""TobitRegressor inside scikit-learn's tools gives what the same steps give by hand."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import StudentT
from tests.estimators.problems import assert_close, bounded, censored, parameters

FOLDS = KFold(3)
AS_TARGETS: dict[str, Callable[[FloatArray], Any]] = {
    "array": lambda Y: Y,
    "data frame": lambda Y: pd.DataFrame(Y, columns=["MMSE", "errors"]),
    "censored targets": lambda Y: CensoredTargets.from_bounds(Y, lower=0, upper=3),
}
EVERY_TARGET = pytest.mark.parametrize("as_targets", AS_TARGETS.values(), ids=AS_TARGETS.keys())


def scores_by_hand(alpha: float) -> list[float]:
    X, Y = censored()
    return [
        bounded(alpha=alpha).fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in FOLDS.split(X)
    ]


def test_scaling_in_a_pipeline_changes_nothing() -> None:
    X, Y = censored()
    piped = make_pipeline(StandardScaler(), bounded(alpha=0.1)).fit(100.0 * X, Y)
    np.testing.assert_allclose(
        piped.predict(100.0 * X), bounded(alpha=0.1).fit(X, Y).predict(X), rtol=1e-6
    )


def test_column_transformer_feeds_a_category_as_dummies() -> None:
    X, Y = censored()
    frame = pd.DataFrame(X, columns=["age", "volume", "marker"])
    frame["site"] = np.array(["Aachen", "Bonn", "Köln"])[np.arange(len(X)) % 3]
    encode = ColumnTransformer(
        [("site", OneHotEncoder(drop="first", sparse_output=False), ["site"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    piped = make_pipeline(encode, bounded()).fit(frame, Y)
    dummies = np.column_stack([frame["site"] == "Bonn", frame["site"] == "Köln", X])
    model = bounded().fit(dummies, Y)
    np.testing.assert_allclose(piped[-1].coef_, model.coef_, rtol=1e-6)
    assert piped[-1].feature_names_in_[0] == "site_Bonn"


@EVERY_TARGET
def test_cross_validation_slices_every_kind_of_target(
    as_targets: Callable[[FloatArray], Any],
) -> None:
    X, Y = censored()
    result = cross_validate(bounded(alpha=0.05), X, as_targets(Y), cv=FOLDS)
    np.testing.assert_allclose(result["test_score"], scores_by_hand(0.05), rtol=1e-10)


@EVERY_TARGET
def test_grid_search_finds_the_alpha_that_scores_best_by_hand(
    as_targets: Callable[[FloatArray], Any],
) -> None:
    X, Y = censored()
    alphas = [0.0, 0.1, 3.0]
    search = GridSearchCV(bounded(), {"alpha": alphas}, cv=FOLDS).fit(X, as_targets(Y))
    by_hand = [np.mean(scores_by_hand(alpha)) for alpha in alphas]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-10)
    assert search.best_params_ == {"alpha": alphas[int(np.argmax(by_hand))]}


def test_grid_search_runs_in_two_processes() -> None:
    X, Y = censored()
    grid = {"alpha": [0.0, 0.1]}
    alone = GridSearchCV(bounded(), grid, cv=FOLDS).fit(X, Y)
    together = GridSearchCV(bounded(), grid, cv=FOLDS, n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(
        together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_cross_val_predict_predicts_each_fold_from_the_others() -> None:
    X, Y = censored()
    expected = np.vstack(
        [bounded().fit(X[train], Y[train]).predict(X[test]) for train, test in FOLDS.split(X)]
    )
    np.testing.assert_allclose(cross_val_predict(bounded(), X, Y, cv=FOLDS), expected, rtol=1e-10)


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


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_refitting_forgets_the_first_fit(alpha: float) -> None:
    X, Y = censored(1)
    model = bounded(alpha=alpha).fit(*censored(2, n_features=5, n_tasks=4)).fit(X, Y[:, 0])
    fresh = bounded(alpha=alpha).fit(X, Y[:, 0])
    assert_close(model.predict(X), fresh.predict(X), 1e-9)
    pd.testing.assert_frame_equal(model.summary(), fresh.summary())


@pytest.mark.parametrize("how", ["pickle", "joblib"])
def test_a_stored_model_predicts_the_same(how: str, tmp_path: Path) -> None:
    X, Y = censored()
    model = bounded(noise="logistic").fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    if how == "pickle":
        stored = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model.joblib")
        stored = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(stored.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(
        stored.predict_quantile(frame, 0.3), model.predict_quantile(frame, 0.3)
    )
    assert stored.score_log(frame, Y) == model.score_log(frame, Y)


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


def test_weights_and_limits_are_routed_to_fit_and_score() -> None:
    X, Y = censored()
    rng = np.random.default_rng(3)
    limits = rng.uniform(0.0, 0.5, Y.shape)
    caps = rng.uniform(2.0, 3.0, Y.shape)
    data = {
        "sample_weight": rng.integers(1, 4, len(X)).astype(float),
        "lower": limits,
        "upper": caps,
    }
    Y = np.clip(Y, limits, caps)
    with config_context(enable_metadata_routing=True):
        model = TobitRegressor(lower=None)
        model.set_fit_request(sample_weight=True, lower=True, upper=True)
        model.set_score_request(sample_weight=True, lower=True, upper=True)
        result = cross_validate(model, X, Y, cv=FOLDS, params=data, return_estimator=True)
    for fold, (train, test) in enumerate(FOLDS.split(X)):
        by_hand = TobitRegressor(lower=None)
        by_hand.fit(X[train], Y[train], **{key: value[train] for key, value in data.items()})
        np.testing.assert_allclose(
            parameters(result["estimator"][fold]), parameters(by_hand), rtol=1e-10
        )
        score = by_hand.score(X[test], Y[test], **{key: value[test] for key, value in data.items()})
        np.testing.assert_allclose(result["test_score"][fold], score, rtol=1e-10)


def test_limits_are_routed_to_predict_through_a_pipeline() -> None:
    X, Y = censored()
    limits = np.full_like(Y, 0.25)
    with config_context(enable_metadata_routing=True):
        tobit = bounded().set_fit_request(lower=True).set_predict_request(lower=True)
        piped = make_pipeline(StandardScaler(), tobit)
        piped.fit(X, np.maximum(Y, 0.25), lower=limits)
        predicted = piped.predict(X, lower=limits)
    by_hand = bounded().fit(X, np.maximum(Y, 0.25), lower=limits)
    np.testing.assert_allclose(predicted, by_hand.predict(X, lower=limits), rtol=1e-7)
    assert predicted.min() >= 0.25
