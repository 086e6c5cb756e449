"""A point of the subspace Tobit on rows in memory: Hessian products pass over them again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._layer import Layer
from deeptobit.objective._layer_evaluation import LayerEvaluation

if TYPE_CHECKING:
    from deeptobit.objective._subspace import SubspaceProblem


@dataclass(frozen=True)
class SubspaceEvaluation(LayerEvaluation):
    """A point of :class:`SubspaceProblem`; entry-wise derivatives are kept in single precision."""

    problem: SubspaceProblem
    hidden: FloatArray
    pull: Any
    bend: Any
    cross: Any

    @cached_property
    def level(self) -> FloatArray:
        """Total curvature by the score of every task, (T,)."""
        return np.asarray(np.abs(self.bend).sum(axis=0, dtype=np.float64))

    @property
    def second_moments(self) -> FloatArray:
        """Of the rows' coordinates Vx, (R, R)."""
        return np.asarray(self.hidden.T @ (self.hidden * self.problem.weight[:, None]))

    def by_coefficients(self) -> FloatArray:
        """The likelihood's gradient by W in the basis of Z, transposed, (r, T)."""
        total = np.zeros((self.problem.features.rank, self.problem.n_tasks))
        for rows, block in self.problem.features.blocks():
            total += block.adjoint(self.pull[rows].astype(np.float64))
        return total

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
