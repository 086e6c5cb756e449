"""Figures of the reproduction by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeptobit.app.report import draw_brain_maps, recognise_regions
from deeptobit.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paper.section import FigureOf


# Panels of lines, and of weights.

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MUTED = "#5f5f5f"
_STYLES = ("-", "--", "-.", ":")
_TITLE, _LABEL = 10, 9  # points
_WIDTH = 11.0  # inches: about that of the page
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_lines(data: Mapping[str, Any]) -> Figure:
    """Panels of lines with bands; one legend for all."""
    panels = data["panels"]
    n_columns = 2 if len(panels) == 4 else min(len(panels), 3)
    n_rows = -(-len(panels) // n_columns)
    figure, axes = _grid(n_rows, n_columns, 3.0)
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, panel)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    handles: dict[str, Any] = {}
    for ax in axes[: len(panels)]:
        lines, labels = ax.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    if handles:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=min(len(handles), 2 if max(map(len, handles)) > 16 else 4),
            frameon=False,
            fontsize=_LABEL,
        )
    return figure


def draw_weights(data: Mapping[str, Any]) -> Figure:
    """True against predicted weights of tasks, and the correlations of all."""
    pairs = list(zip(np.asarray(data["true"]), np.asarray(data["predicted"]), strict=True))
    figure, axes = _grid(1, len(pairs) + 1, 3.1)
    for number, (ax, (true, predicted)) in enumerate(zip(axes, pairs, strict=False)):
        ends = [min(true.min(), predicted.min()), max(true.max(), predicted.max())]
        ax.plot(ends, ends, color=_MUTED, linewidth=0.8)
        ax.plot(true, predicted, "o", color=_COLOURS[0], markersize=3.5, alpha=0.6, mew=0.0)
        correlation = np.corrcoef(true, predicted)[0, 1]
        ax.set_title(f"({'ab'[number]}) task {number + 1}: r = {correlation:.3f}", fontsize=_TITLE)
        ax.set_xlabel("true weight", fontsize=_LABEL)
        ax.set_ylabel("predicted weight", fontsize=_LABEL)
    last, correlations = axes[-1], np.asarray(data["correlations"])
    smallest = min(float(correlations.min()), data["threshold"] - 0.02)
    last.hist(correlations, bins=np.linspace(smallest, 1.0, 31).tolist(), color=_COLOURS[0])
    last.axvline(data["threshold"], color=_COLOURS[1], linewidth=1.2, linestyle="--")
    share = (correlations > data["threshold"]).mean()
    last.set_title(f"(c) {share:.0%} of tasks above {data['threshold']:g}", fontsize=_TITLE)
    last.set_xlabel("correlation with the truth", fontsize=_LABEL)
    last.set_ylabel("tasks", fontsize=_LABEL)
    return figure


def _grid(n_rows: int, n_columns: int, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=_LABEL - 1)
    return figure, axes


def _make_logarithmic(ax: Axes, name: str) -> None:
    """With ticks that are plain numbers: the page does not read formulas."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    getattr(ax, f"set_{name}scale")("log")
    axis = getattr(ax, f"{name}axis")
    low, high = axis.get_view_interval()
    parts = (1.0,) if high > 200.0 * low else (1.0, 2.0, 5.0)
    few = high < 8.0 * low
    axis.set_major_locator(MaxNLocator(4) if few else LogLocator(subs=parts, numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    """A number, or a power of ten where that is shorter."""
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:g}"
    factor, power = f"{value:.0e}".split("e")
    raised = str(int(power)).translate(_RAISED)
    return f"10{raised}" if factor == "1" else f"{factor}·10{raised}"


def _draw_panel(ax: Axes, panel: Mapping[str, Any]) -> None:
    for number, line in enumerate(panel["lines"]):
        colour = _COLOURS[number % len(_COLOURS)]
        style = _STYLES[number % len(_STYLES)]
        label = line["label"] or None
        ax.plot(line["x"], line["y"], style, color=colour, label=label, linewidth=1.5)
        if "low" in line:
            ax.fill_between(
                line["x"], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0.0
            )
    for name in ("x", "y"):
        if panel[f"log_{name}"]:
            _make_logarithmic(ax, name)
    ax.set_title(panel["title"], fontsize=_TITLE)
    ax.set_xlabel(panel["xlabel"], fontsize=_LABEL)
    ax.set_ylabel(panel["ylabel"], fontsize=_LABEL)
    ax.grid(alpha=0.25, linewidth=0.6)


# The architecture of a fitted network, from left to right.

_BLUE, _VERMILION = _COLOURS[:2]
_STEP = 2.4  # between layers
_SKETCH = 1.0  # from the inputs of a layer to its sketch
_BAR = 0.26  # width of a column of units
_TALLEST = 2.6
_SMALL, _TEXT = 8.5, 10  # points


def draw_network(data: Mapping[str, Any]) -> Figure:
    """Columns are vectors, as tall as the root of their length; V and U lead from one to the next.

    The skip connection runs below and joins every layer above the first.
    """
    from matplotlib.figure import Figure

    layers = data["layers"]
    figure = Figure(figsize=(_WIDTH, 4.0), layout="constrained")
    ax = figure.subplots()
    longest = max(layer["inputs"] for layer in layers)
    heights = {size: _TALLEST * np.sqrt(size / longest) for size in _sizes(data)}
    n_features, n_tasks = data["n_features"], data["n_tasks"]
    _column(ax, 0.0, heights[n_features], _MUTED, f"x\n{n_features} features")
    for number, layer in enumerate(layers, start=1):
        left = (number - 1) * _STEP
        middle, right = left + _SKETCH, left + _STEP
        before = heights[n_features if number == 1 else n_tasks]
        rank = heights[layer["rank"]]
        _fan(ax, left, before, middle, rank, f"V{_below(number)}")
        _fan(ax, middle, rank, right, heights[n_tasks], f"U{_below(number)}")
        _column(ax, middle, rank, _VERMILION, f"R = {layer['rank']}")
        name = "ŷ" if number == len(layers) else f"f{_below(number)}"
        _column(ax, right, heights[n_tasks], _BLUE, f"{name}\n{n_tasks} outcomes")
        ax.text(
            (left + right) / 2.0, 1.95, f"layer {number}", ha="center", weight="bold", size=_TEXT
        )
    for number in range(1, len(layers)):
        _skip(ax, heights[n_features], number * _STEP, number == 1)
    ax.set_xlim(-0.6, len(layers) * _STEP + 0.6)
    ax.set_ylim(-3.1, 2.2)
    ax.set_axis_off()
    return figure


def _sizes(data: Mapping[str, Any]) -> set[int]:
    return {data["n_features"], data["n_tasks"], *(layer["rank"] for layer in data["layers"])}


def _below(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _column(ax: Axes, x: float, height: float, colour: str, label: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = x - _BAR / 2.0, -height / 2.0
    box = FancyBboxPatch(
        corner, _BAR, height, boxstyle="round,pad=0,rounding_size=0.08", color=colour, zorder=3
    )
    ax.add_patch(box)
    ax.text(x, -height / 2.0 - 0.12, label, ha="center", va="top", size=_SMALL, linespacing=1.4)


def _fan(ax: Axes, left: float, tall: float, right: float, low: float, label: str) -> None:
    """What a matrix does: all of one column goes into all of the next."""
    start, end = left + _BAR / 2.0, right - _BAR / 2.0
    corners = [(start, tall / 2.0), (end, low / 2.0), (end, -low / 2.0), (start, -tall / 2.0)]
    ax.fill(*zip(*corners, strict=True), color=_BLUE, alpha=0.14, linewidth=0.0)
    ax.text((start + end) / 2.0, 0.0, label, ha="center", va="center", size=_TEXT)


def _skip(ax: Axes, height: float, x: float, first: bool) -> None:
    depth = -2.55
    if first:
        ax.plot(
            [0.0, 0.0],
            [-height / 2.0 - 0.75, depth],
            color=_MUTED,
            linewidth=1.2,
        )
        ax.text(
            0.15,
            depth + 0.1,
            "skip connection: x beside f",
            size=_SMALL,
            color=_MUTED,
        )
        start = 0.0
    else:
        start = x - _STEP
    ax.plot(
        [start, x + 0.45, x + 0.45],
        [depth, depth, -0.75],
        color=_MUTED,
        linewidth=1.2,
    )
    arrow = {"arrowstyle": "-|>", "color": _MUTED, "linewidth": 1.2}
    ax.annotate("", (x + 0.45, -0.35), (x + 0.45, -0.8), arrowprops=arrow)


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Figure]] = {
    "lines": draw_lines,
    "weights": draw_weights,
    "network": draw_network,
}


class Drawn(NamedTuple):
    """Figures with their captions; without any, ``note`` says why."""

    figures: list[tuple[Figure, str]]
    note: str = ""


def draw(figure: FigureOf) -> Drawn:
    """Draw what a section describes."""
    if figure.kind == "brain":
        return _draw_brain(figure)
    return Drawn([(_KINDS[figure.kind](figure.data), figure.caption)])


def _draw_brain(figure: FigureOf) -> Drawn:
    import pandas as pd

    data = figure.data
    names = [f"{name}\n{tasks}" for name, tasks in zip(data["names"], data["tasks"], strict=True)]
    values = pd.DataFrame(data["loadings"], index=data["features"], columns=names)
    measures = recognise_regions(values.index).measures
    if not measures:
        return Drawn([], "No feature is a region of the cortex: there is no map to draw.")
    try:
        maps = [draw_brain_maps(values, measure=name) for name in measures]
    except MissingExtraError as error:
        return Drawn([], f"The features are regions of the cortex, but {error}.")
    drawn = []
    for name, one in zip(measures, maps, strict=True):
        one.set_size_inches(_WIDTH, one.get_figheight() * _WIDTH / one.get_figwidth())
        note = one.get_supxlabel().replace("\n", " ")
        one.supxlabel("")
        drawn.append((one, f"{figure.caption} Measure: {name}. {note}"))
    return Drawn(drawn)
