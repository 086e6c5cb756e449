"""Features in standard units, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import BoolArray, FloatArray

_BLOCK_ROWS = 512  # a block of latents stays in the cache while the likelihood is evaluated on it
_SPARSE_BLOCK_ROWS = 8192  # slicing a sparse matrix costs more than the cache gains


@dataclass(frozen=True)
class Design:
    r"""The standardised features :math:`(x_{id} - mean_d)/scale_d`, of shape (N, D).

    A dense matrix is standardised once into a copy, so that a large mean cannot eat the digits of
    a small deviation. A sparse matrix stays sparse, and mean and scale are folded into products.

    Parameters
    ----------
    matrix : array or CSR matrix of shape (N, D)
        Standardised if dense, as given if sparse.
    mean, scale : arrays of shape (D,)
    weight : array of shape (N,)
        Row weights that sum to one.
    vanishing : bool array of shape (D,)
        Columns that are zero once centred, because they are constant.
    """

    matrix: Any
    mean: FloatArray
    scale: FloatArray
    weight: FloatArray
    vanishing: BoolArray

    @classmethod
    def build(cls, X: Any, weight: FloatArray, *, center: bool, standardize: bool) -> Design:
        """Standardise X by its weighted moments.

        Examples
        --------
        >>> X = np.array([[1.0, 0.0], [3.0, 10.0]])
        >>> Design.build(X, np.array([0.5, 0.5]), center=True, standardize=True).matrix
        array([[-1., -1.],
               [ 1.,  1.]])
        """
        sparse = issparse(X)
        X = X.tocsr() if sparse else X
        mean, variance = _sparse_moments(X, weight) if sparse else _dense_moments(X, weight)
        # Rounding leaves a constant column with a variance of the order of (eps · mean)².
        constant = variance <= (64 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
        spread = variance if center else variance + mean**2
        vanishing = constant & (center | (mean == 0.0))
        scale = np.sqrt(np.where(vanishing, 1.0, spread))
        scale = scale if standardize else np.ones_like(scale)
        mean = mean if center else np.zeros_like(mean)
        if sparse:
            return cls(X.astype(np.float64), mean, scale, weight, vanishing)
        matrix = X - mean
        matrix[:, vanishing] = 0.0
        matrix[weight == 0.0] = 0.0  # in units of the others, what such rows hold may be anything
        matrix /= scale
        return cls(matrix, mean, scale, weight, vanishing)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is stored sparse."""
        return bool(issparse(self.matrix))

    def without_matrix(self) -> Design:
        """Mean, scale and weights alone."""
        return replace(self, matrix=None)

    def gram(self) -> FloatArray:
        """Weighted second moments Σ_i w_i x_i x_iᵀ of the standardised features, (D, D)."""
        if self.is_sparse:
            raw = (self.matrix.T @ self.matrix.multiply(self.weight[:, None])).toarray()
            centred = raw - np.outer(self.mean, self.mean)
            centred[self.vanishing] = centred[:, self.vanishing] = 0.0
            return np.asarray(centred / np.outer(self.scale, self.scale))
        total = np.zeros((self.shape[1], self.shape[1]))
        for rows in row_blocks(self.shape[0], sparse=False):
            total += self.matrix[rows].T @ (self.matrix[rows] * self.weight[rows, None])
        return total


def row_blocks(n_samples: int, *, sparse: bool) -> Iterator[slice]:
    """Consecutive blocks of rows; every sum over rows is a sum over these."""
    size = _SPARSE_BLOCK_ROWS if sparse else _BLOCK_ROWS
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


def _dense_moments(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = weight @ X
    variance = np.zeros_like(mean)
    for rows in row_blocks(len(X), sparse=False):
        telling = weight[rows] > 0.0  # squares of others may overflow, and 0 times that is NaN
        variance += weight[rows][telling] @ np.square(X[rows][telling] - mean)
    return mean, variance


def _sparse_moments(X: Any, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    from sklearn.utils.sparsefuncs import mean_variance_axis

    mean, variance = mean_variance_axis(X.astype(np.float64), axis=0, weights=weight)
    return mean, variance
