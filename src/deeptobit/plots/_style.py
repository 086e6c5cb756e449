"""Where pictures are drawn, and in which colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXTRA = "app"  # brings matplotlib

# Okabe and Ito's colours, which people with any colour vision can tell apart.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
GREY, LIGHT = "#5F5F5F", "#C8C8C8"
SMALL = 8  # points: names of features and targets, legends


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The Axes that were given, or those of a new figure, its size in inches."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", EXTRA)
    _, new = pyplot.subplots(figsize=(width, height), layout="constrained")
    return new  # type: ignore[no-any-return]  # pyplot is imported by name


def divide(ax: Axes, places: list[tuple[float, float, float, float]]) -> list[Axes]:
    """Panels inside ``ax`` at (left, bottom, width, height), in shares of it.

    What remains of ``ax`` is its title and its labels, which then stand for all panels.
    """
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.patch.set_visible(False)
    return [ax.inset_axes(place) for place in places]


def grid_places(n_panels: int, gap: float = 0.2) -> list[tuple[float, float, float, float]]:
    """Places of panels in rows, about as many as columns, ``gap`` being a share of a panel.

    Examples
    --------
    >>> grid_places(2, gap=0.0)
    [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 0.5, 1.0)]
    """
    n_columns, n_rows = grid_shape(n_panels)
    width, height = 1.0 / (n_columns + gap * (n_columns - 1)), 1.0 / (n_rows + gap * (n_rows - 1))
    places = []
    for panel in range(n_panels):
        row, column = divmod(panel, n_columns)
        left, top = column * width * (1.0 + gap), 1.0 - row * height * (1.0 + gap)
        places.append((left, top - height, width, height))
    return places


def grid_shape(n_panels: int) -> tuple[int, int]:
    """Columns and rows of a grid that is at least as wide as high.

    Examples
    --------
    >>> grid_shape(1), grid_shape(3), grid_shape(30)
    ((1, 1), (2, 2), (6, 5))
    """
    n_columns = int(np.ceil(np.sqrt(n_panels)))
    return n_columns, -(-n_panels // n_columns)


def open_frame(ax: Axes) -> None:
    """Leave the axes of the data, without the lines opposite to them."""
    ax.spines[["top", "right"]].set_visible(False)
