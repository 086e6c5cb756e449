"""Preconditioners: P for the features, G for the sketch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import add_squares

_ALWAYS_FULL, _MAX_FULL = 64, 600
_REBUILD = 1.5
_RIDGE_FULL, _RIDGE_DIAGONAL, _SMALLEST_RIDGE = 0.02, 0.5, 1e-9


@dataclass
class FeatureMetric:
    r"""P ≈ (E xxᵀ)⁻¹, full or diagonal, from running second moments.

    .. math:: P = S\,(S A S / n + 0.02\,\tfrac{D}{n}\,\tau\, I)^{-1} S, \qquad
        S = \mathrm{diag}(A/n)^{-1/2}

    The ridge τ is chosen on the first rows: near 0 where directions of little variance carry
    signal, 1 otherwise. A diagonal P is taken where features are uncorrelated (a full one has
    nothing to gain there) or too many.

    Parameters
    ----------
    moments : array of shape (D, D) or (D,)
        A = Σ ω xxᵀ, or its diagonal.
    n : float
        Σ ω.
    tau : float
    inverse : array of shape (D, D) or (D,)
        P.
    built_at : float
        n when P was built.
    """

    moments: FloatArray
    n: float
    tau: float
    inverse: FloatArray
    built_at: float

    @classmethod
    def build(cls, X: FloatArray, weight: FloatArray) -> FeatureMetric:
        """From the first rows."""
        n, n_features = max(float(weight.sum()), 1.0), X.shape[1]
        moments: FloatArray = weight @ np.square(X)
        if n_features <= _MAX_FULL:
            heavy = X * np.sqrt(weight)[:, None]
            gram = heavy.T @ heavy
            if n_features <= _ALWAYS_FULL or is_correlated(gram, n):
                moments = gram
        metric = cls(moments, n, 1.0, moments, n)
        metric.rebuild()
        return metric

    @property
    def is_full(self) -> bool:
        """Whether P is a matrix."""
        return self.moments.ndim == 2

    def add(self, X: FloatArray, weight: FloatArray) -> None:
        """Learn from a block; P follows when n has grown by half."""
        if self.is_full:
            scaled = X * np.sqrt(weight)[:, None]
            self.moments += scaled.T @ scaled
        else:
            add_squares(X, weight, self.moments)
        self.n += float(weight.sum())
        if self.n >= _REBUILD * self.built_at:
            self.rebuild()

    def rebuild(self) -> None:
        """P from the present moments."""
        self.built_at = self.n
        n_features = len(self.moments)
        share = n_features / self.n
        diagonal = np.diagonal(self.moments) if self.is_full else self.moments
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal / self.n, 1.0))
        if not self.is_full:
            self.inverse = scale**2 / (1.0 + _RIDGE_DIAGONAL * share)
            return
        correlation = self.moments * (scale[:, None] * scale / self.n)
        correlation.flat[:: n_features + 1] += _RIDGE_FULL * share * self.tau + _SMALLEST_RIDGE
        inverse = np.linalg.inv(correlation)
        self.inverse = 0.5 * (inverse + inverse.T) * (scale[:, None] * scale)

    def apply(self, X: FloatArray) -> FloatArray:
        """XP."""
        return np.asarray(X @ self.inverse if self.is_full else X * self.inverse)

    def inner(self, V: FloatArray) -> FloatArray:
        """V (A/n) Vᵀ, the second moments of Vx, (R, R)."""
        product = V @ self.moments if self.is_full else V * self.moments
        return np.asarray(product @ V.T / self.n)

    def mean_square(self, V: FloatArray) -> float:
        """Mean second moment of the components of Vx."""
        product = V @ self.moments if self.is_full else V * self.moments
        return float(np.vdot(product, V)) / (self.n * len(V))


def is_correlated(gram: FloatArray, n: float) -> bool:
    """Whether squared correlations exceed what chance gives, in sum or anywhere."""
    diagonal = np.diagonal(gram)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    square = np.square(gram * (scale[:, None] * scale))
    np.fill_diagonal(square, 0.0)
    pairs = len(gram) * (len(gram) - 1.0)
    excess = float(square.sum()) - pairs / n
    anywhere = float(square.max()) > (0.3 + 4.0 / np.sqrt(n)) ** 2
    return bool(anywhere or excess > 6.0 * np.sqrt(pairs) / n)
