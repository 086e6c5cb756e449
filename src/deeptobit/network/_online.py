"""Growing a network in one pass over the rows for each layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.network._calibration import residual_sigma
from deeptobit.network._depth import deepened, paying_depth
from deeptobit.network._innovation import Innovation
from deeptobit.network._inputs import layer_inputs
from deeptobit.network._layer import NetworkLayer, latents
from deeptobit.objective import TargetScaling
from deeptobit.solvers.online import (
    OnlineResult,
    OnlineSettings,
    OnlineSolver,
    Record,
    learn_passes,
)
from deeptobit.targets import CensoredTargets

_JUDGING_ROWS = 512  # evenly spread; enough to tell whether a layer pays


@dataclass(frozen=True)
class OnlineNetwork:
    """A network in the user's units, grown online.

    Parameters
    ----------
    layers : tuple of NetworkLayer
    candidates : tuple of NetworkLayer
        All layers as they were learned, whether they pay or not.
    depth : int
        Up to where growth pays; deeper networks repeat the first layer.
    nlls : tuple of float
        Mean negative log likelihood of a row under networks of depth 1, 2, …
    courses : tuple of list of Record
        The history of each layer.
    """

    layers: tuple[NetworkLayer, ...]
    candidates: tuple[NetworkLayer, ...]
    depth: int
    nlls: tuple[float, ...]
    courses: tuple[list[Record], ...]


def grow_online(
    X: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    settings: OnlineSettings,
    *,
    n_layers: int,
    skip_connection: bool,
    n_passes: int,
    calibrate: bool,
    progress: Callable[[int, int], None] = lambda layer, n_rows: None,
) -> OnlineNetwork:
    """Learn layer after layer, each in ``n_passes`` over the rows."""
    layers: list[NetworkLayer] = []
    courses: list[list[Record]] = []
    below: FloatArray | None = None
    if calibrate:
        scaling = TargetScaling.build(targets, weight / weight.sum(), center=settings.fit_intercept)
        settings = replace(settings, sigma=scaling.scale)
    for depth in range(n_layers):
        innovation = None
        if below is not None and skip_connection:
            innovation = Innovation.of(layers, below, X, weight)
            below = innovation.apply(below, X)
        inputs = _Inputs(X, below, skip_connection)
        solver = OnlineSolver(settings, inputs.width, targets.shape[1])
        if innovation is not None:
            solver.start_from(result_of(innovation.redo(on_top(layers[-1], X.shape[1]))))
        for n_rows in learn_passes(solver, inputs, targets, weight, n_passes):
            progress(depth, n_rows)
        layer = layer_of(solver.result())
        latent = layer.latent(X, below)
        layer = layer if innovation is None else innovation.undo(layer)
        if calibrate:
            standard = scaling.apply(latent)
            sigma = scaling.scale * residual_sigma(targets, weight, standard, scaling)
            layer, settings = replace(layer, sigma=sigma), replace(settings, sigma=sigma)
        layers.append(layer)
        courses.append(solver.history)
        below = np.clip(latent, targets.lower, targets.upper)
    nlls = _nlls(X, targets, weight, settings, layers)
    depth = n_layers
    if skip_connection:
        depth = paying_depth(nlls, float(weight.sum()), settings.rank * targets.shape[1])
    kept = deepened(layers[:depth], n_layers)
    return OnlineNetwork(kept, tuple(layers), depth, nlls, tuple(courses))


def layer_of(result: OnlineResult) -> NetworkLayer:
    """What the online solver found, as a layer."""
    return NetworkLayer(result.U, result.V, result.intercept, result.sigma)


def result_of(layer: NetworkLayer) -> OnlineResult:
    """A layer as the online solver would have found it."""
    return OnlineResult(layer.U, layer.V, layer.intercept, layer.sigma, n_seen=0)


def on_top(layer: NetworkLayer, n_features: int) -> NetworkLayer:
    """Where the next layer starts: as this one, with zeros for outputs that it did not see.

    Above the second layer, its outputs take the place of those it saw itself.
    """
    if layer.V.shape[1] > n_features:
        return layer
    return replace(layer, V=np.pad(layer.V, ((0, 0), (len(layer.U), 0))))


@dataclass(frozen=True)
class _Inputs:
    """The inputs of a layer, put together chunk by chunk."""

    X: Any
    below: FloatArray | None
    skip_connection: bool

    @property
    def width(self) -> int:
        return int(self[slice(0, 1)].shape[1])

    def __getitem__(self, rows: slice) -> Any:
        below = None if self.below is None else self.below[rows]
        return layer_inputs(self.X[rows], below, skip_connection=self.skip_connection)


def _nlls(
    X: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    settings: OnlineSettings,
    layers: list[NetworkLayer],
) -> tuple[float, ...]:
    """Mean negative log likelihoods of some rows, for every depth."""
    present = np.flatnonzero(weight)
    rows = present[:: max(1, len(present) // _JUDGING_ROWS)]
    low, high, share = targets.low[rows], targets.high[rows], weight[rows] / weight[rows].sum()
    scores = latents(layers, X[rows], targets.lower, targets.upper)
    return tuple(
        float(share @ likelihood.evaluate(settings.noise, low, high, latent, layer.sigma).nll.sum(1))
        for layer, latent in zip(layers, scores, strict=True)
    )
