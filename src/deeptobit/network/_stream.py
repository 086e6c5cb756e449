"""A network that learns from rows as they come, all layers at once."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.network._depth import deepened
from deeptobit.network._inputs import layer_inputs
from deeptobit.network._layer import NetworkLayer, latents
from deeptobit.network._online import layer_of, on_top, result_of
from deeptobit.solvers import RecursiveTobit
from deeptobit.solvers.online import (
    OnlineSettings,
    OnlineSolver,
    Pending,
    RawRows,
    Record,
    read_rows,
    telling_rows,
)

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
        self.n_seen = 0
        self._settings = settings
        self._bounds = lower, upper
        self._skip_connection = skip_connection
        self._solvers = [OnlineSolver(settings, inputs, n_tasks) for inputs in widths]
        self.learned_layers: tuple[NetworkLayer, ...] = ()
        self._losses = np.zeros(n_layers)
        batch = settings.batch_size
        self._segment = batch * -(-_SEGMENT_ROWS // batch)
        self._pending = Pending()

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
        X, low, high, weight = telling_rows(X, low, high, weight)
        first, n_rows = 0, X.shape[0]
        while first < n_rows:
            room = slice(first, first + self._segment - self._pending.n_rows)
            rows = read_rows(X, low, high, weight, room)
            first += len(rows.weight)
            self._pending.add(rows)
            if self._pending.n_rows == self._segment:
                self._process(self._pending.take())
        self.n_seen += n_rows

    def layers(self) -> tuple[NetworkLayer, ...]:
        """The network so far; the rows of an unfinished segment are learned on a copy."""
        stream = self
        if self._pending.n_rows:
            stream = copy.deepcopy(self)
            stream._process(stream._pending.take())
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
