"""What each layer of a network adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.plots._style import BLUE, GREY, SMALL, axes_or_new, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS_WIDTH = 0.5  # of the distance between bars


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
    ax = axes_or_new(ax, 2.4 + 0.9 * n_layers, 4.0)
    layers, means = np.arange(1, n_layers + 1), errors.mean(axis=1)
    bars = ax.bar(layers, means, width=0.7, color=BLUE, alpha=0.35, label="mean of the targets")
    ax.bar_label(bars, [f"{mean:.3f}" for mean in means], label_type="center", fontsize=SMALL + 1)
    if n_tasks > 1:
        # A target has its own place within every bar, so that the eye can follow it.
        offsets = np.linspace(-0.5, 0.5, n_tasks) * _DOTS_WIDTH
        places = layers[:, None] + offsets
        ax.scatter(places, errors, s=12, color=BLUE, linewidths=0.0, label="one target", zorder=3)
    ax.axhline(1.0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="predicting the mean")
    ax.set(xlabel="layer", ylabel="error relative to the mean, 1 − R²", xticks=layers)
    ax.set(xlim=(0.4, n_layers + 0.6), ylim=(0.0, 1.08 * max(1.0, float(errors.max()))))
    ax.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    open_frame(ax)
    return ax
