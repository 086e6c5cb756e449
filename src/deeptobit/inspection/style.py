"""Where pictures are drawn, and in which colours."""

from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # of matplotlib, which is optional

# Okabe and Ito's colours, which people with any colour vision can tell apart.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
GREY, LIGHT = "#5F5F5F", "#C8C8C8"
SMALL = 8  # points: names of features and targets, legends


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The given Axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "app")
    _, new = pyplot.subplots(figsize=(width, height), layout="constrained")
    return new  # type: ignore[no-any-return]  # pyplot is imported by name


def divide(ax: Axes, places: list[tuple[float, float, float, float]]) -> list[Axes]:
    """Panels inside ``ax`` at (left, bottom, width, height), as fractions of it.

    Only the title and the labels of ``ax`` remain; they hold for all panels.
    """
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.patch.set_visible(False)
    panels = [ax.inset_axes(place) for place in places]
    for panel in panels:
        open_frame(panel)
    return panels


def grid_places(n_panels: int, gap: float = 0.2) -> list[tuple[float, float, float, float]]:
    """Places of panels in about as many rows as columns; ``gap`` is a fraction of a panel.

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
    """Remove the top and right lines of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def shorten(name: str, length: int = 32) -> str:
    """A name with its middle cut out if it is long: names often differ at their ends.

    Examples
    --------
    >>> shorten("lh_superiortemporal_thickness (layer 2)")
    'lh_superiortemp…ckness (layer 2)'
    """
    if len(name) <= length:
        return name
    half = length // 2
    return f"{name[: half - 1]}…{name[-half:]}"
