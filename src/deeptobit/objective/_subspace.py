"""One layer of the subspace Tobit: all tasks share W = UV (eq. 2 of the paper, mean form)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit import kernels
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._scaling import TargetScaling
from deeptobit.targets import CensoredTargets

Tasks = NDArray[np.intp]
_ALL = slice(None)
_NO_CURVATURE = 1e-30


class Layer(NamedTuple):
    """Parameters in standard units: U (T, R), Z (r, R) with V = (BZ)ᵀ, intercept and log σ (T,)."""

    U: FloatArray
    Z: FloatArray
    intercept: FloatArray
    log_sigma: FloatArray


@dataclass(frozen=True)
class SubspaceProblem:
    r"""The penalised likelihood of one layer, in standard units.

    .. math::
        \sum_i w_i \sum_t \mathrm{nll}(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}\left(\|U\|_F^2 + \|V\|_F^2\right),\qquad \sum_i w_i = 1.

    It is one problem, so the solver sees a point of one column. V is written in the round basis of
    the features, :math:`V = (BZ)^\top`, where the penalty is diagonal.

    Parameters
    ----------
    features, targets, scaling, noise
        The data in standard units and the model.
    rank : int
    alpha : float
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
    min_log_sigma : array of shape (T,)
        Floors of log σ in standard units, reached where a task is fitted exactly.
    fixed_log_sigma : array of shape (T,)
        log σ of the tasks where it is given, in standard units.
    total_weight : float
        Sum of the row weights as given.
    """

    features: RoundFeatures
    targets: CensoredTargets
    scaling: TargetScaling
    noise: Noise
    rank: int
    alpha: float
    fit_intercept: bool
    free_sigma: BoolArray
    min_log_sigma: FloatArray
    fixed_log_sigma: FloatArray
    total_weight: float

    @property
    def weight(self) -> FloatArray:
        """Row weights that sum to one, (N,)."""
        return self.features.design.weight

    @property
    def ridge(self) -> FloatArray:
        """α‖B_j‖², the penalty on each row of Z, (r, 1)."""
        return self.alpha * self.features.squared_norms[:, None]

    def pack(self, layer: Layer) -> FloatArray:
        """A layer as one column of parameters."""
        return np.concatenate([part.ravel() for part in layer])[:, None]

    def unpack(self, point: FloatArray) -> Layer:
        """The layer behind a column of parameters."""
        n_tasks, rank, n_directions = self.targets.shape[1], self.rank, self.features.rank
        cuts = np.cumsum([n_tasks * rank, n_directions * rank, n_tasks])
        U, Z, intercept, log_sigma = np.split(point[:, 0], cuts)
        return Layer(U.reshape(n_tasks, rank), Z.reshape(n_directions, rank), intercept, log_sigma)

    def evaluate(self, point: FloatArray, tasks: Tasks) -> SubspaceEvaluation:
        """Objective, gradient and curvature at a point; ``tasks`` is the only problem there is."""
        layer = self.unpack(point)
        shape = self.targets.shape
        pull, bend, cross = np.empty((3, *shape), dtype=np.float32)
        hidden = np.empty((shape[0], self.rank))
        value, by_Z = self._penalty(layer), self.ridge * layer.Z
        by_U, by_intercept = self.alpha * layer.U, np.zeros(shape[1])
        by_scale, scale_scale = np.zeros((2, shape[1]))
        sigma = np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            h = block.forward(layer.Z)
            at = self._entries(rows, h @ layer.U.T + layer.intercept, sigma)
            weight = self.weight[rows]
            share = weight[:, None]
            G = at.latent * share
            value += float(weight @ at.nll.sum(axis=1))
            by_U += G.T @ h
            by_Z += block.adjoint(G @ layer.U)
            by_intercept += G.sum(axis=0)
            by_scale += weight @ at.log_sigma
            scale_scale += weight @ at.log_sigma_log_sigma
            hidden[rows], pull[rows] = h, G
            np.multiply(at.latent_latent, share, out=bend[rows], casting="same_kind")
            np.multiply(at.latent_log_sigma, share, out=cross[rows], casting="same_kind")
        pressed = (layer.log_sigma <= self.min_log_sigma) & (by_scale > 0.0)
        free = Layer(
            np.ones_like(layer.U),
            np.ones_like(layer.Z),
            np.full(shape[1], float(self.fit_intercept)),
            (self.free_sigma & ~pressed).astype(np.float64),
        )
        mask = self.pack(free)
        gradient = self.pack(Layer(by_U, by_Z, by_intercept, by_scale)) * mask
        return SubspaceEvaluation(
            self, layer, np.array([value]), gradient, mask, hidden, pull, bend, cross, scale_scale
        )

    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (1,)."""
        layer = self.unpack(point)
        total, sigma = self._penalty(layer), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            latent = block.forward(layer.Z) @ layer.U.T + layer.intercept
            total += float(self.weight[rows] @ self._entries(rows, latent, sigma).nll.sum(axis=1))
        return np.array([total])

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """Step, keep σ above its floor, and balance U against V, which only lowers the penalty."""
        layer = self.unpack(point + step * direction)
        log_sigma = np.maximum(layer.log_sigma, self.min_log_sigma)
        return self.pack(self.balance(layer._replace(log_sigma=log_sigma)))

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that changes no σ by a factor of more than e², (1,)."""
        largest = np.abs(self.unpack(direction).log_sigma).max(initial=0.0)
        return np.array([2.0 / max(largest, 2.0)])

    def balance(self, layer: Layer) -> Layer:
        """The factors of the same UV with the least ‖U‖² + ‖V‖²: UᵀU = VVᵀ, diagonal."""
        weights = np.sqrt(self.features.squared_norms)[:, None]
        q_U, r_U = np.linalg.qr(layer.U)
        q_V, r_V = np.linalg.qr(layer.Z * weights)
        left, singular, right = np.linalg.svd(r_U @ r_V.T)
        root = np.sqrt(singular)
        return layer._replace(U=q_U @ left * root, Z=q_V @ right.T * root / weights)

    def coefficient_gradient(self, evaluation: SubspaceEvaluation) -> FloatArray:
        """The gradient by W in the round basis, scaled so that its spectral norm is that by W.

        W = 0 in a direction is optimal under a trace norm of weight α if and only if this norm is
        at most α; on the support of W it equals α.
        """
        total = np.zeros((self.features.rank, self.targets.shape[1]))
        for rows, block in self.features.blocks():
            total += block.adjoint(evaluation.pull[rows].astype(np.float64))
        return total / np.sqrt(self.features.squared_norms)[:, None]

    def _penalty(self, layer: Layer) -> float:
        penalty = self.alpha * np.square(layer.U).sum() + (self.ridge * layer.Z**2).sum()
        return 0.5 * float(penalty)

    def _entries(self, rows: slice, latent: FloatArray, sigma: FloatArray) -> Any:
        low = self.scaling.apply(self.targets.low[rows], _ALL)
        high = self.scaling.apply(self.targets.high[rows], _ALL)
        return kernels.evaluate(self.noise, low, high, latent, sigma)


@dataclass(frozen=True)
class SubspaceEvaluation:
    """A point of :class:`SubspaceProblem`; entry-wise derivatives are kept in single precision."""

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
        problem, layer = self.problem, self.layer
        d = problem.unpack(direction * self.free)
        d_U, U = d.U.astype(np.float32), layer.U.astype(np.float32)
        d_intercept, d_scale = d.intercept.astype(np.float32), d.log_sigma.astype(np.float32)
        by_U, by_Z = problem.alpha * d.U, problem.ridge * d.Z
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
        product = problem.pack(Layer(by_U, by_Z, by_intercept, by_scale))
        return np.asarray(product * self.free)

    def precondition(self, residual: FloatArray) -> FloatArray:
        """Solve with the diagonal blocks of a Gauss–Newton Hessian, each a Kronecker product."""
        d = self.problem.unpack(residual)
        metric = self._metric
        scaled = Layer(
            (d.U @ metric.hidden_axes) / metric.of_u_rows @ metric.hidden_axes.T,
            (d.Z @ metric.task_axes) / metric.of_z_rows @ metric.task_axes.T,
            d.intercept / metric.level,
            d.log_sigma / metric.of_scale,
        )
        return self.problem.pack(scaled)

    @cached_property
    def _metric(self) -> _Metric:
        problem, U = self.problem, self.layer.U
        level = np.abs(self.bend).sum(axis=0, dtype=np.float64)
        level = np.where(level > _NO_CURVATURE, level, 1.0)
        second = self.hidden.T @ (self.hidden * problem.weight[:, None])
        hidden_values, hidden_axes = np.linalg.eigh(second)
        task_values, task_axes = np.linalg.eigh(U.T @ (U * level[:, None]))
        of_u_rows = np.outer(level, np.maximum(hidden_values, 0.0)) + problem.alpha
        of_z_rows = np.maximum(task_values, 0.0) * (1.0 - problem.features.ridge[:, None])
        of_z_rows = of_z_rows + problem.ridge
        of_scale = np.where(np.abs(self.scale_scale) > _NO_CURVATURE, np.abs(self.scale_scale), 1.0)
        tiny = 1e-8
        return _Metric(
            hidden_axes,
            task_axes,
            np.maximum(of_u_rows, tiny * of_u_rows.max()),
            np.maximum(of_z_rows, tiny * of_z_rows.max()),
            level,
            of_scale,
        )


class _Metric(NamedTuple):
    """The preconditioner: axes in which its blocks are diagonal, and the diagonals."""

    hidden_axes: FloatArray
    task_axes: FloatArray
    of_u_rows: FloatArray
    of_z_rows: FloatArray
    level: FloatArray
    of_scale: FloatArray
