"""Convergence of a fit: the objective over steps of the solver, or over rows."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.inspection import style
from deeptobit.inspection.heatmaps import map_height
from deeptobit.inspection.style import BLUE, CYCLE, SMALL, VERMILION, Axes

_NOTHING = {
    "evidence": "this model was chosen by cross-validation; members_ has the candidates",
    "online": "this model has learned from too few rows to show its convergence",
}


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


def draw_convergence(history: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """The objective over the steps of every stage of a fit.

    Each stage continues on the x axis where the one before it ended. Those of an online fit all
    begin at 0, for each layer learns from the same rows.

    Parameters
    ----------
    history : dict
        The ``history_`` of a fitted model.
    ax : Axes, optional

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> steps = [SimpleNamespace(n_iter=1, objective=5.0), SimpleNamespace(n_iter=2, objective=4.0)]
    >>> history = {"solver": "batch", "layers": [{"course": steps}, {"course": steps}]}
    >>> ax = draw_convergence(history, ax=Figure().subplots())
    >>> [line.get_xdata().tolist() for line in ax.lines]
    [[1, 2], [3, 4]]
    """
    stages, online, done = read_stages(history), history.get("solver") == "online", 0
    if not stages:
        raise ValueError(_NOTHING.get(history["solver"], "this model stored no convergence"))
    ax = style.axes_or_new(ax, 6.4, 4.0)
    for stage, color in zip(stages, cycle(CYCLE), strict=False):
        at = done + np.asarray(stage.at)
        marker = "o" if len(at) <= 60 else ""
        ax.plot(at, stage.objective, marker=marker, markersize=3.5, color=color, label=stage.name)
        done = 0 if online else int(at[-1])
    if online:
        ax.set(xlabel="rows learned from", ylabel="mean nll per entry, before learning from it")
    else:
        ax.set(xlabel="iteration", ylabel="objective, penalised mean nll per row")
    ax.locator_params(axis="x", integer=True)
    if len(stages) > 1:
        ax.legend(fontsize=SMALL, frameon=False)
    style.open_frame(ax)
    return ax


def read_stages(history: Mapping[str, Any]) -> list[Stage]:
    """The stages in a ``history_``; empty if it has none.

    An online fit leaves out the joint tuning, which counts other steps and has another objective.
    """
    online, tuning = history.get("solver") == "online", history.get("tuning", {})
    stages = []
    for depth, layer in enumerate(history.get("layers", [history]), start=1):
        if records := layer.get("course"):
            undone = not tuning.get("kept", False) and depth > history.get("paying_depth", depth)
            name = f"layer {depth} (did not pay)" if undone else f"layer {depth}"
            at = [record.n_rows if online else record.n_iter for record in records]
            stages.append(Stage(name, at, [record.objective for record in records]))
    if stages and not online and tuning.get("objective"):
        undone = "" if tuning["kept"] else " (not kept)"
        values = list(tuning["objective"])
        stages.append(Stage(f"joint tuning{undone}", list(range(len(values))), values))
    return stages


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
    >>> [(label.get_text(), int(bar.get_width()))
    ...  for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)]
    [('MMSE', 4), ('ADAS', 100)]
    """
    rows = np.arange(len(names))
    ax = style.axes_or_new(ax, 5.0, 1.0 + map_height(len(names)))
    colours, hatches = np.where(converged, [[BLUE], [""]], [[VERMILION], ["////"]]).tolist()
    ax.barh(rows, n_iter, height=0.5, color=colours, hatch=hatches)
    ax.set_yticks(rows, [style.shorten(name) for name in names], fontsize=SMALL)
    ax.set_xlabel("Newton steps" if np.all(converged) else "Newton steps (hatched: not converged)")
    ax.locator_params(axis="x", integer=True)
    ax.invert_yaxis()
    style.open_frame(ax)
    return ax
