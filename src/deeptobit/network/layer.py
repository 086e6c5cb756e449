"""One layer of a network, and a row's way through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from deeptobit.arrays import FloatArray

_VANISHED = 1e-4  # of the strongest component: what a penalty has put out of use


@dataclass(frozen=True, eq=False)
class NetworkLayer:
    r"""A censored low-rank layer :math:`f_k = \mathrm{clip}(U_k V_k [f_{k-1}; x] + b_k)`.

    Parameters
    ----------
    U : array of shape (T, R)
    V : array of shape (R, D_k)
        The first layer sees x, D_1 = D. A layer above sees the T outputs below in front of x,
        D_k = T + D, or these outputs alone, D_k = T, where the network has no skip connection.
    intercept, sigma : arrays of shape (T,)
    """

    U: FloatArray
    V: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    @property
    def coef(self) -> FloatArray:
        """UV, (T, D_k)."""
        return np.asarray(self.U @ self.V)

    @property
    def n_parameters(self) -> int:
        """Free numbers in UV: R(D_k + T − R), of components and inputs that are in use."""
        strength = np.linalg.norm(self.U, axis=0) * np.linalg.norm(self.V, axis=1)
        rank = int((strength > _VANISHED * strength.max(initial=0.0)).sum())
        n_inputs = int(self.V.any(axis=0).sum())
        return rank * (n_inputs + len(self.U) - rank)

    def sketch(self, X: Any, below: FloatArray | None = None) -> FloatArray:
        """Coordinates V[f; x] in the layer's subspace, (N, R), for dense or sparse X."""
        if below is None:
            return np.asarray(X @ self.V.T)
        n_below = below.shape[1]
        hidden = below @ self.V[:, :n_below].T
        if self.V.shape[1] > n_below:
            hidden = hidden + X @ self.V[:, n_below:].T
        return np.asarray(hidden)

    def latent(self, X: Any, below: FloatArray | None = None) -> FloatArray:
        """Scores before censoring, (N, T)."""
        return np.asarray(self.sketch(X, below) @ self.U.T + self.intercept)


def latents(
    layers: Sequence[NetworkLayer], X: Any, lower: FloatArray, upper: FloatArray
) -> Iterator[FloatArray]:
    """Scores of every layer in turn, each (N, T); layers pass on what the bounds leave of them.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> layers = [NetworkLayer(one, one, np.zeros(1), one[0]), NetworkLayer(
    ...     one, np.array([[2.0, 1.0]]), np.zeros(1), one[0])]
    >>> [latent.ravel() for latent in latents(layers, np.array([[-1.0], [1.0]]), 0.0, np.inf)]
    [array([-1.,  1.]), array([-1.,  3.])]
    """
    below = None
    for layer in layers:
        latent = layer.latent(X, below)
        below = np.clip(latent, lower, upper)
        yield latent


# What a layer sees of a row.


def layer_inputs(X: Any, below: FloatArray | None, *, skip_connection: bool) -> Any:
    """x, [f; x] or f: the outputs below in front of the features, dense or sparse as X is."""
    if below is None:
        return X
    if not skip_connection:
        return below
    if scipy.sparse.issparse(X):
        blocks: list[Any] = [scipy.sparse.csr_array(below), X]
        return scipy.sparse.hstack(blocks, format="csr")
    return np.hstack([below, X])


# Networks in the user's units and in standard ones.


