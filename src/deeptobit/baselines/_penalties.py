"""Norms of a coefficient matrix that make tasks share: what an optimiser needs of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from deeptobit.arrays import FloatArray


class Penalty(Protocol):
    """A norm Ω of coefficients W, features by tasks (D, T)."""

    def value(self, W: FloatArray) -> float:
        """Ω(W)."""

    def dual(self, G: FloatArray) -> float:
        """Ω*(G), the largest ⟨G, W⟩ over Ω(W) ≤ 1."""

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        """The proximal operator: minimises ½‖Z − W‖² + amount · Ω(Z)."""

    def shares(self, W: FloatArray) -> FloatArray:
        """Derivatives of Ω by the logarithms of the columns' scales, (T,); their sum is Ω(W)."""


class TraceNorm:
    """The sum of singular values: few directions serve all tasks.

    Examples
    --------
    >>> W = np.diag([3.0, 1.0])
    >>> TraceNorm().value(W), TraceNorm().dual(W), TraceNorm().shrink(W, 2.0).tolist()
    (4.0, 3.0, [[1.0, 0.0], [0.0, 0.0]])
    """

    def value(self, W: FloatArray) -> float:
        return float(np.linalg.svd(W, compute_uv=False).sum())

    def dual(self, G: FloatArray) -> float:
        return float(np.linalg.svd(G, compute_uv=False)[0])

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        if W.shape[0] < W.shape[1]:
            return self.shrink(W.T, amount).T
        # Singular values below the threshold need no digits, so those of WᵀW are accurate enough.
        sizes, right = _singular(W)
        kept = sizes > amount
        right, factor = right[:, kept], 1.0 - amount / sizes[kept]
        return np.asarray(W @ (right * factor) @ right.T)

    def shares(self, W: FloatArray) -> FloatArray:
        sizes, right = _singular(W)
        return np.asarray(np.square(right) @ sizes)


class GroupNorm:
    """The ℓ2,1 norm, the sum of the rows' lengths: a feature matters to all tasks or to none.

    Examples
    --------
    >>> W = np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> GroupNorm().value(W), GroupNorm().dual(W), GroupNorm().shrink(W, 2.5).tolist()
    (6.0, 5.0, [[1.5, 2.0], [0.0, 0.0]])
    """

    def value(self, W: FloatArray) -> float:
        return float(np.linalg.norm(W, axis=1).sum())

    def dual(self, G: FloatArray) -> float:
        return float(np.linalg.norm(G, axis=1).max())

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        lengths = np.linalg.norm(W, axis=1, keepdims=True)
        return np.asarray(W * (1.0 - amount / np.maximum(lengths, amount)))

    def shares(self, W: FloatArray) -> FloatArray:
        lengths = np.linalg.norm(W, axis=1)
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        return np.asarray(inverse @ np.square(W))


def _singular(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Singular values and right singular vectors, from the eigenvectors of WᵀW."""
    squares, right = np.linalg.eigh(W.T @ W)
    return np.sqrt(np.maximum(squares, 0.0)), right
