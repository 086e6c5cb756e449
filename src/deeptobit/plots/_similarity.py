"""Which outcomes are alike, neighbours being most alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.plots._heatmap import ROW_HEIGHT, add_scale, heat_map
from deeptobit.plots._style import SMALL, axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_WITH_NUMBERS = 12  # tasks up to which a cell has room for its number


def draw_similarity(cosines: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map of the cosines between tasks, ordered by average linkage.

    Parameters
    ----------
    cosines : DataFrame of shape (T, T)
        Symmetric, values between −1 and 1.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> names = ["MMSE", "ADAS", "MoCA"]
    >>> cosines = pd.DataFrame([[1, -0.9, 0.8], [-0.9, 1, -0.7], [0.8, -0.7, 1]], names, names)
    >>> ax = draw_similarity(cosines, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ADAS', 'MoCA', 'MMSE']
    """
    order = similar_order(cosines.to_numpy())
    table = cosines.iloc[order, order]
    side = max(2.5, min(len(table), 60) * ROW_HEIGHT)
    ax = axes_or_new(ax, side + 1.8, side + 2.2)
    image = heat_map(ax, table)
    ax.set_aspect("equal")
    if len(table) <= _WITH_NUMBERS:
        _write_numbers(ax, table.to_numpy())
    # The names of rows and columns are the same, and so is the room for them.
    names = [label.get_text() for label in ax.get_yticklabels()]
    ax.set_xticks(ax.get_yticks(), names, fontsize=SMALL)
    ax.tick_params(axis="x", labelrotation=90)
    add_scale(ax, image, "cosine between the effects of the features on two targets")
    return ax


def similar_order(cosines: FloatArray) -> list[int]:
    """An order in which like tasks are neighbours.

    Examples
    --------
    >>> similar_order(np.array([[1.0, -0.9, 0.8], [-0.9, 1.0, -0.7], [0.8, -0.7, 1.0]]))
    [1, 2, 0]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # slow to import, seldom needed
    from scipy.spatial.distance import squareform

    if len(cosines) < 3:
        return list(range(len(cosines)))
    distances = np.maximum(1.0 - 0.5 * (cosines + cosines.T), 0.0)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances), method="average", optimal_ordering=True)
    return [int(task) for task in leaves_list(tree)]


def _write_numbers(ax: Axes, values: FloatArray) -> None:
    for (row, column), value in np.ndenumerate(values):
        color = "white" if abs(value) > 0.8 else "black"
        text = f"{value:.2f}".replace("-", "−")
        ax.text(column, row, text, ha="center", va="center", fontsize=SMALL - 1, color=color)