@dataclass(frozen=True)
class Units:
    """Features standardised by mean and scale (D,), outcomes by location and spread (T,).

    Outputs of a layer are outcomes, so they are standardised as outcomes are, whatever the layer
    makes of them: the meaning of a penalty on V does not change while a network is trained.
    """

    mean: FloatArray
    scale: FloatArray
    location: FloatArray
    spread: FloatArray

    def to_user(self, layers: Sequence[NetworkLayer]) -> tuple[NetworkLayer, ...]:
        """The same network for raw features and outcomes."""
        return tuple(self._layer_to_user(layer, depth) for depth, layer in enumerate(layers))

    def to_standard(self, layers: Sequence[NetworkLayer]) -> tuple[NetworkLayer, ...]:
        """The inverse of ``to_user``."""
        return tuple(self._layer_to_standard(layer, depth) for depth, layer in enumerate(layers))

    def outcome(self, value: FloatArray) -> FloatArray:
        """Bounds of outcomes in standard units."""
        return np.asarray((value - self.location) / self.spread)

    def _layer_to_user(self, layer: NetworkLayer, depth: int) -> NetworkLayer:
        centre, unit = self._inputs(layer, depth)
        U, V = layer.U * self.spread[:, None], layer.V / unit
        intercept = self.location + self.spread * layer.intercept - U @ (V @ centre)
        return NetworkLayer(U, V, intercept, layer.sigma * self.spread)

    def _layer_to_standard(self, layer: NetworkLayer, depth: int) -> NetworkLayer:
        centre, unit = self._inputs(layer, depth)
        intercept = (layer.intercept + layer.coef @ centre - self.location) / self.spread
        U, V = layer.U / self.spread[:, None], layer.V * unit
        return NetworkLayer(U, V, intercept, layer.sigma / self.spread)

    def _inputs(self, layer: NetworkLayer, depth: int) -> tuple[FloatArray, FloatArray]:
        """Centre and unit of each input of a layer, (D_k,)."""
        if depth == 0:
            return self.mean, self.scale
        if layer.V.shape[1] == len(self.spread):
            return self.location, self.spread
        return np.append(self.location, self.mean), np.append(self.spread, self.scale)


# What a network makes of its features: the mean slope of its scores by x.

_BLOCK_ENTRIES = 2**18  # of the slopes of all scores by all outputs below, for a block of rows


def mean_slopes(
    layers: Sequence[NetworkLayer], X: Any, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    r"""The mean over rows of :math:`\partial \eta^{(K)}/\partial x`, (T, D).

    Between the kinks that its bounds make, a network is linear in x; this is the average of its
    coefficients over the rows. For one layer it is UV.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> layers = [NetworkLayer(one, one, np.zeros(1), one[0]), NetworkLayer(
    ...     one, np.array([[2.0, 1.0]]), np.zeros(1), one[0])]
    >>> mean_slopes(layers, np.array([[-1.0], [1.0]]), np.zeros(1), np.full(1, np.inf))
    array([[2.]])
    """
    n_tasks, n_features = len(layers[0].U), layers[0].V.shape[1]
    size = max(1, _BLOCK_ENTRIES // n_tasks**2)
    total = np.zeros((n_tasks, n_features))
    for start in range(0, X.shape[0], size):
        scores = list(latents(layers[:-1], X[start : start + size], lower, upper))
        n_rows = min(size, X.shape[0] - start)
        total += _summed_slopes(layers, scores, n_rows, lower, upper)
    return np.asarray(total / X.shape[0])


def _summed_slopes(
    layers: Sequence[NetworkLayer],
    scores: list[FloatArray],
    n_rows: int,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Backwards through the layers, all scores of a block of rows at once, summed over rows."""
    n_tasks, n_features = len(layers[0].U), layers[0].V.shape[1]
    total = np.zeros((n_tasks, n_features))
    slopes = np.broadcast_to(np.eye(n_tasks), (n_rows, n_tasks, n_tasks))
    for depth in range(len(layers) - 1, -1, -1):
        layer = layers[depth]
        by_sketch = slopes @ layer.U
        n_below = n_tasks if depth else 0
        if layer.V.shape[1] > n_below:
            total += by_sketch.sum(axis=0) @ layer.V[:, n_below:]
        if depth:
            inside = (scores[depth - 1] > lower) & (scores[depth - 1] < upper)
            slopes = (by_sketch @ layer.V[:, :n_below]) * inside[:, None, :]
    return total
