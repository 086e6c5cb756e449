"""Trajectories of a mixed model: the population, and forecasts of people whom the model made up."""

from typing import Any

import numpy as np
import pandas as pd

from deeptobit.app.report.pictures import Picture, as_picture
from deeptobit.app.study import FittedStudy
from deeptobit.arrays import FloatArray
from deeptobit.estimators import MixedTobitRegressor
from deeptobit.extras import require

_POINTS, _MOST, _COLUMNS = 25, 8, 4
_PEOPLE = {"low": 0.1, "typical": 0.5, "high": 0.9}  # quantiles of the scores at early visits
_COLOURS = ("#d55e00", "#5f5f5f", "#0072b2")
WORDS = (
    "Scores in percent of their scale, over time. The black line is the mean of the population at "
    "mean features. Each band is a forecast (80 %) of a person who was seen twice at the start, "
    "with low, typical or high scores. The model made these people up; none is real."
)


def draw_trajectories(fitted: FittedStudy) -> Picture | None:
    """A panel for each of the first outcomes between two bounds; None for other models."""
    model, column = fitted.model, fitted.study.data.time
    if not isinstance(model, MixedTobitRegressor) or column is None:
        return None
    shown = np.flatnonzero(np.isfinite(model.lower_) & np.isfinite(model.upper_))[:_MOST]
    if not shown.size:
        return None
    start, unit = model._units.time
    time = np.linspace(max(start - 1.7 * unit, min(start, 0.0)), start + 1.7 * unit, _POINTS)
    X = _typical(fitted).loc[[0] * _POINTS].reset_index(drop=True)
    X[column] = time
    seen, ahead = [0, 2], slice(2, None)
    population = model.predict(X).reshape(_POINTS, -1)
    early = model.predict_quantile(X.iloc[seen], list(_PEOPLE.values())).reshape(3, 2, -1)
    people = [name for name in _PEOPLE for _ in seen]
    when = np.tile(time[seen], len(_PEOPLE))
    visits = pd.concat([X.iloc[seen]] * len(_PEOPLE), ignore_index=True)
    known = model.condition(visits, early.reshape(6, -1), groups=people, time=when)
    width = min(len(shown), _COLUMNS)
    height = -(-len(shown) // width)
    figure = require("matplotlib.figure", "app").Figure(
        (2.4 * width + 0.4, 2.1 * height + 0.3), layout="constrained"
    )
    axes = figure.subplots(height, width, squeeze=False, sharex=True, sharey=True).ravel()
    for ax, task in zip(axes, shown, strict=False):
        lower, span = model.lower_[task], model.upper_[task] - model.lower_[task]

        def percent(values: FloatArray, lower: Any = lower, span: Any = span) -> FloatArray:
            return np.asarray(100.0 * (values - lower) / span)

        for name, colour in zip(_PEOPLE, _COLOURS, strict=True):
            low, high = known.predict_interval(X[ahead], 0.8, groups=[name] * (_POINTS - 2))
            ends = (percent(end.reshape(_POINTS - 2, -1)[:, task]) for end in (low, high))
            ax.fill_between(time[ahead], *ends, color=colour, alpha=0.25, linewidth=0)
        ax.plot(time, percent(population[:, task]), color="#000000", linewidth=1.5)
        ax.set_title(model.target_names_[task], fontsize=9)
        ax.set_ylim(0, 100)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    figure.supxlabel(column, fontsize=9)
    figure.supylabel("percent of scale", fontsize=9)
    return as_picture(figure, "trajectories", f"Trajectories. {WORDS}")


def _typical(fitted: FittedStudy) -> pd.DataFrame:
    """One row of mean features."""
    model: Any = fitted.model
    row = pd.DataFrame(0.0, index=[0], columns=list(model.feature_names_in_))
    for column in fitted.encoder.columns:
        for name, mean in zip(column.features, column.means, strict=False):
            if name in row.columns:
                row[name] = mean
    return row
