"""Later rows must be of the targets that the model was fitted to, within bounds of their own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from deeptobit import (
    CensoredTargets,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    datasets,
)
from deeptobit.arrays import FloatArray

UPPER = 6.0
STREAMS = {
    "layer": SubspaceTobitRegressor(2, upper=UPPER),
    "network": SubspaceNetworkRegressor(2, 2, upper=UPPER),
}


def _rows() -> tuple[FloatArray, pd.DataFrame]:
    X, Y, _ = datasets.make_subspace(
        200, 4, 3, 2, sigma=1.0, latent_sd=2.5, upper=UPPER, random_state=0
    )
    return X, pd.DataFrame(Y, columns=list("pqr"))


@pytest.mark.parametrize("start", ["fit", "partial_fit"])
@pytest.mark.parametrize("model", STREAMS.values(), ids=list(STREAMS))
def test_a_stream_keeps_names_shape_and_bounds(model: Any, start: str) -> None:
    X, Y = _rows()
    model = clone(model)
    getattr(model, start)(X[:100], Y[:100])
    for chunk in (Y[["r", "q", "p"]], CensoredTargets.from_bounds(Y[["r", "q", "p"]], 0, UPPER)):
        with pytest.raises(ValueError, match="the columns of y are r, q, p, but the model was"):
            model.partial_fit(X, chunk)
    with pytest.raises(ValueError, match=r"y has 2 target\(s\), but the model was fitted to 3"):
        model.partial_fit(X, Y.to_numpy()[:, :2])
    wider = CensoredTargets.from_bounds(Y[100:].to_numpy(), 0, None)
    model.partial_fit(X[100:], wider).partial_fit(X[:50], Y[:50].to_numpy())
    assert model.target_names_ == list("pqr")
    np.testing.assert_array_equal(model.upper_, UPPER)


@pytest.mark.parametrize("model", STREAMS.values(), ids=list(STREAMS))
def test_one_column_goes_on_where_a_vector_began(model: Any) -> None:
    X, Y = _rows()
    model.fit(X, Y["p"]).partial_fit(X, Y[["p"]].to_numpy())
    assert model.predict(X).shape == (200,)


@pytest.mark.parametrize("model", STREAMS.values(), ids=list(STREAMS))
def test_a_piece_may_have_no_weight_but_not_the_first(model: Any) -> None:
    X, Y = _rows()
    expected = model.fit(X[:100], Y[:100]).partial_fit(X[150:], Y[150:]).predict(X)
    model.fit(X[:100], Y[:100]).partial_fit(X[100:150], Y[100:150], sample_weight=np.zeros(50))
    np.testing.assert_array_equal(model.partial_fit(X[150:], Y[150:]).predict(X), expected)
    with pytest.raises(ValueError, match="no row has both an outcome and a positive weight"):
        type(model)(upper=UPPER).partial_fit(X[:9], np.full((9, 3), np.nan))


def test_scores_know_the_order_of_targets() -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=UPPER).fit(X, Y)
    turned = CensoredTargets.from_bounds(Y[["r", "q", "p"]], 0, UPPER)
    for ask in (model.score, model.score_log, model.calibrate_intervals):
        with pytest.raises(ValueError, match="the columns of y are r, q, p"):
            ask(X, turned)
    unnamed = CensoredTargets.from_bounds(Y.to_numpy(), 0, UPPER)
    assert model.score(X, unnamed) == model.score(X, Y)


def test_scores_hold_outcomes_to_the_bounds_they_were_recorded_with() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.maximum(X @ [1.0, 1.0, 0.0, 0.0] + rng.normal(size=120), 0.5)
    limits = np.full(120, 0.5)
    model = TobitRegressor(lower=None).fit(X, y, lower=limits)
    expected = model.score(X, y, lower=limits)
    by_entry = CensoredTargets.from_bounds(y, entry_lower=limits)
    by_task = CensoredTargets.from_bounds(y, 0.5)
    assert model.score(X, by_entry) == pytest.approx(expected, abs=1e-12)
    assert model.score(X, by_task) == pytest.approx(expected, abs=1e-12)
    unbounded = CensoredTargets.from_intervals(np.where(y == 0.5, -np.inf, y), y)
    assert model.score(X, unbounded) > 0.0  # of observed entries the limit is not known


def test_targets_that_cannot_be_scored_are_left_out() -> None:
    X, Y = _rows()
    model = TobitRegressor(upper=UPPER).fit(X, Y)
    both = Y.assign(r=np.nan)
    alone = TobitRegressor(upper=UPPER).fit(X, Y[["p", "q"]])
    assert model.score(X, both) == pytest.approx(alone.score(X, Y[["p", "q"]]), abs=1e-12)
    assert model.score_log(X, both) == pytest.approx(alone.score_log(X, Y[["p", "q"]]), abs=1e-12)
    assert np.isfinite(model.score(X, Y.assign(r=2.0)))
    rare = Y.copy()
    rare.loc[70:, "r"] = np.nan
    search = GridSearchCV(TobitRegressor(upper=UPPER), {"alpha": [0.1, 1.0]}, cv=KFold(4))
    assert np.isfinite(search.fit(X, rare).cv_results_["mean_test_score"]).all()


def test_a_hidden_weight_is_no_weight() -> None:
    X, Y = _rows()
    weight = np.ma.masked_greater(np.where(np.arange(200) == 7, 1e6, 1.0), 10.0)
    with pytest.raises(ValueError, match="finite and not negative; row 7 has nan"):
        TobitRegressor(upper=UPPER).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0]], "Y must"),
        (np.ones((200, 3, 1)), "must be 1-d or 2-d"),
        ([[1.0, 2.0]] * 200, r"y has 2 target\(s\)"),
    ],
)
def test_what_is_no_table_of_outcomes_is_refused_as_such(y: Any, message: str) -> None:
    X, Y = _rows()
    with pytest.raises((ValueError, TypeError), match=message):
        TobitRegressor(upper=UPPER).fit(X, Y).score(X, y)
