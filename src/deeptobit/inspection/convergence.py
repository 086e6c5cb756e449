"""Convergence of a fit: the objective over steps of the solver, or over rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.inspection import style
from deeptobit.inspection.heatmaps import map_height
from deeptobit.inspection.style import BLUE, CYCLE, LIGHT, SMALL, VERMILION, Axes

_ONLINE_OBJECTIVE = "mean nll per entry, before learning from it"


class Stage(NamedTuple):
    """A part of a fit: the growth of a layer, or the joint tuning of all.

    Parameters
    ----------
    name : str
    at : sequence of int
        Steps taken or rows seen within the stage, rising.
    objective : sequence of float
    """

    name: str
    at: Sequence[int]
    objective: Sequence[float]


def draw_convergence(
    stages: Sequence[Stage],
    *,
    unit: str = "iteration",
    objective: str = "objective",
    in_turn: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """The objective over the steps of one or more stages.

    Parameters
    ----------
    stages : sequence of Stage
    unit, objective : str
        Labels of the axes.
    in_turn : bool
        Whether each stage continues on the x axis where the one before it ended; else all begin
        at 0.
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> stages = [Stage("layer 1", [1, 2], [5.0, 4.0]), Stage("tuning", [0, 1], [4.0, 3.5])]
    >>> ax = draw_convergence(stages, ax=Figure().subplots())
    >>> [line.get_xdata().tolist() for line in ax.lines]
    [[1, 2], [2, 3]]
    """
    ax = style.axes_or_new(ax, 6.4, 4.0)
    done = 0
    for number, stage in enumerate(stages):
        at = done + np.asarray(stage.at)
        color = CYCLE[number % len(CYCLE)]
        marker = "o" if len(at) <= 60 else ""
        ax.plot(at, stage.objective, marker=marker, markersize=3.5, color=color, label=stage.name)
        done = int(at[-1]) if in_turn else done
    ax.set(xlabel=unit, ylabel=objective)
    ax.locator_params(axis="x", integer=True)
    if len(stages) > 1:
        ax.legend(fontsize=SMALL, frameon=False)
    style.open_frame(ax)
    return ax


def draw_steps(
    names: Sequence[str], n_iter: ArrayLike, converged: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Newton steps that each target took, for models whose targets are fitted one by one.

    Parameters
    ----------
    names : sequence of str
    n_iter, converged : arrays of shape (T,)
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = draw_steps(["MMSE", "ADAS"], [4, 100], [True, False], ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['converged', 'not converged']
    """
    steps, good = np.asarray(n_iter), np.asarray(converged, dtype=bool)
    ax = style.axes_or_new(ax, 5.0, 1.0 + map_height(len(steps)))
    rows = np.arange(len(steps))
    ax.hlines(rows, 0, steps, color=LIGHT, linewidth=1.0, zorder=1)
    for chosen, marker, color, label in (
        (good, "o", BLUE, "converged"),
        (~good, "X", VERMILION, "not converged"),
    ):
        if chosen.any():
            ax.scatter(steps[chosen], rows[chosen], s=24, marker=marker, color=color, label=label)
    ax.set_yticks(rows, [style.shorten(name) for name in names], fontsize=SMALL)
    ax.set(xlabel="Newton steps", xlim=(0.0, 1.08 * max(float(steps.max()), 1.0)))
    ax.locator_params(axis="x", integer=True)
    ax.invert_yaxis()
    style.legend_above(ax)
    style.open_frame(ax)
    return ax


# The stages in ``history_`` of a fitted model.


def read_convergence(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of :func:`draw_convergence`, from a ``history_``; None if it has no stages.

    An online fit leaves out the joint tuning, which counts other steps and has another objective.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> steps = [SimpleNamespace(n_iter=1, objective=2.0), SimpleNamespace(n_iter=2, objective=1.5)]
    >>> read_convergence({"solver": "batch", "course": steps})["stages"]
    [Stage(name='layer 1', at=[1, 2], objective=[2.0, 1.5])]
    """
    online = history.get("solver") == "online"
    tuning = history.get("tuning", {})
    stages = []
    for depth, layer in enumerate(history.get("layers", [history]), start=1):
        records = layer.get("course")
        if records:
            undone = not tuning.get("kept", False) and depth > history.get("paying_depth", depth)
            name = f"layer {depth} (did not pay)" if undone else f"layer {depth}"
            at = [record.n_rows if online else record.n_iter for record in records]
            stages.append(Stage(name, at, [record.objective for record in records]))
    if not stages:
        return None
    if online:
        labels = {"unit": "rows learned from", "objective": _ONLINE_OBJECTIVE}
        return {"stages": stages, **labels, "in_turn": False}
    if tuning.get("objective"):
        undone = "" if tuning["kept"] else " (not kept)"
        values = list(tuning["objective"])
        stages.append(Stage(f"joint tuning{undone}", list(range(len(values))), values))
    return {"stages": stages, "objective": "objective, penalised mean nll per row"}
