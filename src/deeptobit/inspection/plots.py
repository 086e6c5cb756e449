"""Predicted against observed, with the bounds and what is censored there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.extras import require
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


# Where pictures are drawn, and in which colours.

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


# Heat maps of signed values between −1 and 1.

# Moreland's map: its steps look equally large, and blue against red survives colour blindness.
DIVERGING = "coolwarm"
ROW_HEIGHT = 0.19  # inches: names of that font size do not touch
_MAX_NAMED = 60  # rows beyond this have no room for their names


def heat_map(ax: Axes, table: pd.DataFrame) -> AxesImage:
    """Draw a table of values between −1 and 1, its first row on top; names stand at the left."""
    image = ax.imshow(
        table.to_numpy(), cmap=DIVERGING, vmin=-1.0, vmax=1.0, aspect="auto", interpolation="none"
    )
    names = [shorten(str(name)) for name in table.index]
    named = range(len(names)) if len(names) <= _MAX_NAMED else range(0)
    ax.set_yticks(named, names[: len(named)], fontsize=SMALL)
    ax.set_xticks(range(table.shape[1]), [str(name) for name in table.columns], fontsize=SMALL)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def add_scale(ax: Axes, image: AxesImage, label: str) -> None:
    """Explain the colours under the picture."""
    figure: Any = ax.figure
    bar = figure.colorbar(
        image, ax=ax, location="bottom", pad=0.02, shrink=0.6, aspect=40, ticks=[-1.0, 0.0, 1.0]
    )
    bar.set_label(label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)


def map_height(n_rows: int) -> float:
    """Inches for so many rows.

    Examples
    --------
    >>> map_height(3), map_height(30), map_height(1000)
    (1.0, 5.7, 11.4)
    """
    return round(min(max(n_rows * ROW_HEIGHT, 1.0), _MAX_NAMED * ROW_HEIGHT), 2)


def shorten(name: str, length: int = 32) -> str:
    """A name that leaves room for the picture; what tells names apart is often at their end.

    Examples
    --------
    >>> shorten("lh_superiortemporal_thickness (layer 2)")
    'lh_superiortemp…ckness (layer 2)'
    """
    if len(name) <= length:
        return name
    half = length // 2
    return f"{name[: half - 1]}…{name[-half:]}"


# Predicted against observed for one target.

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


# Which outcomes are alike, neighbours being most alike.

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


# The directions that outcomes share: features and targets by component.

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


# What each layer of a network adds.

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
