"""What the outputs of a layer add to the features: inputs that the online solver learns fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network._layer import NetworkLayer

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
