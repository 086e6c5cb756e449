"""Predicted against observed for one target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.plots._style import BLUE, GREY, LIGHT, VERMILION, open_frame
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.06  # of the range, so that markers at a bound are not cut


def draw_panel(
    ax: Axes,
    targets: CensoredTargets,
    task: int,
    predictions: tuple[FloatArray, FloatArray, FloatArray],
    coverage: float,
) -> None:
    """One target: intervals below, then the diagonal and the bounds, then the outcomes."""
    known = ~targets.missing[:, task]
    rows = targets[known]
    predicted, low, high = (array[known, task] for array in predictions)
    start, end = _limits(rows.values[:, task], _bounds(rows, task))
    ax.set(xlim=_limits(predicted, []), ylim=(start, end))
    _intervals(ax, predicted, np.clip(low, start, end), np.clip(high, start, end), coverage)
    ax.axline((start, start), slope=1.0, color=GREY, linewidth=0.8, label="prediction")
    for bound in _bounds(rows, task):
        ax.axhline(bound, color=VERMILION, linewidth=0.8, linestyle=(0, (4, 3)))
    _outcomes(ax, rows, task, predicted)
    open_frame(ax)


def _intervals(
    ax: Axes, predicted: FloatArray, low: FloatArray, high: FloatArray, coverage: float
) -> None:
    """A band if the prediction alone decides, bars if limits differ from row to row."""
    order = np.argsort(predicted, kind="stable")
    x, low, high = predicted[order], low[order], high[order]
    label = f"{100.0 * coverage:g} % interval"
    # Predictions in single precision are not quite in the order of their intervals.
    slack = 1e-4 * np.ptp(ax.get_ylim())
    if np.all(np.diff(low) >= -slack) and np.all(np.diff(high) >= -slack):
        ax.fill_between(x, low, high, color=LIGHT, alpha=0.5, linewidth=0.0, label=label)
    else:
        ax.vlines(x, low, high, color=LIGHT, linewidth=0.6, alpha=0.7, label=label)


def _outcomes(ax: Axes, targets: CensoredTargets, task: int, predicted: FloatArray) -> None:
    """Outcomes by what is known of them: the value, a side, or an interval."""
    y = targets.values[:, task]
    observed, at_lower, at_upper = (
        kind[:, task] for kind in (targets.observed, targets.at_lower, targets.at_upper)
    )

    def mark(chosen: BoolArray, marker: str, color: str, size: float, label: str) -> None:
        if chosen.any():
            ax.scatter(
                predicted[chosen],
                y[chosen],
                s=size,
                marker=marker,
                color=color,
                alpha=0.5,
                linewidths=0.0,
                label=label,
                zorder=3,
            )

    mark(observed, "o", BLUE, 14.0, "observed")
    mark(at_lower, "v", VERMILION, 22.0, "at lower bound")
    mark(at_upper, "^", VERMILION, 22.0, "at upper bound")
    between = ~(observed | at_lower | at_upper)
    if between.any():
        ends = targets.low[between, task], targets.high[between, task]
        ax.vlines(predicted[between], *ends, color=BLUE, linewidth=1.2, label="known as interval")


def _bounds(targets: CensoredTargets, task: int) -> list[float]:
    """The bounds that hold for all rows; limits that differ are seen at their entries."""
    ends = (np.unique(bounds[..., task]) for bounds in (targets.lower_bounds, targets.upper_bounds))
    return [float(end[0]) for end in ends if len(end) == 1 and np.isfinite(end[0])]


def _limits(values: FloatArray, bounds: list[float]) -> tuple[float, float]:
    """The range of the values and of the bounds that they come near to, with a margin."""
    if len(values) == 0:
        return 0.0, 1.0
    start, end = float(values.min()), float(values.max())
    near = 0.5 * (end - start)
    for bound in bounds:
        if start - near <= bound <= end + near:
            start, end = min(start, bound), max(end, bound)
    margin = _MARGIN * (end - start) or 1.0
    return start - margin, end + margin
