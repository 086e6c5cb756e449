"""The same numbers from NumPy, pandas and polars: names, missing values, bounds, precision."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from deeptobit import CensoredTargets, MixedTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray, column_names
from tests.estimators.models import EVERY_MODEL, MODELS
from tests.estimators.problems import assert_close, bounded, censored

pa: Any = pytest.importorskip("pyarrow")
FEATURES, TARGETS = ["age", "volume", "marker"], ["MMSE", "errors"]


def _with_gaps() -> tuple[FloatArray, FloatArray]:
    X, Y = censored()
    Y[::7, 0] = np.nan
    Y[3::11, 1] = np.nan
    return X, Y


@cache
def _fitted(model: Any, *, with_gaps: bool = False) -> Any:
    return clone(model).fit(*(_with_gaps() if with_gaps else censored()))


@cache
def _fitted_with_limits(model: Any) -> Any:
    X, Y, limits, weight = _limits_and_weight()
    return clone(model).fit(X, Y, sample_weight=weight, lower=limits)


def _limits_and_weight() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    X, Y = censored()
    rng = np.random.default_rng(0)
    return X, Y, np.minimum(rng.uniform(0.0, 0.5, Y.shape), Y), rng.uniform(0.5, 2.0, len(X))


AS_OUTCOMES: dict[str, Callable[[FloatArray], Any]] = {
    "masked": lambda Y: np.ma.masked_equal(np.nan_to_num(Y, nan=-999.0), -999.0),
    "pandas": lambda Y: pd.DataFrame(Y, columns=TARGETS),
    "pandas objects": lambda Y: pd.DataFrame(Y, columns=TARGETS, dtype=object).replace(
        {np.nan: None}
    ),
    "pandas <NA>": lambda Y: pd.DataFrame(Y, columns=TARGETS).convert_dtypes(),
    "Arrow": lambda Y: pa.table(dict(zip(TARGETS, Y.T.copy(), strict=True))),
    "polars NaN": lambda Y: pl.DataFrame(Y, schema=TARGETS),
    "polars null": lambda Y: pl.DataFrame(Y, schema=TARGETS).fill_nan(None),
}


FRAMES: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
SEARCHES = ("cv", "auto")  # they take outcomes and tables as networks do, but for more time


@pytest.mark.parametrize(
    ("model", "as_outcomes"),
    [
        pytest.param(MODELS[name], as_outcomes, id=f"{kind}-{name}")
        for kind, as_outcomes in AS_OUTCOMES.items()
        for name in MODELS
        if name not in SEARCHES or kind in ("masked", "polars null")
    ],
)
def test_missing_outcomes_however_they_are_written(
    model: Any, as_outcomes: Callable[[FloatArray], Any]
) -> None:
    X, Y = _with_gaps()
    expected = _fitted(model, with_gaps=True)
    found = clone(model).fit(X, as_outcomes(Y))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.score(X, as_outcomes(Y)) == expected.score(X, Y)
    named = column_names(as_outcomes(Y))
    assert found.target_names_ == (["y0", "y1"] if named is None else TARGETS)


@EVERY_MODEL
def test_a_feature_that_is_masked_is_missing(model: Any) -> None:
    X, Y = censored()
    X[4, 1] = -999.0
    with pytest.raises(ValueError, match=r"X contains NaN: feature 'x1', row 4 \(1 such value"):
        clone(model).fit(np.ma.masked_equal(X, -999.0), Y)
    with pytest.raises(ValueError, match="X contains NaN: feature 'x1', row 4"):
        _fitted(model).predict(np.ma.masked_equal(X, -999.0))


@EVERY_MODEL
def test_features_from_polars(model: Any) -> None:
    X, Y = censored()
    table = pl.DataFrame(X, schema=FEATURES)
    found = clone(model).fit(table, Y)
    assert list(found.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(found.predict(table), _fitted(model).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(table[FEATURES[::-1]])


@EVERY_MODEL
def test_features_from_arrow(model: Any) -> None:
    X, Y = censored()
    table = pa.table(dict(zip(FEATURES, X.T.copy(), strict=True)))
    found = clone(model).fit(table, Y)
    assert list(found.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(found.predict(table), _fitted(model).predict(X))


def test_integers_with_missing_values() -> None:
    X, _ = censored()
    scores = np.clip(np.rint(5.0 + 3.0 * X[:, :2] + X[:, 2:]), 0, 10)
    scores[::5, 0] = np.nan
    expected = TobitRegressor(upper=10).fit(X, scores).coef_
    nullable = pd.DataFrame(scores, columns=TARGETS).astype({"MMSE": "Int64", "errors": "Float64"})
    nulls = pl.DataFrame(scores, schema=TARGETS).fill_nan(None).cast(pl.Int64)
    for Y in (nullable, nulls):
        np.testing.assert_array_equal(TobitRegressor(upper=10).fit(X, Y).coef_, expected)


@pytest.mark.parametrize(
    ("series", "name"),
    [
        (lambda y: pd.Series(y), "y"),
        (lambda y: pd.Series(y, name="MMSE"), "MMSE"),
        (lambda y: pl.Series(y), "y"),
        (lambda y: pl.Series("MMSE", y), "MMSE"),
    ],
    ids=["pandas", "pandas with a name", "polars", "polars with a name"],
)
def test_one_outcome_as_a_series(series: Callable[[FloatArray], Any], name: str) -> None:
    X, Y = censored()
    model = bounded().fit(X, series(Y[:, 0]))
    assert model.target_names_ == [name]
    np.testing.assert_array_equal(model.predict(X), bounded().fit(X, Y[:, 0]).predict(X))


EVERY_FRAME = pytest.mark.parametrize(
    ("model", "frame"),
    [
        pytest.param(MODELS[name], frame, id=f"{kind}-{name}")
        for kind, frame in FRAMES.items()
        for name in MODELS
        if name not in SEARCHES or kind == "pandas"
    ],
)


@EVERY_FRAME
def test_limits_and_weights_from_data_frames(model: Any, frame: Any) -> None:
    X, Y, limits, weight = _limits_and_weight()
    expected = _fitted_with_limits(model).predict(X, lower=limits)
    names = {name: column for name, column in zip(TARGETS, limits.T, strict=True)}
    table = frame(names | {"weight": weight})
    found = clone(model).fit(
        X,
        frame(dict(zip(TARGETS, Y.T, strict=True))),
        sample_weight=table["weight"],
        lower=table[TARGETS],
    )
    assert_close(found.predict(X, lower=table[TARGETS]), expected, 1e-10)
    with pytest.raises(ValueError, match="columns of lower are errors, MMSE, but the targets are"):
        found.predict(X, lower=table[TARGETS[::-1]])


@EVERY_MODEL
def test_bounds_from_a_series_go_by_name(model: Any) -> None:
    X, scores = censored()
    Y = pd.DataFrame(scores * [1.0, 10.0], columns=TARGETS)
    caps = pd.Series({"errors": 30.0, "MMSE": 3.0})
    by_series = clone(model).set_params(upper=caps).fit(X, Y)
    by_dict = clone(model).set_params(upper=caps.to_dict()).fit(X, Y)
    by_position = clone(model).set_params(upper=[3.0, 30.0]).fit(X, Y)
    for found in (by_series, by_dict):
        np.testing.assert_array_equal(found.predict(X), by_position.predict(X))
        assert found.upper_.tolist() == [3.0, 30.0]


def test_noise_scales_from_a_series_go_by_name() -> None:
    X, Y = censored()
    sigma = pd.Series({"errors": 2.0, "MMSE": 1.0})
    model = bounded(sigma=sigma).fit(X, pd.DataFrame(Y, columns=TARGETS))
    assert model.sigma_.tolist() == [1.0, 2.0]


@EVERY_FRAME
def test_single_precision_in_data_frames(model: Any, frame: Any) -> None:
    X, Y = censored()
    single = X.astype(np.float32)
    table = frame(dict(zip(FEATURES, single.T, strict=True)))
    model = clone(model).fit(table, Y)
    answers = [model.predict(table), *model.predict_interval(table), model.sample_y(table)]
    assert {answer.dtype for answer in answers} == {np.dtype(np.float32)}
    wider = frame(dict(zip(FEATURES, X.T, strict=True)))
    assert model.predict(wider).dtype == np.float64
    assert_close(model.predict(table), clone(model).fit(single, Y).predict(single), 1e-6)


def test_intervals_from_data_frames() -> None:
    low = pl.DataFrame({"MMSE": [1.0, None, 3.0], "errors": [0.0, 2.0, float("-inf")]})
    high = pl.DataFrame({"MMSE": [1.0, None, 5.0], "errors": [0.0, 2.5, 4.0]})
    targets = CensoredTargets.from_intervals(low, high)
    assert targets.names == ("MMSE", "errors")
    assert targets.missing.tolist() == [[False, False], [True, False], [False, False]]
    assert targets.at_lower.tolist() == [[False, False], [False, False], [False, True]]


def test_row_labels_in_another_order_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"], index=np.arange(40) + 100)
    Y = pd.DataFrame({"y": (X["a"] + rng.normal(size=40)).clip(lower=0.0)})
    shuffled = Y.sample(frac=1.0, random_state=0)
    model = TobitRegressor()
    with pytest.raises(ValueError, match=r"same row labels in another order .* Y.loc\[X.index\]"):
        model.fit(X, shuffled)
    model.fit(X, shuffled.loc[X.index])
    with pytest.raises(ValueError, match="same row labels in another order"):
        model.score(X, shuffled)
    with pytest.warns(UserWarning, match="different row labels; their rows are matched by pos"):
        model.score(X, Y.reset_index(drop=True))


@pytest.mark.parametrize("name", ["sample_weight", "upper"])
def test_what_goes_with_the_rows_is_in_their_order(name: str) -> None:
    X = pd.DataFrame({"age": np.arange(9.0)})
    rows = {name: pd.Series(np.ones(9), index=X.index[::-1])}
    with pytest.raises(
        ValueError, match=rf"X and {name} have .* \(row 0 is 0 in X and 8 in {name}"
    ):
        TobitRegressor(alpha=0.1).fit(X, np.ones(9), **rows)


@pytest.mark.parametrize("name", ["groups", "time"])
def test_people_and_visits_are_in_the_order_of_the_rows(name: str) -> None:
    X = pd.DataFrame({"age": np.arange(9.0)})
    rows = {name: pd.Series(np.arange(9) // 3, index=X.index[::-1])}
    with pytest.raises(ValueError, match=f"X and {name} have the same row labels in another"):
        MixedTobitRegressor(alpha=0.1).fit(X, np.ones(9), **rows)
