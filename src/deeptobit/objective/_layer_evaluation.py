"""A point of one layer's problem, however its rows are summed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._layer import Layer
from deeptobit.objective._subspace_metric import SubspaceMetric

if TYPE_CHECKING:
    from deeptobit.objective._layer_problem import LayerProblem


@dataclass(frozen=True)
class LayerEvaluation(ABC):
    """Value, gradient and curvature at a point of a :class:`LayerProblem`.

    A subclass knows how curvature is summed over rows. A feature that enters (absent, with a
    gradient) has no curvature that a Newton step could use: all that enter move together, apart
    from the rest, along their gradient.

    Parameters
    ----------
    problem : LayerProblem
    layer : Layer
    value : array of shape (1,)
    gradient, free : arrays of shape (P, 1)
        ``free`` is 1 where a parameter may move.
    scale_scale : array of shape (T,)
        Second derivatives by log σ.
    """

    problem: LayerProblem
    layer: Layer
    value: FloatArray
    gradient: FloatArray
    free: FloatArray
    scale_scale: FloatArray

    @property
    @abstractmethod
    def level(self) -> FloatArray:
        """Total curvature by the score of every task, (T,)."""

    @property
    @abstractmethod
    def second_moments(self) -> FloatArray:
        """Of the rows' coordinates Vx, (R, R)."""

    @abstractmethod
    def by_coefficients(self) -> FloatArray:
        """The likelihood's gradient by W in the basis of Z, transposed, (r, T)."""

    @abstractmethod
    def _smooth_product(self, direction: FloatArray) -> Layer:
        """Hessian times a direction (P, 1), as if every parameter were free."""

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
        return SubspaceMetric.build(
            self.problem, self.layer, self.level, self.second_moments, self.scale_scale
        )
