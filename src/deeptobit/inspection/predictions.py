"""Observed outcomes against their predictions, by target and by layer."""

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.inspection import style
from deeptobit.inspection.style import BLUE, GREY, LIGHT, SMALL, VERMILION, Axes
from deeptobit.targets import CensoredTargets

_X_LABEL, _Y_LABEL = "predicted, E[y|x]", "observed"
_MARGIN = 0.06  # of the range, so that markers at a bound are not cut
_DOTS_WIDTH = 0.5  # of the distance between bars


def draw_predictions(
    targets: CensoredTargets,
    predicted: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Observed outcomes over their predictions, a panel for each target.

    If the model is right, the means of outcomes follow the diagonal, and a share ``coverage`` of
    them lies in the shaded intervals.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predicted : array of shape (N, T)
    low, high : arrays of shape (N, T)
        Ends of the prediction intervals.
    coverage : float
        Nominal coverage of the intervals, for the legend.
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> targets = CensoredTargets.from_bounds([0.0, 3.0, 5.0], lower=0, names=["errors"])
    >>> predicted = np.array([[1.0], [2.0], [5.0]])
    >>> ax = draw_predictions(targets, predicted, predicted - 1, predicted + 1,
    ...                       ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['90 % interval', 'prediction', 'observed', 'at lower bound']
    """
    n_columns, n_rows = style.grid_shape(len(targets.names))
    if len(targets.names) == 1:
        ax = style.axes_or_new(ax, 5.0, 4.6)
        _draw_panel(ax, targets, 0, [predicted, low, high], coverage)
        style.open_frame(ax)
        ax.set(title=targets.names[0], xlabel=_X_LABEL, ylabel=_Y_LABEL)
        place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
        ax.legend(fontsize=SMALL, frameon=False, ncols=4, **place)
        return ax
    ax = style.axes_or_new(ax, 1.0 + 2.0 * n_columns, 1.2 + 1.9 * n_rows)
    panels = style.divide(ax, style.grid_places(len(targets.names), gap=0.35))
    for task, panel in enumerate(panels):
        _draw_panel(panel, targets, task, [predicted, low, high], coverage)
        panel.set_title(style.shorten(targets.names[task], 24), fontsize=SMALL + 1, pad=3)
        panel.tick_params(labelsize=SMALL - 1)
        panel.locator_params(nbins=4)
    ax.set_xlabel(_X_LABEL, labelpad=18)
    ax.set_ylabel(_Y_LABEL, labelpad=26)
    # One legend above the panels, with every kind of entry that occurs in any.
    marks = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels)
    found = {label: handle for of_panel in marks for handle, label in of_panel}
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.03), "ncols": n_columns + 1}
    font: Any = {"fontsize": SMALL + 1, "frameon": False, "markerscale": 1.6}
    ax.legend(list(found.values()), list(found), **place, **font)
    return ax


def _draw_panel(
    ax: Axes, targets: CensoredTargets, task: int, predictions: list[FloatArray], coverage: float
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


def _intervals(
    ax: Axes, predicted: FloatArray, low: FloatArray, high: FloatArray, coverage: float
) -> None:
    """A band if intervals depend on the prediction alone, bars if limits differ by row."""
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
    """Outcomes as what they are known to be: a value, at a bound, or in an interval."""
    kinds = targets.observed, targets.at_lower, targets.at_upper
    observed, at_lower, at_upper = (kind[:, task] for kind in kinds)
    for chosen, marker, color, size, label in (
        (observed, "o", BLUE, 14.0, "observed"),
        (at_lower, "v", VERMILION, 22.0, "at lower bound"),
        (at_upper, "^", VERMILION, 22.0, "at upper bound"),
    ):
        if chosen.any():
            points = predicted[chosen], targets.values[chosen, task]
            look: Any = {"s": size, "marker": marker, "color": color, "label": label}
            ax.scatter(*points, alpha=0.5, linewidths=0.0, zorder=3, **look)
    between = ~(observed | at_lower | at_upper)
    if between.any():
        ends = targets.low[between, task], targets.high[between, task]
        ax.vlines(predicted[between], *ends, color=BLUE, linewidth=1.2, label="known as interval")


def _bounds(targets: CensoredTargets, task: int) -> list[float]:
    """The bounds that hold for all rows; limits by row are seen at their entries."""
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


def draw_layers(errors: FloatArray, *, ax: Axes | None = None) -> Axes:
    """Error of the prediction after each layer: bars are means, dots the targets.

    Parameters
    ----------
    errors : array of shape (K, T)
        Squared error relative to that of the mean, 1 − R².
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = draw_layers(np.array([[0.8, 0.6], [0.7, 0.3]]), ax=Figure().subplots())
    >>> [float(bar.get_height().round(2)) for bar in ax.patches]
    [0.7, 0.5]
    """
    n_layers, n_tasks = errors.shape
    ax = style.axes_or_new(ax, 2.4 + 0.9 * n_layers, 4.0)
    layers, means = np.arange(1, n_layers + 1), errors.mean(axis=1)
    bars = ax.bar(layers, means, width=0.7, color=BLUE, alpha=0.35, label="mean of the targets")
    ax.bar_label(bars, [f"{mean:.3f}" for mean in means], label_type="center", fontsize=SMALL + 1)
    if n_tasks > 1:
        # A target has the same place within every bar, so that one can follow it.
        places = layers[:, None] + _DOTS_WIDTH * np.linspace(-0.5, 0.5, n_tasks)
        ax.scatter(places, errors, s=12, color=BLUE, linewidths=0.0, label="one target", zorder=3)
    ax.axhline(1.0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="predicting the mean")
    ax.set(xlabel="layer", ylabel="error relative to the mean, 1 − R²", xticks=layers)
    ax.set(xlim=(0.4, n_layers + 0.6), ylim=(0.0, 1.08 * max(1.0, float(errors.max()))))
    ax.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    style.open_frame(ax)
    return ax
