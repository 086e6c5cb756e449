"""Heat maps: the components of shared directions, and similarities between targets."""

from typing import Any

import numpy as np
import pandas as pd

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.inspection.style import SMALL, Axes, axes_or_new, divide, shorten

# Moreland's map: its steps look equally large, and blue against red survives colour blindness.
DIVERGING = "coolwarm"
ROW_HEIGHT = 0.19  # inches: names of that font size do not touch
_MAX_NAMED = 60  # rows beyond this have no room for their names
_MAX_NUMBERED = 12  # tasks up to which a cell has room for its number
_GAP = 0.04  # between two panels
PALE = 0.25  # opacity of what is not stable


def draw_subspaces(
    features: pd.DataFrame,
    targets: pd.DataFrame,
    *,
    n_features: int = 25,
    stable: pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Two heat maps: the loadings of components on features, and on targets.

    Every component is scaled so that its largest loading on either side is ±1. Features are
    ordered by the size of their effects, :math:`\sum_r v_{rd}^2 \|u_r\|^2`.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
        Loadings v, a column for each component.
    targets : DataFrame of shape (T, R)
        Loadings u.
    n_features : int
        Only the largest are drawn.
    stable : DataFrame of shape (D, R), optional
        Loadings on features that are not stable are drawn pale.
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
    # Rows of both panels have the same height, and their tops are on one line.
    half, heights = 0.5 * (1.0 - _GAP), (len(order) / n_rows, len(targets) / n_rows)
    lefts = zip((0.0, 0.5 + 0.5 * _GAP), heights, strict=True)
    left, right = divide(ax, [(start, 1.0 - height, half, height) for start, height in lefts])
    mask = None if stable is None else stable.to_numpy()[order]
    heat_map(left, scaled(features.iloc[order]), mask)
    image = heat_map(right, scaled(targets))
    right.yaxis.tick_right()
    right.tick_params(length=0)
    shown = "all" if len(order) == len(features) else f"largest {len(order)} of"
    left.set_title(f"features ({shown} {len(features)})", fontsize="medium")
    right.set_title("targets", fontsize="medium")
    ax.set_xlabel("component (share of the squared effects)", labelpad=30)
    pale = "" if stable is None else "\npale: may have the other sign in the next sample"
    add_scale(ax.figure, ax, image, f"loading, the largest of each component being ±1{pale}")
    return ax


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
    if len(table) <= _MAX_NUMBERED:
        for (row, column), value in np.ndenumerate(table.to_numpy()):
            color = "white" if abs(value) > 0.8 else "black"
            text = f"{value:.2f}".replace("-", "−")
            ax.text(column, row, text, ha="center", va="center", fontsize=SMALL - 1, color=color)
    # Rows and columns have the same names.
    names = [label.get_text() for label in ax.get_yticklabels()]
    ax.set_xticks(ax.get_yticks(), names, fontsize=SMALL)
    ax.tick_params(axis="x", labelrotation=90)
    add_scale(ax.figure, ax, image, "cosine between the effects of the features on two targets")
    return ax


def similar_order(cosines: FloatArray) -> list[int]:
    """An order in which similar tasks are neighbours.

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


def heat_map(ax: Axes, table: pd.DataFrame, stable: BoolArray | None = None) -> Any:
    """Draw a table of values between −1 and 1, the first row on top, names at the left."""
    shades: dict[str, Any] = {"cmap": DIVERGING, "vmin": -1.0, "vmax": 1.0}
    opacity = None if stable is None else np.where(stable, 1.0, PALE)
    # "none" would leave out the opacities in a vector picture.
    shades["interpolation"] = "none" if stable is None else "nearest"
    image = ax.imshow(table.to_numpy(), aspect="auto", alpha=opacity, **shades)
    names = [shorten(str(name)) for name in table.index]
    named = range(len(names)) if len(names) <= _MAX_NAMED else range(0)
    ax.set_yticks(named, names[: len(named)], fontsize=SMALL)
    ax.set_xticks(range(table.shape[1]), [str(name) for name in table.columns], fontsize=SMALL)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def add_scale(figure: Any, axes: Any, image: Any, label: str) -> None:
    """A colour bar from −1 to 1 under the picture."""
    bar = figure.colorbar(
        image, ax=axes, location="bottom", pad=0.02, shrink=0.6, aspect=40, ticks=[-1.0, 0.0, 1.0]
    )
    bar.set_label(label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)


def map_height(n_rows: int) -> float:
    """Height in inches of a map with this many rows.

    Examples
    --------
    >>> map_height(3), map_height(30), map_height(1000)
    (1.0, 5.7, 11.4)
    """
    return round(min(max(n_rows * ROW_HEIGHT, 1.0), _MAX_NAMED * ROW_HEIGHT), 2)
