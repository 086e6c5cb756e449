"""The architecture of a fitted network, from left to right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _VERMILION, _MUTED = "#0072b2", "#d55e00", "#5f5f5f"
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
    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
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
        ax.plot([0.0, 0.0], [-height / 2.0 - 0.75, depth], color=_MUTED, linewidth=1.2)
        ax.text(0.15, depth + 0.1, "skip connection: x beside f", size=_SMALL, color=_MUTED)
        start = 0.0
    else:
        start = x - _STEP
    ax.plot([start, x + 0.45, x + 0.45], [depth, depth, -0.75], color=_MUTED, linewidth=1.2)
    arrow = {"arrowstyle": "-|>", "color": _MUTED, "linewidth": 1.2}
    ax.annotate("", (x + 0.45, -0.35), (x + 0.45, -0.8), arrowprops=arrow)
