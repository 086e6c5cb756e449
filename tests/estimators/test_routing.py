"""Weights, limits and groups are routed through scikit-learn's tools to whom asks for them."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit import SubspaceNetworkCV
from deeptobit.arrays import FloatArray
from tests.estimators.models import EVERY_MODEL, MODELS
from tests.estimators.problems import assert_close, censored

FOLDS = KFold(2)
REQUESTS: dict[str, Any] = {"sample_weight": True, "lower": True, "upper": True}


@pytest.fixture(autouse=True)
def _routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def _problem() -> tuple[FloatArray, FloatArray, dict[str, FloatArray]]:
    """Outcomes whose limits differ from row to row, and rows whose weights differ."""
    X, Y = censored()
    rng = np.random.default_rng(3)
    metadata = {
        "sample_weight": rng.integers(1, 4, len(X)).astype(float),
        "lower": rng.uniform(0.0, 0.5, Y.shape),
        "upper": rng.uniform(2.0, 3.0, Y.shape),
    }
    return X, np.clip(Y, metadata["lower"], metadata["upper"]), metadata


def _asking(model: Any) -> Any:
    return clone(model).set_fit_request(**REQUESTS).set_score_request(**REQUESTS)


@cache
def _scores_by_hand(model: Any, *, fit_intercept: bool = True) -> list[float]:
    X, Y, metadata = _problem()
    model = clone(model).set_params(fit_intercept=fit_intercept)
    scores = []
    for train, test in FOLDS.split(X):
        rows, held_out = (
            {name: values[part] for name, values in metadata.items()} for part in (train, test)
        )
        fitted = clone(model).fit(X[train], Y[train], **rows)
        scores.append(fitted.score(X[test], Y[test], **held_out))
    return scores


@EVERY_MODEL
def test_through_cross_validation(model: Any) -> None:
    X, Y, metadata = _problem()
    found = cross_validate(_asking(model), X, Y, cv=FOLDS, params=metadata)["test_score"]
    assert_close(found, _scores_by_hand(model), 1e-10)
    plain = cross_validate(clone(model).set_params(outside="clip"), X, Y, cv=FOLDS)["test_score"]
    assert not np.allclose(plain, found, atol=1e-4)


@EVERY_MODEL
def test_through_a_grid(model: Any) -> None:
    X, Y, metadata = _problem()
    grid = {"fit_intercept": [True, False]}
    search = GridSearchCV(_asking(model), grid, cv=FOLDS).fit(X, Y, **metadata)
    by_hand = [
        np.mean(_scores_by_hand(model, fit_intercept=fit_intercept))
        for fit_intercept in grid["fit_intercept"]
    ]
    assert_close(search.cv_results_["mean_test_score"], by_hand, 1e-10)
    best = clone(model).set_params(**search.best_params_).fit(X, Y, **metadata)
    assert_close(search.predict(X), best.predict(X), 1e-10)
    assert_close(search.score(X, Y, **metadata), best.score(X, Y, **metadata), 1e-10)


@EVERY_MODEL
def test_through_a_pipeline(model: Any) -> None:
    X, Y, metadata = _problem()
    limits = {name: metadata[name] for name in ("lower", "upper")}
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    step = _asking(model).set_predict_request(lower=True, upper=True)
    piped = make_pipeline(scaler, step).fit(X, Y, **metadata)
    scaled = StandardScaler().fit(X, sample_weight=metadata["sample_weight"]).transform(X)
    by_hand = clone(model).fit(scaled, Y, **metadata)
    assert_close(piped.predict(X, **limits), by_hand.predict(scaled, **limits), 1e-10)
    assert_close(piped.score(X, Y, **metadata), by_hand.score(scaled, Y, **metadata), 1e-10)
    assert (piped.predict(X, **limits) >= limits["lower"]).all()


@EVERY_MODEL
def test_nothing_is_passed_on_that_was_not_asked_for(model: Any) -> None:
    X, Y, metadata = _problem()
    with pytest.raises(UnsetMetadataPassedError, match="lower"):
        cross_validate(clone(model), X, Y, cv=FOLDS, params={"lower": metadata["lower"]})
    weight = {"sample_weight": metadata["sample_weight"]}
    scoring = (
        clone(model).set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
    )
    found = cross_validate(scoring, X, Y, cv=FOLDS, params=weight)["test_score"]
    by_hand = [
        clone(model).fit(X[train], Y[train]).score(X[test], Y[test], weight["sample_weight"][test])
        for train, test in FOLDS.split(X)
    ]
    assert_close(found, by_hand, 1e-10)


@pytest.mark.parametrize("name", ["subspace", "network"])
def test_limits_of_a_stream_can_be_asked_for(name: str) -> None:
    model = clone(MODELS[name]).set_partial_fit_request(**REQUESTS)
    asked = model.get_metadata_routing().partial_fit.requests
    assert asked == {"sample_weight": True, "lower": True, "upper": True}


def test_groups_reach_the_splitter_and_the_folds_within() -> None:
    X, Y = censored()
    model = MODELS["cv"]
    groups = np.random.default_rng(0).integers(0, 12, len(X))
    outer = GroupKFold(2)
    asking = clone(model).set_fit_request(groups=True)
    result = cross_validate(
        asking, X, Y, cv=outer, params={"groups": groups}, return_estimator=True
    )
    for fold, (train, test) in enumerate(outer.split(X, groups=groups)):
        by_hand = clone(model).fit(X[train], Y[train], groups=groups[train])
        found = result["estimator"][fold]
        assert_close(found.predict(X), by_hand.predict(X), 1e-10)
        assert_close(found.sigma_, by_hand.sigma_, 1e-10)
        assert_close(result["test_score"][fold], by_hand.score(X[test], Y[test]), 1e-10)
    through_a_pipeline = make_pipeline(StandardScaler(), clone(asking))
    found = cross_val_predict(through_a_pipeline, X, Y, cv=outer, params={"groups": groups})
    assert found.shape == Y.shape


def test_groups_weights_and_limits_together() -> None:
    X, Y, metadata = _problem()
    metadata["groups"] = np.floor(np.arange(len(X)) / 5.0)
    model = clone(MODELS["cv"])
    assert isinstance(model, SubspaceNetworkCV)
    piped = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        model.set_fit_request(**REQUESTS, groups=True),
    ).fit(X, Y, **metadata)
    scaled = StandardScaler().fit_transform(X)
    by_hand = clone(MODELS["cv"]).fit(scaled, Y, **metadata)
    assert_close(piped.predict(X), by_hand.predict(scaled), 1e-10)
    assert_close(piped[-1].best_score_, by_hand.best_score_, 1e-10)
