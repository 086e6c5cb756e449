"""The directions that outcomes share: features and targets by component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.plots._heatmap import add_scale, heat_map, map_height
from deeptobit.plots._style import axes_or_new, divide

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_GAP = 0.04


def draw_subspaces(
    features: pd.DataFrame,
    targets: pd.DataFrame,
    *,
    n_features: int = 25,
    ax: Axes | None = None,
) -> Axes:
    r"""Two heat maps: what a component is made of, and which targets it moves.

    Every component is scaled so that its largest loading on either side is ±1. Features are
    ordered by the size of all that they do, :math:`\sum_r v_{rd}^2 \|u_r\|^2`.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
        Loadings v, a column for each component.
    targets : DataFrame of shape (T, R)
        Loadings u.
    n_features : int
        The largest so many are drawn.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> v = pd.DataFrame({"1": [0.1, -1.0, 0.4]}, index=["age", "volume", "marker"])
    >>> u = pd.DataFrame({"1": [4.0, -2.0]}, index=["ADAS", "MMSE"])
    >>> ax = draw_subspaces(v, u, n_features=2, ax=Figure().subplots())
    >>> [panel.images[0].get_array().tolist() for panel in ax.child_axes]
    [[[-1.0], [0.4]], [[1.0], [-0.5]]]
    """
    sizes = np.square(features.to_numpy()) @ np.square(targets.to_numpy()).sum(axis=0)
    order = np.argsort(-sizes, kind="stable")[:n_features]
    n_rows, n_components = max(len(order), len(targets)), features.shape[1]
    width = 4.2 + 2.0 * min(max(0.4 * n_components, 1.2), 4.0)
    ax = axes_or_new(ax, width, 1.3 + map_height(n_rows))
    left, right = divide(ax, _places(len(order) / n_rows, len(targets) / n_rows))
    heat_map(left, scaled(features.iloc[order]))
    image = heat_map(right, scaled(targets))
    right.yaxis.tick_right()
    right.tick_params(length=0)
    shown = "all" if len(order) == len(features) else f"largest {len(order)} of"
    left.set_title(f"features ({shown} {len(features)})", fontsize="medium")
    right.set_title("targets", fontsize="medium")
    ax.set_xlabel("component (share of the squared effects)", labelpad=30)
    add_scale(ax, image, "loading, the largest of each component being ±1")
    return ax


def _places(*heights: float) -> list[tuple[float, float, float, float]]:
    """Two panels side by side, their rows of the same height and their tops on one line."""
    half = 0.5 * (1.0 - _GAP)
    lefts = 0.0, 0.5 + 0.5 * _GAP
    return [(left, 1.0 - height, half, height) for left, height in zip(lefts, heights, strict=True)]


def scaled(loadings: pd.DataFrame) -> pd.DataFrame:
    """Columns divided by their largest absolute value; columns of zeros stay.

    Examples
    --------
    >>> import pandas as pd
    >>> scaled(pd.DataFrame({"1": [2.0, -4.0], "2": [0.0, 0.0]})).to_numpy()
    array([[ 0.5,  0. ],
           [-1. ,  0. ]])
    """
    largest = loadings.abs().max()
    return loadings / largest.where(largest > 0.0, 1.0)
