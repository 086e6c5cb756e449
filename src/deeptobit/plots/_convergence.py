"""How a model was found: the objective from step to step, or from row to row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.plots._heatmap import map_height, shorten
from deeptobit.plots._style import BLUE, CYCLE, LIGHT, SMALL, VERMILION, axes_or_new, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Stage(NamedTuple):
    """A part of the course: a layer that was grown, or the tuning of all.

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
    """The objective over the course of one or more stages.

    Parameters
    ----------
    stages : sequence of Stage
    unit, objective : str
        Labels of the axes.
    in_turn : bool
        Whether each continues on the x axis where the one before it ended, or all begin at 0.
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> stages = [Stage("layer 1", [1, 2], [5.0, 4.0]), Stage("tuning", [0, 1], [4.0, 3.5])]
    >>> ax = draw_convergence(stages, ax=Figure().subplots())
    >>> [line.get_xdata().tolist() for line in ax.lines]
    [[1, 2], [2, 3]]
    """
    ax = axes_or_new(ax, 6.4, 4.0)
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
    open_frame(ax)
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
    ax = axes_or_new(ax, 5.0, 1.0 + map_height(len(steps)))
    rows = np.arange(len(steps))
    ax.hlines(rows, 0, steps, color=LIGHT, linewidth=1.0, zorder=1)
    for chosen, marker, color, label in (
        (good, "o", BLUE, "converged"),
        (~good, "X", VERMILION, "not converged"),
    ):
        if chosen.any():
            ax.scatter(steps[chosen], rows[chosen], s=24, marker=marker, color=color, label=label)
    ax.set_yticks(rows, [shorten(name) for name in names], fontsize=SMALL)
    ax.set(xlabel="Newton steps", xlim=(0.0, 1.08 * max(float(steps.max()), 1.0)))
    ax.locator_params(axis="x", integer=True)
    ax.invert_yaxis()
    ax.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    open_frame(ax)
    return ax
