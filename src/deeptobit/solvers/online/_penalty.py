"""The ridge on U and V, as an implicit step whose fixed point does not depend on coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online_types import Iterate
from deeptobit.solvers.online._metric import FeatureMetric


@dataclass(frozen=True)
class Penalty:
    r"""α‖UV‖_*, the least value of (α/2)(‖U‖² + ‖V‖²) over all factors of UV.

    The solver turns U → UB⁻¹, V → BV as it likes. In its coordinates the gradients of the
    penalty at balanced factors are :math:`αUM^{-1}` and :math:`αMV`, where
    :math:`M = U^\top U \,\#\, (VV^\top)^{-1}` is a geometric mean of matrices.
    """

    alpha: float

    def apply(
        self,
        now: Iterate,
        metric: FeatureMetric,
        inverse: FloatArray,
        curvature: FloatArray,
        step: float,
    ) -> None:
        """Move V and U against the penalty, preconditioned as the likelihood's steps are."""
        balance = _balance(now.Ut @ now.Ut.T, now.V @ now.V.T)
        pull = step * self.alpha
        values, vectors = eigh(balance, np.linalg.inv(inverse))
        inside = np.linalg.inv(vectors) @ now.V
        if metric.is_full:
            power, axes = np.linalg.eigh(metric.inverse)
            inside = (inside @ axes / (1.0 + pull * np.outer(values, power))) @ axes.T
        else:
            inside = inside / (1.0 + pull * np.outer(values, metric.inverse))
        now.V[...] = vectors @ inside
        values, vectors = np.linalg.eigh(np.linalg.inv(balance))
        rate = pull * np.square(now.sigma) / np.maximum(curvature, 0.02)
        now.Ut[...] = vectors @ (vectors.T @ now.Ut / (1.0 + np.outer(values, rate)))


def _balance(tasks: FloatArray, features: FloatArray) -> FloatArray:
    """M with M (VVᵀ) M = UᵀU, where both are positive definite up to a floor."""
    root, back = _roots(features)
    return np.asarray(back @ _roots(root @ tasks @ root)[0] @ back)


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric square root and its inverse."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    root = np.sqrt(np.maximum(values, 1e-10 * max(float(values[-1]), 1e-10)))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
