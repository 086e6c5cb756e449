"""Growing a network in one pass over the rows for each layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.layer import TargetScaling
from deeptobit.network.grow import deepened, paying_depth, residual_sigma
from deeptobit.network.layer import NetworkLayer, latents, layer_inputs
from deeptobit.online import (
    OnlineResult,
    OnlineSettings,
    OnlineSolver,
    RawRows,
    Record,
    RecursiveTobit,
    RowBuffer,
    learn_passes,
)
from deeptobit.targets import CensoredTargets

# What the outputs of a layer add to the features: inputs that the online solver learns fast.

_PCA_ROWS = 2048
_NEGLIGIBLE = 1e-2  # of the largest variance among the directions of what is new


@dataclass(frozen=True)
class Innovation:
    r"""Outputs without what is linear in x: :math:`g = Q^\top(f - m - B^\top Sx)`, uncorrelated.

    A layer's outputs are close to linear in x and to one another, so that [f; x] is badly
    conditioned even where x is not. [g; x] is a change of coordinates that is conditioned as x
    is, and lets the solver keep its cheap diagonal metric. It is enough to regress f on the
    sketches Sx of the layers below, through which f depends on x: for Gaussian features the rest
    is then uncorrelated with all of x (Bussgang 1952). Directions with little variance are left
    out.

    Parameters
    ----------
    sketch : array of shape (S, D)
    mean : array of shape (T,)
    slopes : array of shape (S, T)
        B, of the regression of f on Sx.
    directions : array of shape (T, r)
        Q, orthonormal columns.
    """

    sketch: FloatArray
    mean: FloatArray
    slopes: FloatArray
    directions: FloatArray

    @classmethod
    def of(
        cls, layers: Sequence[NetworkLayer], below: FloatArray, X: Any, weight: FloatArray
    ) -> Innovation:
        """What the last of some layers adds, whose outputs of the rows are ``below`` (N, T)."""
        n_features = X.shape[1]
        parts = {id(layer): layer.V[:, -n_features:] for layer in (layers[0], layers[-1])}
        sketch = np.vstack(list(parts.values()))
        h = np.asarray(X @ sketch.T)
        share = weight / weight.sum()
        h_mean, f_mean = share @ h, share @ below
        h -= h_mean
        heavy = (h * share[:, None]).T
        slopes = np.linalg.lstsq(heavy @ h, heavy @ (below - f_mean), rcond=1e-10)[0]
        some = slice(None, None, max(1, len(below) // _PCA_ROWS))
        new = below[some] - f_mean - h[some] @ slopes
        values, vectors = np.linalg.eigh((new * share[some, None]).T @ new)
        kept = values > _NEGLIGIBLE * max(float(values[-1]), 1e-300)
        return cls(sketch, f_mean - h_mean @ slopes, slopes, vectors[:, kept])

    def apply(self, below: FloatArray, X: Any) -> FloatArray:
        """The new inputs g, (N, r)."""
        linear = np.asarray(X @ self.sketch.T) @ self.slopes
        linear += self.mean
        return np.asarray((below - linear) @ self.directions)

    def undo(self, layer: NetworkLayer) -> NetworkLayer:
        """The layer on [f; x] that a layer on [g; x] amounts to."""
        n_new = self.directions.shape[1]
        V_f = layer.V[:, :n_new] @ self.directions.T
        V_x = layer.V[:, n_new:] - V_f @ self.slopes.T @ self.sketch
        intercept = layer.intercept - layer.U @ (V_f @ self.mean)
        return replace(layer, V=np.hstack([V_f, V_x]), intercept=intercept)

    def redo(self, layer: NetworkLayer) -> NetworkLayer:
        """The layer on [g; x] that a layer on [f; x] amounts to, up to what g leaves out."""
        n_tasks = len(self.directions)
        V_f, V_x = layer.V[:, :n_tasks], layer.V[:, n_tasks:]
        V = np.hstack([V_f @ self.directions, V_x + V_f @ self.slopes.T @ self.sketch])
        return replace(layer, V=V, intercept=layer.intercept + layer.U @ (V_f @ self.mean))


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
        float(
            share @ likelihood.evaluate(settings.noise, low, high, latent, layer.sigma).nll.sum(1)
        )
        for layer, latent in zip(layers, scores, strict=True)
    )


# A network that learns from rows as they come, all layers at once.

_SEGMENT_ROWS = 512
_FADE = 0.9  # of what a segment's losses count when the next one comes


class NetworkStream:
    """Layers that learn one segment of rows after the other, from the bottom to the top.

    Segments are 512 rows whose edges depend on the number of rows alone, so that learning in
    pieces gives exactly what one call gives. Within a segment a layer learns first, and the one
    above sees what it then makes of the rows. Memory does not grow with the number of rows.

    A layer learns on ground that moves as long as the one below does, and may be worse than none.
    Every segment is therefore predicted before it is learned, by networks of all depths, and the
    depth that did best lately is the one that counts.

    Parameters
    ----------
    settings : OnlineSettings
    lower, upper : arrays of shape (T,)
    n_features, n_layers : int
    skip_connection : bool

    Attributes
    ----------
    learned_layers : tuple of NetworkLayer
        All layers after the last segment, whether their depth counts or not.
    """

    def __init__(
        self,
        settings: OnlineSettings,
        lower: FloatArray,
        upper: FloatArray,
        *,
        n_features: int,
        n_layers: int,
        skip_connection: bool,
    ) -> None:
        n_tasks = len(lower)
        width = n_tasks + (n_features if skip_connection else 0)
        widths = [n_features, *[width] * (n_layers - 1)]
        self._settings = settings
        self._bounds = lower, upper
        self._skip_connection = skip_connection
        self._solvers = [OnlineSolver(settings, inputs, n_tasks) for inputs in widths]
        self.learned_layers: tuple[NetworkLayer, ...] = ()
        self._losses = np.zeros(n_layers)
        batch = settings.batch_size
        self._segment = batch * -(-_SEGMENT_ROWS // batch)
        self._buffer = RowBuffer()

    @property
    def n_seen(self) -> int:
        """Rows so far."""
        return self._buffer.n_total

    @property
    def courses(self) -> tuple[list[Record], ...]:
        """The history of each layer."""
        return tuple(solver.history for solver in self._solvers)

    @property
    def depth(self) -> int:
        """The depth that predicted new rows best; 1 before there were any."""
        return int(np.argmin(self._losses)) + 1 if self._skip_connection else len(self._solvers)

    def learn(self, X: Any, low: FloatArray, high: FloatArray, weight: FloatArray) -> None:
        """Learn from some rows; arguments as for :meth:`OnlineSolver.learn`."""
        for rows in self._buffer.blocks(X, low, high, weight, lambda: self._segment):
            self._process(rows)

    def layers(self) -> tuple[NetworkLayer, ...]:
        """The network so far; the rows of an unfinished segment are learned on a copy."""
        stream = self
        if self._buffer.n_rows:
            stream = copy.deepcopy(self)
            stream._process(stream._buffer.take())
        return deepened(stream.learned_layers[: stream.depth], len(stream.learned_layers))

    def _process(self, rows: RawRows) -> None:
        if self.learned_layers:
            self._judge(rows)
        below, layers = None, list[NetworkLayer]()
        for solver in self._solvers:
            inputs = layer_inputs(rows.X, below, skip_connection=self._skip_connection)
            if layers and not self.learned_layers and self._skip_connection:
                solver.start_from(result_of(on_top(layers[-1], rows.X.shape[1])))
            solver.learn(inputs, rows.low, rows.high, rows.weight)
            layers.append(layer_of(solver.result()))
            below = np.clip(layers[-1].latent(inputs), *self._bounds)
        self.learned_layers = tuple(layers)

    def _judge(self, rows: RawRows) -> None:
        """Add the losses of new rows under networks of every depth to what is left of the old."""
        self._losses *= _FADE
        for depth, latent in enumerate(latents(self.learned_layers, rows.X, *self._bounds)):
            sigma = self.learned_layers[depth].sigma
            at = likelihood.evaluate(self._settings.noise, rows.low, rows.high, latent, sigma)
            self._losses[depth] += float(rows.weight @ at.nll.sum(axis=1))


class ContinuedNetwork:
    """A trained network that goes on learning: its last layer does, on what lies below it.

    Hidden layers stay as they are. In a network that was tuned they do not predict the outcomes,
    so that there is nothing to hold them against; they are features by now.

    Parameters
    ----------
    layers : tuple of NetworkLayer
        In the user's units.
    last : RecursiveTobit
        The last layer, on its inputs [f; x].
    lower, upper : arrays of shape (T,)
    """

    def __init__(
        self,
        layers: tuple[NetworkLayer, ...],
        last: RecursiveTobit,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self._hidden, self._last = layers[:-1], last
        self._skip_connection = layers[-1].V.shape[1] > len(lower)
        self._bounds = lower, upper

    @property
    def n_seen(self) -> int:
        """Rows behind the network, old and new."""
        return self._last.result().n_seen

    def learn(self, X: Any, low: FloatArray, high: FloatArray, weight: FloatArray) -> None:
        """Learn from some rows; arguments as for :meth:`OnlineSolver.learn`."""
        below = None
        for latent in latents(self._hidden, X, *self._bounds):
            below = np.clip(latent, *self._bounds)
        inputs = layer_inputs(X, below, skip_connection=self._skip_connection)
        self._last.learn(inputs, low, high, weight)

    def layers(self) -> tuple[NetworkLayer, ...]:
        """The network so far."""
        return (*self._hidden, layer_of(self._last.result()))
