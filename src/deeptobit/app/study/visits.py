"""Studies of repeated visits: last visits are held out, and people are forecast from a table."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from deeptobit.app.study.config import MixedSettings, Study
from deeptobit.app.study.data import StudyData, as_targets, read_entries, read_groups
from deeptobit.app.study.fitted import FittedStudy
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import MixedTobitRegressor
from deeptobit.likelihood import Predictive
from deeptobit.runtime import one_blas_thread

_FOLDS = 2  # of people, whose last visits are hidden in turn
_BINS = 4  # of horizons, where they are not the same few for all


def make_mixed(study: Study) -> MixedTobitRegressor:
    """The unfitted model of ``kind = "mixed"``, which finds time in its column."""
    settings = study.model
    assert isinstance(settings, MixedSettings)
    names = ("random_effects", "alpha", "person_rank", "visit_rank", "shrinkage")
    model = MixedTobitRegressor(
        **{name: getattr(settings, name) for name in names}, random_state=settings.seed
    )
    model._visit_columns = {} if study.data.time is None else {"time": study.data.time}
    return model


def read_times(study: Study, X: pd.DataFrame) -> FloatArray | None:
    """When the visits were; time is a feature too, so that people change on average."""
    column = study.data.time
    if column is None:
        return None
    if column not in X.columns:
        raise study.source.error(
            ("data", "time"),
            f"the time {column!r} must be a feature that holds numbers, without gaps: do not "
            "exclude it, and turn dates into months or years since the first visit",
        )
    return X[column].to_numpy(dtype=np.float64)


def check_visits(study: Study, data: StudyData) -> None:
    """Refuse a mixed model without people."""
    if data.groups is None:
        raise study.source.error(
            ("model", "kind"),
            'kind = "mixed" is for people with several visits: name the column of the person as '
            "[data] group, and that of the visit's time as [data] time",
        )


def last_visits(groups: Any, time: FloatArray | None) -> list[BoolArray]:
    """Rows to hide, in turn: the last visit of every person who has two, half of them at a time.

    Examples
    --------
    >>> hidden = last_visits(np.array(["a", "a", "b", "b", "c"]), np.array([0.0, 1, 5, 2, 0]))
    >>> [rows.tolist() for rows in hidden]
    [[False, True, False, False, False], [False, False, True, False, False]]
    """
    order = np.arange(len(groups)) if time is None else time
    frame = pd.DataFrame({"person": groups, "time": order, "row": np.arange(len(groups))})
    frame = frame.sort_values(["time", "row"], kind="stable")
    several = frame.groupby("person", sort=False)["row"].transform("size") > 1
    last = frame[several].groupby("person", sort=False)["row"].last().sort_values().to_numpy()
    hidden = []
    for part in range(_FOLDS):
        rows = np.zeros(len(groups), dtype=np.bool_)
        rows[last[part::_FOLDS]] = True
        hidden.append(rows)
    return [rows for rows in hidden if rows.any()]


def fit_mixed(
    study: Study, data: StudyData, progress: Callable[[int, int], None]
) -> tuple[MixedTobitRegressor, list[Any], list[tuple[Any, MixedTobitRegressor]]]:
    """The model of all visits with its warnings, and models without some last visits.

    Each of the latter comes with the rows that it has not seen.
    """
    check_visits(study, data)
    time = read_times(study, data.X)
    folds = last_visits(data.groups, time)
    if not folds:
        raise StudyError('no person has two visits: kind = "mixed" has nothing to learn from')
    progress(0, len(folds) + 1)

    def fit(rows: Any) -> MixedTobitRegressor:
        who = {"groups": data.groups[rows], "time": None if time is None else time[rows]}  # type: ignore[index]
        with one_blas_thread():
            return make_mixed(study).fit(data.X.iloc[rows], data.targets[rows], **who)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(np.arange(len(data.X)))
    progress(1, len(folds) + 1)
    parts = []
    for number, hidden in enumerate(folds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows warns
            parts.append((np.flatnonzero(hidden), fit(np.flatnonzero(~hidden))))
        progress(number + 2, len(folds) + 1)
    return model, list(caught), parts


def horizons(
    study: Study, data: StudyData, parts: Sequence[tuple[Any, MixedTobitRegressor]]
) -> list[dict[str, float]]:
    """Errors of forecasts by how far ahead they are, mean over targets.

    Ranked probability scores in standard deviations of the targets: of the model, of the same model
    without the person's history, and of the last value carried forward, which is a point.
    """
    time, groups, targets = read_times(study, data.X), data.groups, data.targets
    assert groups is not None
    if time is None:
        return []
    scale = np.nanstd(targets.values, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    rows: list[pd.DataFrame] = []
    for hidden, model in parts:
        X, who = data.X.iloc[hidden], groups[hidden]
        y = targets.values[hidden]
        known, people = np.setdiff1d(np.arange(len(groups)), hidden), model._people
        latest = pd.Series(time[known]).groupby(groups[known]).max()
        ahead = time[hidden] - latest.reindex(who).to_numpy()
        values = people.last_recorded(who, model._units.location, model._units.scale)
        scores = {
            "model": _crps(forecast_rows(model, X, who, targets[hidden]), y) / scale,
            "without history": _crps(forecast_rows(model, X, None, targets[hidden]), y) / scale,
            "last value": np.abs(values - y) / scale,
        }
        missing = np.isnan(y) | np.isnan(values)
        table = {name: np.where(missing, np.nan, each) for name, each in scores.items()}
        frame = pd.DataFrame(
            {name: np.nanmean(each, axis=1) for name, each in table.items()} if len(y) else {}
        )
        rows.append(frame.assign(ahead=ahead))
    joined = pd.concat(rows).dropna()
    exact = joined["ahead"].round(6)
    few = exact.nunique() <= 2 * _BINS
    bins = (
        exact
        if few
        else pd.qcut(joined["ahead"], _BINS, duplicates="drop").map(lambda each: each.mid)
    )
    found = joined.groupby(bins.astype(float)).agg(
        **{"visits": ("model", "size")},
        **{name: (name, "mean") for name in ("model", "without history", "last value")},
    )
    return [
        {"ahead": float(ahead), **{str(name): float(value) for name, value in row.items()}}
        for ahead, row in zip(found.index, found.to_dict("records"), strict=True)
    ]


def horizon_text(forecasts: Sequence[dict[str, float]]) -> str:
    """What :func:`horizons` found, as a table in text."""
    table = pd.DataFrame(forecasts).astype({"visits": int})
    return table.set_index("ahead").round(3).to_string()


def forecast_rows(model: MixedTobitRegressor, X: Any, groups: Any, targets: Any) -> Predictive:
    """Predictive distributions at visits, within the bounds of their targets."""
    lower, upper = (
        np.broadcast_to(bound, targets.shape)
        for bound in (targets.lower_bounds, targets.upper_bounds)
    )
    return model._at(X, groups, None)._predictive(X, lower, upper)


def _crps(y: Predictive, values: FloatArray) -> FloatArray:
    known = ~np.isnan(values)
    return np.where(known, y.crps(np.where(known, values, y.latent)), np.nan)


def forecast_table(
    fitted: FittedStudy, table: Table, at: Sequence[float], coverage: float
) -> pd.DataFrame:
    """Forecasts of the people of a table, each ``at`` so long after their last visit.

    One row per person, horizon and target: mean, interval, and probabilities of the bounds. Other
    features stay as they were at the last visit.
    """
    model, study = fitted.model, fitted.study
    if not isinstance(model, MixedTobitRegressor):
        raise StudyError(
            'this is no model of repeated visits, as fit makes of a study with kind = "mixed"'
        )
    groups = read_groups(study, table)
    if groups is None or study.data.time is None:
        raise StudyError("forecasts need [data] group and [data] time in the study of the model")
    if not (0.0 < coverage < 1.0):
        raise StudyError(f"coverage must lie between 0 and 1; got {coverage:g}")
    if not at or not np.isfinite(at).all() or min(at) <= 0.0:
        raise StudyError("--at takes positive numbers, such as 6,12,24, in the unit of time")
    X, targets = fitted.encoder.encode(table), as_targets(study, read_entries(study, table))
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
    tail = 0.5 * (1.0 - coverage)
    low, high = y.quantile([tail, 1.0 - tail])
    columns = {"mean": y.mean(), "low": low, "high": high}
    columns |= {"P(lower)": y.at_lower(), "P(upper)": y.at_upper()}
    n_tasks = len(model.target_names_)
    found: dict[str, Any] = {
        study.data.group or "person": people.repeat(n_tasks),
        "target": np.tile(model.target_names_, len(people)),
        "ahead": np.tile(np.asarray(at, float), len(last)).repeat(n_tasks),
        study.data.time: when.repeat(n_tasks),
    }
    return pd.DataFrame(found | {name: values.ravel() for name, values in columns.items()})
