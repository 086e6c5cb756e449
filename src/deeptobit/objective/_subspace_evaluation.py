"""A point of the subspace Tobit: gradient, Hessian products, preconditioner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._layer import Layer
from deeptobit.objective._subspace_metric import SubspaceMetric

if TYPE_CHECKING:
    from deeptobit.objective._subspace import SubspaceProblem


@dataclass(frozen=True)
class SubspaceEvaluation:
    """A point of :class:`SubspaceProblem`; entry-wise derivatives are kept in single precision.

    A feature that enters (absent, with a gradient) has no curvature that a Newton step could use:
    all that enter move together, apart from the rest, along their gradient.
    """

    problem: SubspaceProblem
    layer: Layer
    value: FloatArray
    gradient: FloatArray
    free: FloatArray
    hidden: FloatArray
    pull: Any
    bend: Any
    cross: Any
    scale_scale: FloatArray

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Hessian times a direction (P, 1)."""
        product = self.problem.pack(self._smooth_product(direction * self.free)) * self.free
        if self._entering.any():
            product += self._stiffness * direction * self._entering
        return np.asarray(product)

    def precondition(self, residual: FloatArray) -> FloatArray:
        """Solve with the diagonal blocks of a Gauss–Newton Hessian, each a Kronecker product."""
        scaled = self.problem.pack(self._metric.solve(self.problem.unpack(residual * self.free)))
        if self._entering.any():
            scaled += residual * self._entering / self._stiffness
        return scaled

    def _smooth_product(self, direction: FloatArray) -> Layer:
        problem, layer = self.problem, self.layer
        d = problem.unpack(direction)
        d_U, U = d.U.astype(np.float32), layer.U.astype(np.float32)
        d_intercept, d_scale = d.intercept.astype(np.float32), d.log_sigma.astype(np.float32)
        by_U, by_Z = problem.alpha * d.U, problem.alpha * problem.penalty.product(layer.Z, d.Z)
        by_intercept, by_scale = np.zeros_like(d.intercept), self.scale_scale * d.log_sigma
        for rows, block in problem.features.rough_blocks():
            h = self.hidden[rows].astype(np.float32)
            d_h = np.asarray(block.forward(d.Z), dtype=np.float32)
            along = d_h @ U.T + h @ d_U.T + d_intercept
            by_scale += np.einsum("it,it->t", self.cross[rows], along)
            along *= self.bend[rows]
            along += self.cross[rows] * d_scale
            by_U += along.T @ h + self.pull[rows].T @ d_h
            by_Z += block.adjoint(along @ U + self.pull[rows] @ d_U)
            by_intercept += along.sum(axis=0)
        return Layer(by_U, by_Z, by_intercept, by_scale)

    @cached_property
    def _entering(self) -> FloatArray:
        """1 at the parameters of features that enter, (P, 1)."""
        return np.asarray((self.free == 0.0) & (self.gradient != 0.0), dtype=np.float64)

    @cached_property
    def _stiffness(self) -> float:
        """Curvature along the gradient of the features that enter."""
        direction = self.gradient * self._entering
        product = self.problem.pack(self._smooth_product(direction))
        curvature = float((direction * product).sum() / np.square(direction).sum())
        return max(curvature, 0.0) + self.problem.alpha

    @cached_property
    def _metric(self) -> SubspaceMetric:
        level = np.abs(self.bend).sum(axis=0, dtype=np.float64)
        second = self.hidden.T @ (self.hidden * self.problem.weight[:, None])
        return SubspaceMetric.build(self.problem, self.layer, level, second, self.scale_scale)
