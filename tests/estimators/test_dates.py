"""Dates and durations are refused: as numbers they would be nanoseconds since 1970."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from deeptobit import CensoredTargets
from deeptobit.arrays import FloatArray
from tests.estimators.models import EVERY_MODEL
from tests.estimators.problems import bounded, censored

pa: Any = pytest.importorskip("pyarrow")
VISITS = pd.date_range("2026-11-16", periods=150)
DATED: dict[str, Callable[[FloatArray], Any]] = {
    "array": lambda table: VISITS.to_numpy()[:, None],
    "column": lambda table: pd.DataFrame(table).assign(visit=VISITS),
    "durations": lambda table: pd.DataFrame(table).assign(visit=VISITS - VISITS[0]),
    "time zone": lambda table: pd.DataFrame(table).assign(visit=VISITS.tz_localize("UTC")),
    "Arrow": lambda table: pa.table({"age": table[:, 0], "visit": pa.array(VISITS.date)}),
    "polars": lambda table: pl.DataFrame(table).with_columns(visit=pl.Series(list(VISITS.date))),
}
EVERY_DATE = pytest.mark.parametrize("dated", DATED.values(), ids=DATED.keys())
REFUSED = "holds dates or durations; turn them into numbers first, such as days since the first"


@EVERY_DATE
@EVERY_MODEL
def test_as_features(dated: Callable[[FloatArray], Any], model: Any) -> None:
    X, Y = censored()
    with pytest.raises(ValueError, match=f"^(X|column 'visit' of X) {REFUSED}"):
        clone(model).fit(dated(X), Y)


@EVERY_DATE
@EVERY_MODEL
def test_as_outcomes(dated: Callable[[FloatArray], Any], model: Any) -> None:
    X, Y = censored()
    with pytest.raises(ValueError, match=f"^(Y|column 'visit' of Y) {REFUSED}"):
        clone(model).fit(X, dated(Y))


def test_as_one_outcome_and_as_intervals() -> None:
    X, Y = censored()
    with pytest.raises(ValueError, match=f"^Y {REFUSED}"):
        bounded().fit(X, pd.Series(VISITS, name="visit"))
    with pytest.raises(ValueError, match=f"^high {REFUSED}"):
        CensoredTargets.from_intervals(Y[:, 0], VISITS.to_numpy())


def test_when_it_predicts() -> None:
    X, Y = censored()
    frame = pd.DataFrame(X, columns=["age", "volume", "visit"])
    model = bounded().fit(frame, Y)
    with pytest.raises(ValueError, match=f"^column 'visit' of X {REFUSED}"):
        model.predict(frame.assign(visit=VISITS))


def test_objects_that_are_dates_are_named() -> None:
    X, Y = censored()
    frame = pd.DataFrame(X).astype({2: object})
    frame.iloc[4, 2] = VISITS[0]
    frame.columns = ["age", "volume", "visit"]
    with pytest.raises(TypeError, match=r"feature 'visit' holds Timestamp\(.* in row 4"):
        bounded().fit(frame, Y)
    with pytest.raises(ValueError, match=r"Y must hold numbers .*; found Timestamp\(.* at row 0"):
        bounded().fit(X, list(VISITS))
