"""Courses and weights of a reproduced figure, as panels beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MUTED = "#5f5f5f"
_STYLES = ("-", "--", "-.", ":")
_TITLE, _LABEL = 10, 9  # points
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
    pairs = list(zip(data["true"], data["predicted"], strict=True))
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

    figure = Figure(figsize=(11.0, height * n_rows + 0.4), layout="constrained")
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
