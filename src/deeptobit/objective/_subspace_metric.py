"""The preconditioner of the subspace Tobit: blocks of its Gauss–Newton Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.objective._aligned import AlignedFeatures
from deeptobit.objective._layer import Layer

if TYPE_CHECKING:
    from deeptobit.objective._layer_problem import LayerProblem

_NO_CURVATURE = 1e-30
_LEAST = 1e-8  # of the largest curvature in a block
_UNBENT = 1.0 - 1e-3  # below 1, so that the corrected block stays positive
_MAX_FACTOR = 1500  # features up to which a factorisation per component pays


@dataclass(frozen=True)
class SubspaceMetric:
    """Axes in which the blocks of U and Z are diagonal, and their diagonals or factors."""

    hidden_axes: FloatArray
    of_u_rows: FloatArray
    task_axes: FloatArray
    of_z: DiagonalBlock | GroupBlock
    level: FloatArray
    of_scale: FloatArray

    @classmethod
    def build(
        cls,
        problem: LayerProblem,
        layer: Layer,
        level: FloatArray,
        second: FloatArray,
        scale_scale: FloatArray,
    ) -> SubspaceMetric:
        """From the total curvature per task (T,) and the second moments of Vx (R, R)."""
        level = np.where(level > _NO_CURVATURE, level, 1.0)
        hidden_values, hidden_axes = np.linalg.eigh(second)
        task_values, task_axes = np.linalg.eigh(layer.U.T @ (layer.U * level[:, None]))
        of_u_rows = np.outer(level, np.maximum(hidden_values, 0.0)) + problem.alpha
        of_scale = np.where(np.abs(scale_scale) > _NO_CURVATURE, np.abs(scale_scale), 1.0)
        return cls(
            hidden_axes,
            np.maximum(of_u_rows, _LEAST * of_u_rows.max(initial=0.0)),
            task_axes,
            _block_of_z(problem, layer, np.maximum(task_values, 0.0), task_axes),
            level,
            of_scale,
        )

    def solve(self, d: Layer) -> Layer:
        """M⁻¹d."""
        return Layer(
            (d.U @ self.hidden_axes) / self.of_u_rows @ self.hidden_axes.T,
            self.of_z.solve(d.Z @ self.task_axes) @ self.task_axes.T,
            d.intercept / self.level,
            d.log_sigma / self.of_scale,
        )


@dataclass(frozen=True)
class DiagonalBlock:
    """Curvatures by the entries of Z, (r, R)."""

    curvature: FloatArray

    def solve(self, rows: FloatArray) -> FloatArray:
        """Divide entry by entry."""
        return rows / self.curvature


@dataclass(frozen=True)
class GroupBlock:
    r"""The block of Z where features may leave, over those that are present.

    Component by component it is :math:`M_r = \mu_r G + \alpha/\tau`, G being the Gram matrix, less
    what the penalty does not bend: along its own axis a short column is soft, and stiff across.
    The correction has one dimension per feature and is solved by Woodbury's identity.

    Parameters
    ----------
    present : int array of shape (p,)
    inverses : array of shape (R, p, p)
        :math:`M_r^{-1}`.
    axes : array of shape (R, p)
        Directions of the columns.
    along : array of shape (p, p)
        Inverse of the correction along the axes.
    """

    present: NDArray[np.intp]
    inverses: FloatArray
    axes: FloatArray
    along: FloatArray

    def solve(self, rows: FloatArray) -> FloatArray:
        """Solve for the features that are present; the others get 0."""
        first = self._solve_components(rows[self.present].T)
        correction = self.axes * (self.along @ (self.axes * first).sum(axis=0))
        solved = np.zeros_like(rows)
        solved[self.present] = (first + self._solve_components(correction)).T
        return solved

    def _solve_components(self, columns: FloatArray) -> FloatArray:
        return np.asarray((self.inverses @ columns[:, :, None])[:, :, 0])


def _block_of_z(
    problem: LayerProblem, layer: Layer, task_values: FloatArray, task_axes: FloatArray
) -> DiagonalBlock | GroupBlock:
    features = problem.features
    variance = problem.penalty.variance(layer.Z)
    present = np.flatnonzero(variance)
    bends = problem.alpha > 0.0 and 0 < len(present) <= _MAX_FACTOR
    if isinstance(features, AlignedFeatures) and bends:
        return _group_block(problem, features, layer.Z @ task_axes, present, task_values)
    curvature = task_values * (1.0 - features.ridge[:, None])
    curvature = curvature + problem.alpha / np.where(variance > 0.0, variance, 1.0)
    return DiagonalBlock(np.maximum(curvature, _LEAST * curvature.max(initial=0.0)))


def _group_block(
    problem: LayerProblem,
    features: AlignedFeatures,
    Z: FloatArray,
    present: NDArray[np.intp],
    task_values: FloatArray,
) -> GroupBlock:
    gram = features.gram[np.ix_(present, present)]
    gram = gram + _LEAST * gram.max() * np.eye(len(present))
    prior = problem.alpha / problem.penalty.variance(Z)[present, 0]
    inverses = np.linalg.inv(task_values[:, None, None] * gram + np.diag(prior))
    axes = (Z[present] / problem.penalty.sizes(Z)[present]).T
    unbent = prior - problem.alpha * (1.0 - problem.penalty.share)
    softness = (axes[:, :, None] * axes[:, None, :] * inverses).sum(axis=0)
    along = np.linalg.inv(np.diag(1.0 / (_UNBENT * unbent)) - softness)
    return GroupBlock(present, inverses, axes, along)
