"""One layer of a network, and a row's way through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
