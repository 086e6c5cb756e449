"""What a network makes of its features: the mean slope of its scores by x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network._layer import NetworkLayer, latents

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
