"""Studies of repeated visits: last visits are held out, and people are forecast from a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit import auto
from deeptobit.app.study.config import Study
from deeptobit.app.study.data import StudyData, read_groups, read_targets
from deeptobit.app.study.fitted import FittedStudy, predict_rows, predicted_columns, rounded
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import FloatArray
from deeptobit.estimators import MixedTobitRegressor

_FOLDS = 2  # of people, whose last visits are hidden in turn
_BINS = 4  # of horizons, where they are not the same few for all


def make_mixed(study: Study) -> MixedTobitRegressor:
    """The unfitted model of ``kind = "mixed"``, which finds time in its column."""
    model = MixedTobitRegressor(**study.model.options())
    model._visit_columns = {} if study.data.time is None else {"time": study.data.time}
    return model


def read_times(study: Study, X: pd.DataFrame) -> FloatArray | None:
    """When the visits were; time is a feature too, so that people change on average."""
    column = study.data.time
    if column is None:
        return None
    if column not in X.columns:
        what = f"the time {column!r} must be a feature that holds numbers, without gaps"
        do = "do not exclude it, and turn dates into months or years since the first visit"
        raise study.source.error(("data", "time"), f"{what}: {do}")
    return X[column].to_numpy(dtype=np.float64)


def last_visits(study: Study, data: StudyData) -> list[auto.Fold]:
    """The last visits of people who have two, half of them at a time, and all other visits."""
    if data.groups is None:
        what = 'kind = "mixed" is for people with several visits'
        do = "name the column of the person as [data] group, and of the visit's time as [data] time"
        raise study.source.error(("model", "kind"), f"{what}: {do}")
    rows = np.arange(len(data.groups))
    time = rows if data.time is None else data.time
    visits = pd.DataFrame({"person": data.groups, "time": time}).sort_values("time", kind="stable")
    several = visits[visits.duplicated("person", keep=False)]
    last = several.drop_duplicates("person", keep="last").index.sort_values()
    if not len(last):
        raise StudyError('no person has two visits: kind = "mixed" has nothing to learn from')
    hidden = [np.asarray(last[part::_FOLDS]) for part in range(min(_FOLDS, len(last)))]
    return [auto.Fold(np.setdiff1d(rows, part), part) for part in hidden]


def forecast_errors(model: MixedTobitRegressor, data: StudyData, fold: auto.Fold) -> pd.DataFrame:
    """Errors of forecasts of hidden visits, mean over targets, and how far ahead they are.

    Ranked probability scores in standard deviations of the targets: of the model, of the same model
    without the person's history, and of the last value carried forward, which is a point.
    """
    groups, time = np.asarray(data.groups), np.asarray(data.time)  # both are there
    scale = np.nanstd(data.targets.values, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    X, who, hidden = data.X.iloc[fold.test], groups[fold.test], data.targets[fold.test]
    values = model._people.last_recorded(who, model._units.location, model._units.scale)
    known = ~np.isnan(hidden.values) & ~np.isnan(values)

    def crps(groups: NDArray[Any] | None) -> FloatArray:
        y = predict_rows(model, X, hidden.lower_bounds, hidden.upper_bounds, groups)
        return y.crps(np.where(known, hidden.values, y.latent))

    errors = {"model": crps(who), "without history": crps(None)}
    errors["last value"] = np.abs(values - hidden.values)
    means = {
        name: pd.DataFrame(np.where(known, error / scale, np.nan)).mean(axis=1)
        for name, error in errors.items()
    }
    latest = pd.Series(time[fold.train]).groupby(groups[fold.train]).max()
    return pd.DataFrame(means).assign(ahead=time[fold.test] - latest.reindex(who).to_numpy())


def by_horizon(errors: Sequence[pd.DataFrame]) -> list[dict[str, float]]:
    """Mean errors of forecasts by how far ahead they are."""
    joined = pd.concat(errors).dropna()
    bins: Any = joined["ahead"].round(6)
    if bins.nunique() > 2 * _BINS:
        bins = pd.qcut(joined["ahead"], _BINS, duplicates="drop").map(lambda each: each.mid)
    grouped = joined.drop(columns="ahead").groupby(bins.astype(float))
    found = grouped.mean()
    found.insert(0, "visits", grouped.size().astype(float))
    records: Any = found.rename_axis("ahead").reset_index().to_dict("records")
    return list(records)


def horizon_text(forecasts: Sequence[dict[str, float]]) -> str:
    """What :func:`by_horizon` found, as a table in text."""
    return pd.DataFrame(forecasts).astype({"visits": int}).set_index("ahead").round(3).to_string()


def forecast_table(
    fitted: FittedStudy, table: Table, at: Sequence[float], coverage: float
) -> pd.DataFrame:
    """Forecasts of the people of a table, each ``at`` so long after their last visit.

    One row per person, horizon and target: mean, interval, and probabilities of the bounds, with
    as many digits as matter. Other features stay as they were at the last visit.
    """
    model, study = fitted.model, fitted.study
    if not isinstance(model, MixedTobitRegressor):
        raise StudyError('this is not a model of repeated visits; fit a study with kind = "mixed"')
    groups = read_groups(study, table)
    if groups is None or study.data.time is None:
        raise StudyError("forecasts need [data] group and [data] time in the study of the model")
    if not at or not np.isfinite(at).all() or min(at) <= 0.0:
        raise StudyError("--at takes positive numbers, such as 6,12,24, in the unit of time")
    X, targets = fitted.encoder.encode(table), read_targets(study, table)
    time = read_times(study, X)
    assert time is not None
    known = model.condition(X, targets, groups=groups, time=time)
    order = np.argsort(time, kind="stable")
    last = pd.Series(order).groupby(groups[order], sort=False).last()
    future = X.iloc[last.to_numpy().repeat(len(at))].reset_index(drop=True)
    when = future[study.data.time].to_numpy(float) + np.tile(np.asarray(at, float), len(last))
    future[study.data.time] = when
    people = np.asarray(last.index).repeat(len(at))
    y = known._at(future, people, None)._predictive(future)
    n_tasks = len(model.target_names_)
    found: dict[str, Any] = {
        study.data.group or "person": people.repeat(n_tasks),
        "target": np.tile(model.target_names_, len(people)),
        "ahead": np.tile(np.asarray(at, float), len(last)).repeat(n_tasks),
        study.data.time: when.repeat(n_tasks),
    }
    for what, values in predicted_columns(y, coverage).items():
        by_task = pd.DataFrame(values, columns=[name + what for name in model.target_names_])
        found[what.strip() or "mean"] = rounded(by_task, fitted).to_numpy().ravel()
    return pd.DataFrame(found)
