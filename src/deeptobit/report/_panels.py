"""Predicted against observed: a small picture for every outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from deeptobit import plots
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics._selection import some_predictive, some_targets
from deeptobit.report._format import bound, number
from deeptobit.report._svg import Picture, as_picture, new_figure, remove_legend
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import HeldOut
    from deeptobit.targets import CensoredTargets

Rows = NDArray[np.intp]

_PLACE = (0.19, 0.18, 0.78, 0.79)  # of the axes in the figure
_MOST_POINTS = 2000  # in one panel; more are a blot


def draw_outcomes(held_out: HeldOut, table: pd.DataFrame, fewest: int = FEWEST) -> list[Picture]:
    """Predicted against observed, a picture for every outcome, best explained first.

    An outcome of fewer people than are told has none, and what fewer have is not drawn: values at a
    bound, or all others.
    """
    order = np.argsort(-table["r2"].fillna(-np.inf).to_numpy(), kind="stable")
    rows = {task: _drawn_rows(held_out.targets, task, fewest) for task in order.tolist()}
    return [_draw_outcome(held_out, table, task, rows[task]) for task in rows if rows[task].size]


def _draw_outcome(held_out: HeldOut, table: pd.DataFrame, task: int, rows: Rows) -> Picture:
    targets = some_targets(held_out.targets, [task])[rows]
    predictive = _some_rows(some_predictive(held_out.predictive, [task]), rows)
    predicted, (low, high) = predictive.mean(), _interval(predictive, held_out.coverage)
    by_row = targets.entry_lower is not None or targets.entry_upper is not None
    if not by_row:
        low, high = _smooth(predicted, low), _smooth(predicted, high)
    figure, ax = new_figure(3.0, 2.6)
    figure.set_layout_engine("none")  # which would take half of the time for a page of panels
    ax.set_position(_PLACE)
    plots.draw_predictions(targets, predicted, low, high, coverage=held_out.coverage, ax=ax)
    remove_legend(ax)
    ax.set_title("")
    ax.set(xlabel="predicted", ylabel="observed")
    for marks in ax.collections if by_row else ax.collections[1:]:  # the first is a band
        marks.set_rasterized(True)
    row = table.iloc[task]
    name, r2 = str(table.index[task]), number(row["r2"])
    alt = (
        f"{name}: observed over predicted values of held-out rows; R² {r2}; bounds "
        f"{bound(row['lower'])} and {bound(row['upper'])}"
    )
    return as_picture(figure, f"outcome{task}", alt, name)


def _drawn_rows(targets: CensoredTargets, task: int, fewest: int) -> Rows:
    """Rows whose outcome is like that of enough others: at a bound, or known otherwise.

    Where there are too many, they are spread evenly over the table.
    """
    at_lower, at_upper = targets.at_lower[:, task], targets.at_upper[:, task]
    kinds = at_lower, at_upper, ~(at_lower | at_upper | targets.missing[:, task])
    told = np.any([kind & (kind.sum() >= fewest) for kind in kinds], axis=0)
    known = np.flatnonzero(told)
    if len(known) <= _MOST_POINTS:
        return known
    return known[np.linspace(0, len(known) - 1, _MOST_POINTS).astype(np.intp)]


def _some_rows(predictive: Predictive, rows: Rows) -> Predictive:
    shape = predictive.latent.shape
    sigma, lower, upper = (
        np.broadcast_to(part, shape)[rows]
        for part in (predictive.sigma, predictive.lower, predictive.upper)
    )
    latent = predictive.latent[rows]
    return replace(predictive, latent=latent, sigma=sigma, lower=lower, upper=upper)


def _interval(predictive: Predictive, coverage: float) -> tuple[FloatArray, FloatArray]:
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    return low, high


def _smooth(predicted: FloatArray, end: FloatArray) -> FloatArray:
    """The end of intervals as a function of the prediction; folds differ a little.

    It rises, or falls where the spread grows faster than the score.
    """
    order = np.argsort(predicted[:, 0], kind="stable")
    values = end[order, 0]
    fits = [isotonic_regression(values, increasing=way) for way in (True, False)]
    smooth = np.empty_like(end)
    smooth[order, 0] = min(fits, key=lambda fit: float(np.square(fit - values).sum()))
    return smooth
