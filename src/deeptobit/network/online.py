"""Growing a network online: in one pass over the rows for each layer, or from a stream."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deeptobit import online
from deeptobit.arrays import FloatArray
from deeptobit.layer import TargetScaling
from deeptobit.likelihood import Noise, evaluate
from deeptobit.network.grow import GrownLayer, TrainedNetwork, calibrate, grow, prune
from deeptobit.network.layer import LayerInputs, Layers, NetworkLayer, concatenate, latents
from deeptobit.targets import CensoredTargets

_PCA_ROWS = 2048
_NEGLIGIBLE = 1e-2  # of the largest variance among the directions of the residuals


@dataclass(frozen=True)
class ResidualOutputs:
    r"""Outputs without what is linear in x: :math:`g = Q^\top(f - m - B^\top Sx)`, uncorrelated.

    A layer's outputs are close to linear in x and to one another, so that [f; x] is badly
    conditioned even where x is not. [g; x] is a change of coordinates that is conditioned as x
    is, and lets the solver keep its cheap diagonal metric. It is enough to regress f on the
    sketches Sx of the layers below, through which f depends on x: for Gaussian features the
    residuals are then uncorrelated with all of x (Bussgang 1952). Directions with little variance
    are left out.

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
        cls, layers: Layers, outputs: FloatArray, X: Any, weight: FloatArray, *, center: bool = True
    ) -> Self:
        """Regress the outputs of the last layer, (N, T), on the sketches of the rows.

        ``center`` is False for layers without intercepts: m is then 0.
        """
        n_features = X.shape[1]
        parts = {id(layer): layer.V[:, -n_features:] for layer in (layers[0], layers[-1])}
        sketch = np.vstack(list(parts.values()))
        h = np.asarray(X @ sketch.T)
        share = weight / weight.sum()
        h_mean, f_mean = center * (share @ h), center * (share @ outputs)
        h -= h_mean
        heavy = (h * share[:, None]).T
        slopes = np.linalg.lstsq(heavy @ h, heavy @ (outputs - f_mean), rcond=1e-10)[0]
        some = slice(None, None, max(1, len(outputs) // _PCA_ROWS))
        residual = outputs[some] - f_mean - h[some] @ slopes
        values, vectors = np.linalg.eigh((residual * share[some, None]).T @ residual)
        large = values > _NEGLIGIBLE * max(float(values[-1]), 1e-300)
        return cls(sketch, f_mean - h_mean @ slopes, slopes, vectors[:, large])

    def apply(self, outputs: FloatArray, X: Any) -> FloatArray:
        """The residuals g, (N, r)."""
        linear = np.asarray(X @ self.sketch.T) @ self.slopes + self.mean
        return np.asarray((outputs - linear) @ self.directions)

    def on_outputs(self, layer: NetworkLayer) -> NetworkLayer:
        """The layer on [f; x] that equals a layer on [g; x]."""
        n_new = self.directions.shape[1]
        V_f = layer.V[:, :n_new] @ self.directions.T
        V_x = layer.V[:, n_new:] - V_f @ self.slopes.T @ self.sketch
        intercept = layer.intercept - layer.U @ (V_f @ self.mean)
        return replace(layer, V=np.hstack([V_f, V_x]), intercept=intercept)

    def on_residuals(self, layer: NetworkLayer) -> NetworkLayer:
        """The layer on [g; x] that equals a layer on [f; x], up to what g leaves out."""
        n_tasks = len(self.directions)
        V_f, V_x = layer.V[:, :n_tasks], layer.V[:, n_tasks:]
        V = np.hstack([V_f @ self.directions, V_x + V_f @ self.slopes.T @ self.sketch])
        return replace(layer, V=V, intercept=layer.intercept + layer.U @ (V_f @ self.mean))


@dataclass(frozen=True)
class OnlineInputs:
    """What the online solver sees of a row: x, [g; x] with the residual outputs g, or f.

    Parameters
    ----------
    inputs : LayerInputs
    residuals : ResidualOutputs, optional
        None where the layer sees x alone or f alone.
    """

    inputs: LayerInputs
    residuals: ResidualOutputs | None

    @classmethod
    def of(cls, inputs: LayerInputs, X: Any, weight: FloatArray, *, center: bool) -> Self:
        """Residuals from the regression on some rows; none are needed for the first layer."""
        outputs = inputs.outputs(X) if inputs.skip_connection else None
        if outputs is None:
            return cls(inputs, None)
        return cls(inputs, ResidualOutputs.of(inputs.layers, outputs, X, weight, center=center))

    def __call__(self, X: Any) -> Any:
        """Inputs of the rows of X."""
        if self.residuals is None:
            return self.inputs(X)
        outputs = self.inputs.outputs(X)
        assert outputs is not None
        return concatenate(self.residuals.apply(outputs, X), X)

    def solver(
        self, settings: online.OnlineSettings, n_features: int, start: NetworkLayer | None
    ) -> online.OnlineSolver:
        """A solver for these inputs, which starts at a layer on [f; x] if there is one."""
        width = self(np.zeros((1, n_features))).shape[1]
        solver = online.OnlineSolver(settings, width, len(self.inputs.lower))
        if start is not None and self.residuals is not None:
            begin_at(solver, self.residuals.on_residuals(start))
        return solver

    def layer(self, result: online.OnlineResult) -> NetworkLayer:
        """What the solver found, as a layer on [f; x]."""
        layer = layer_of(result)
        return layer if self.residuals is None else self.residuals.on_outputs(layer)


def layer_of(result: online.OnlineResult) -> NetworkLayer:
    """What the online solver found, as a layer."""
    return NetworkLayer(result.U, result.V, result.intercept, result.sigma)


def begin_at(solver: online.OnlineSolver, layer: NetworkLayer) -> None:
    """Start a solver at a layer, before any rows come."""
    solver.start_from(online.OnlineResult(layer.U, layer.V, layer.intercept, layer.sigma, n_seen=0))


def nll_by_depth(
    layers: Layers, rows: online.RawRows, noise: Noise, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Weighted sums over rows of the negative log likelihood at every depth, (K,)."""
    scores = latents(layers, rows.X, lower, upper)
    entries = (
        evaluate(noise, rows.low, rows.high, latent, layer.sigma).nll
        for layer, latent in zip(layers, scores, strict=True)
    )
    return np.array([float(rows.weight @ nll.sum(axis=1)) for nll in entries])


_JUDGING_ROWS = 512  # evenly spread; enough to judge whether a layer pays


def grow_online(
    X: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    settings: online.OnlineSettings,
    *,
    n_layers: int,
    skip_connection: bool,
    n_passes: int,
    calibrated: bool,
    progress: Callable[[int, int], None] = lambda layer, n_rows: None,
) -> TrainedNetwork:
    """Grow a network in the user's units, each layer in ``n_passes`` over rows in memory."""
    lower, upper = targets.lower, targets.upper
    if calibrated:
        scaling = TargetScaling.build(targets, weight / weight.sum(), center=settings.fit_intercept)
        settings = replace(settings, sigma=scaling.scale)

    def fit_layer(inputs: LayerInputs, start: NetworkLayer | None) -> GrownLayer:
        own = settings
        if calibrated and inputs.layers:  # each layer is fitted with the scales of the one below
            own = replace(own, sigma=inputs.layers[-1].sigma)
        seen = OnlineInputs.of(inputs, X, weight, center=settings.fit_intercept)
        solver = seen.solver(own, X.shape[1], start)
        for n_rows in online.learn_passes(solver, X, targets, weight, n_passes, seen):
            progress(len(inputs.layers), n_rows)
        result = solver.result()
        layer = seen.layer(result)
        if calibrated:
            *_, latent = latents((*inputs.layers, layer), X, lower, upper)
            sigma = calibrate(targets, weight, scaling.apply(latent), scaling)
            layer = replace(layer, sigma=scaling.scale * sigma)
        return GrownLayer(layer, settings.alpha, result.n_seen, solver.history)

    grown = grow(fit_layer, n_layers, lower, upper, skip_connection=skip_connection)
    layers = [found.layer for found in grown]
    present = np.flatnonzero(weight)
    some = present[:: max(1, len(present) // _JUDGING_ROWS)]
    sample = online.RawRows(X[some], targets.low[some], targets.high[some], weight[some])
    sums = nll_by_depth(layers, sample, settings.noise, lower, upper)
    nlls = tuple((sums / sample.weight.sum()).tolist())
    depth, pruned = prune(layers, nlls, float(weight.sum()), skip_connection=skip_connection)
    return TrainedNetwork(pruned, grown, nlls, depth)


_SEGMENT_ROWS = 512
_FADE = 0.9  # weight of earlier losses when the next segment comes


@dataclass(eq=False, repr=False)
class NetworkStream:
    """All layers learned at once, one segment of rows after the other.

    Segments are 512 rows whose edges depend on the number of rows alone, so that learning in
    pieces gives exactly what one call gives. Within a segment a layer learns first, and the one
    above sees its new outputs. Memory does not grow with the number of rows.

    The inputs of a layer change as long as the one below learns, so it may do worse than no layer.
    Every segment is therefore predicted before it is learned, by networks of all depths, and the
    depth with the least recent loss is used.

    Parameters
    ----------
    settings : OnlineSettings
    lower, upper : arrays of shape (T,)
    n_features, n_layers : int
    skip_connection : bool

    Attributes
    ----------
    learned_layers : tuple of NetworkLayer
        All layers after the last segment, whether they are used or not.
    """

    settings: online.OnlineSettings
    lower: FloatArray
    upper: FloatArray
    n_features: int
    n_layers: int
    skip_connection: bool
    learned_layers: tuple[NetworkLayer, ...] = ()

    def __post_init__(self) -> None:
        """Begin with a solver for every layer."""
        n_tasks = len(self.lower)
        width = n_tasks + (self.n_features if self.skip_connection else 0)
        widths = [self.n_features, *[width] * (self.n_layers - 1)]
        self._solvers = [online.OnlineSolver(self.settings, inputs, n_tasks) for inputs in widths]
        self._losses = np.zeros(self.n_layers)
        batch = self.settings.rows_per_update
        self._segment = batch * -(-_SEGMENT_ROWS // batch)
        self._buffer = online.RowBuffer()

    @property
    def n_seen(self) -> int:
        """Rows so far."""
        return self._buffer.n_total

    @property
    def histories(self) -> list[dict[str, Any]]:
        """The history of each layer."""
        return [solver.history for solver in self._solvers]

    @property
    def depth(self) -> int:
        """The depth that predicted new rows best; 1 before there were any."""
        return int(np.argmin(self._losses)) + 1 if self.skip_connection else self.n_layers

    def learn(self, X: Any, low: FloatArray, high: FloatArray, weight: FloatArray) -> None:
        """Learn from some rows; arguments as for :meth:`OnlineSolver.learn`."""
        for rows in self._buffer.blocks(X, low, high, weight, lambda: self._segment):
            self._process(rows)

    def grown(self) -> tuple[tuple[NetworkLayer, ...], int]:
        """All layers so far, and the depth that predicted new rows best.

        The rows of an unfinished segment are learned on a copy.
        """
        stream = self
        if self._buffer.n_rows:
            stream = copy.deepcopy(self)
            stream._process(stream._buffer.take())
        return stream.learned_layers, stream.depth

    def _process(self, rows: online.RawRows) -> None:
        """Algorithm 3 on one segment, with solvers that remember the segments before it."""
        known, bounds = self.learned_layers, (self.lower, self.upper)
        if known:  # add the losses of new rows to what is left of the old ones
            self._losses *= _FADE
            self._losses += nll_by_depth(known, rows, self.settings.noise, *bounds)

        def fit_layer(inputs: LayerInputs, start: NetworkLayer | None) -> GrownLayer:
            solver = self._solvers[len(inputs.layers)]
            if start is not None and not known:
                begin_at(solver, start)
            solver.learn(inputs(rows.X), rows.low, rows.high, rows.weight)
            layer = layer_of(solver.result())
            return GrownLayer(layer, self.settings.alpha, solver.n_seen, {})

        grown = grow(fit_layer, self.n_layers, *bounds, skip_connection=self.skip_connection)
        self.learned_layers = tuple(found.layer for found in grown)


class ContinuedNetwork:
    """A trained network whose last layer goes on learning.

    Hidden layers stay as they are. In a tuned network they do not predict the outcomes, so there
    is nothing to fit them to; they are features by now.

    Parameters
    ----------
    layers : tuple of NetworkLayer
        In the user's units.
    last : RecursiveTobit
        The last layer, on its inputs [f; x].
    lower, upper : arrays of shape (T,)
    """

    def __init__(
        self, layers: Layers, last: online.RecursiveTobit, lower: FloatArray, upper: FloatArray
    ) -> None:
        self._hidden, self._last, self._bounds = tuple(layers[:-1]), last, (lower, upper)
        self._skip_connection = layers[-1].V.shape[1] > len(lower)

    @property
    def n_seen(self) -> int:
        """Rows behind the network, old and new."""
        return self._last.result().n_seen

    def learn(self, X: Any, low: FloatArray, high: FloatArray, weight: FloatArray) -> None:
        """Learn from some rows; arguments as for :meth:`OnlineSolver.learn`."""
        inputs = LayerInputs(*self._bounds, self._hidden, self._skip_connection)
        self._last.learn(inputs(X), low, high, weight)

    def layers(self) -> tuple[NetworkLayer, ...]:
        """The network so far."""
        return (*self._hidden, layer_of(self._last.result()))
