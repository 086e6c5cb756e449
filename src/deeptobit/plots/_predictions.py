"""Predicted against observed, with the bounds and what is censored there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deeptobit.arrays import FloatArray
from deeptobit.plots._heatmap import shorten
from deeptobit.plots._prediction_panel import draw_panel
from deeptobit.plots._style import SMALL, axes_or_new, divide, grid_places, grid_shape
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_X_LABEL, _Y_LABEL = "predicted, E[y|x]", "observed"


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

    Where the model is right, means of the outcomes follow the diagonal and their share
    ``coverage`` lies in the shaded intervals.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predicted : array of shape (N, T)
    low, high : arrays of shape (N, T)
        Ends of the prediction intervals.
    coverage : float
        What the intervals promise, for the legend.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> targets = CensoredTargets.from_bounds([0.0, 3.0, 5.0], lower=0, names=["errors"])
    >>> predicted = np.array([[1.0], [2.0], [5.0]])
    >>> ax = draw_predictions(targets, predicted, predicted - 1, predicted + 1,
    ...                       ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['90 % interval', 'prediction', 'observed', 'at lower bound']
    """
    n_columns, n_rows = grid_shape(len(targets.names))
    if (n_columns, n_rows) == (1, 1):
        ax = axes_or_new(ax, 5.0, 4.6)
        draw_panel(ax, targets, 0, (predicted, low, high), coverage)
        ax.set(title=targets.names[0], xlabel=_X_LABEL, ylabel=_Y_LABEL)
        ax.legend(
            fontsize=SMALL, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4
        )
        return ax
    ax = axes_or_new(ax, 1.0 + 2.0 * n_columns, 1.2 + 1.9 * n_rows)
    panels = divide(ax, grid_places(len(targets.names), gap=0.35))
    for task, panel in enumerate(panels):
        draw_panel(panel, targets, task, (predicted, low, high), coverage)
        panel.set_title(shorten(targets.names[task], 24), fontsize=SMALL + 1, pad=3)
        panel.tick_params(labelsize=SMALL - 1)
        panel.locator_params(nbins=4)
    ax.set_xlabel(_X_LABEL, labelpad=18)
    ax.set_ylabel(_Y_LABEL, labelpad=26)
    _legend_of_all(ax, panels, n_columns + 1)
    return ax


def _legend_of_all(ax: Axes, panels: list[Axes], n_columns: int) -> None:
    """One legend above the panels, with every kind of entry that occurs in any."""
    found: dict[str, Artist] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    ax.legend(
        list(found.values()),
        list(found),
        ncols=n_columns,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.03),
        fontsize=SMALL + 1,
        frameon=False,
        markerscale=1.6,
    )
