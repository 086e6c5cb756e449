"""A network to the optimum of every layer, by rounds over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network import on_top
from deeptobit.scale._inputs import LayerInputs
from deeptobit.scale._rounds import RoundSettings, RoundsFit, fit_layer
from deeptobit.scale._rows import Rows
from deeptobit.scale._state import DataSummary, FinishedLayer, Progress, RoundState
from deeptobit.solvers import Step

Keep = Callable[[Progress], None]


def grow_by_rounds(
    rows: Rows,
    bounds: tuple[FloatArray, FloatArray],
    settings: RoundSettings,
    *,
    n_layers: int,
    skip_connection: bool = True,
    progress: Progress | None = None,
    keep: Keep = lambda progress: None,
    watch: Callable[[int, Step], None] = lambda depth, step: None,
) -> Progress:
    """Fit layer after layer, each to its optimum on [f; x] of those below.

    Parameters
    ----------
    rows : Rows
    bounds : arrays of shape (T,)
        Lower and upper bounds at which outputs are censored.
    settings : RoundSettings
    n_layers : int
    skip_connection : bool
    progress : Progress, optional
        Where an earlier fit was interrupted.
    keep : function
        Called with the progress after every round.
    watch : function
        Called with the layer's number and every step.

    Returns
    -------
    Progress
        With ``n_layers`` finished layers.
    """
    progress = progress or Progress()
    n_features = len(rows.source.features)
    while len(progress.finished) < n_layers:
        layers, before = progress.layers, progress
        depth = len(layers)
        start = on_top(layers[-1], n_features) if layers and skip_connection else None
        found = fit_layer(
            rows,
            LayerInputs(*bounds, layers, skip_connection),
            settings,
            start=start,
            state=progress.now if isinstance(progress.now, RoundState) else None,
            keep=lambda state, before=before: keep(replace(before, now=state)),  # type: ignore[misc]
            watch=lambda step, depth=depth: watch(depth, step),  # type: ignore[misc]
        )
        progress = Progress(
            (*progress.finished, _finished(found)), None, progress.summary or _summary(found)
        )
        keep(progress)
    return progress


def _finished(found: RoundsFit) -> FinishedLayer:
    fit = found.fit
    history = {
        "objective": fit.objective,
        "gradient_norm": fit.gradient_norm,
        "certificate": fit.certificate,
        "converged": fit.converged,
        "course": list(fit.course),
    }
    return FinishedLayer(found.layer, found.alpha, found.nll, fit.n_iter, history)


def _summary(found: RoundsFit) -> DataSummary:
    moments, shift = found.data.moments, found.data.shift
    mean = shift.X + moments.x / moments.weight
    variance = np.diagonal(moments.xx) / moments.weight - (moments.x / moments.weight) ** 2
    variance = np.maximum(variance, 0.0)
    return DataSummary(
        moments.n_rows,
        moments.weight,
        moments.known,
        variance + mean**2,
        np.sqrt(variance),
        found.kinds.one_sided,
        found.kinds.two_sided,
    )
