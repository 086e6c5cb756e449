"""The Tobit problems of all tasks on one set of features, in Olsen's convex coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.kernels import OlsenRows
from deeptobit.likelihood import Noise
from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._scaling import TargetScaling
from deeptobit.targets import CensoredTargets

Tasks = NDArray[np.intp]
_NO_CURVATURE = 1e-30  # below this, entries say nothing of the scale of a step


@dataclass(frozen=True)
class OlsenProblem:
    r"""All tasks' Tobit problems, one column of parameters per task.

    A column holds :math:`(z, b, \theta)`: coefficients in the round basis (γ = Bz = β/σ), intercept
    and precision θ = 1/σ, all in standard units, so r + 2 rows. The objective of task t is

    .. math::
        \sum_i w_i\,\mathrm{nll}_{it} + \tfrac12 \sum_j ridge_j z_j^2,\qquad \sum_i w_i = 1.

    Directions at a point are written (δ, ε, τ): δ and ε change the regression line (z by δ, b by ε
    at a fixed θ), τ is the change of log θ at a fixed line. In plain coordinates a well-fitted task
    is a long narrow valley along its own point, and conjugate gradients would crawl along it; in
    these, location and scale hardly interact.

    Parameters
    ----------
    features, targets, scaling, noise
        The data in standard units and the model.
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
        Tasks whose σ is estimated; the others keep the θ they start with.
    max_theta : float
        1/σ may not exceed this: the floor of σ for a task that is fitted exactly.
    """

    features: RoundFeatures
    targets: CensoredTargets
    scaling: TargetScaling
    noise: Noise
    fit_intercept: bool
    free_sigma: BoolArray
    max_theta: float

    @property
    def weight(self) -> FloatArray:
        """Row weights that sum to one, (N,)."""
        return self.features.design.weight

    def evaluate(self, point: FloatArray, tasks: Tasks) -> Evaluation:
        """Objective, gradient and curvature of some tasks at ``point`` of shape (r + 2, A)."""
        z, intercept, theta = point[:-2], point[-2], point[-1]
        ridge = self.features.ridge[:, None]
        u_u, u_tau = np.empty((2, self.features.n_samples, len(tasks)), dtype=np.float32)
        value = 0.5 * (ridge * z**2).sum(axis=0)
        tau_tau = (ridge * z**2).sum(axis=0)
        gradient = np.vstack([ridge * z, np.zeros_like(theta), (ridge * z**2).sum(axis=0)])
        for rows, block in self.features.blocks():
            u = block.forward(z)
            u += intercept
            at = self._rows(rows, u, theta, tasks)
            value += at.sums[0]
            gradient[:-2] += block.adjoint(at.pull)
            gradient[-2] += at.pull.sum(axis=0)
            gradient[-1] += at.sums[1]
            tau_tau += at.sums[2]
            u_u[rows], u_tau[rows] = at.u_u, at.u_tau
        free = self._free(theta, gradient[-1], tasks)
        return Evaluation(self, z, value, gradient * free, free, u_u, u_tau, tau_tau)

    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (A,)."""
        total = 0.5 * (self.features.ridge[:, None] * point[:-2] ** 2).sum(axis=0)
        for rows, block in self.features.blocks():
            u = block.forward(point[:-2]) + point[-2]
            total += self._rows(rows, u, point[-1], tasks).sums[0]
        return np.asarray(total)

    def _rows(self, rows: slice, u: FloatArray, theta: FloatArray, tasks: Tasks) -> OlsenRows:
        low = self.scaling.apply(self.targets.low[rows][:, tasks], tasks)
        high = self.scaling.apply(self.targets.high[rows][:, tasks], tasks)
        return likelihood.olsen_rows(self.noise, low, high, u, theta, self.weight[rows])

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """The point a step along (δ, ε, τ) leads to; θ respects its cap.

        θ is multiplied with √((1 + τ)/(1 − τ)), which is 1 + τ to first order and, for uncensored
        entries and a fixed line, leads a Newton step straight to the best θ.
        """
        tau = step * direction[-1]
        stretch = np.minimum(np.sqrt((1.0 + tau) / (1.0 - tau)), self.max_theta / point[-1])
        moved = point.copy()
        moved[:-1] += step * direction[:-1]
        return np.asarray(moved * stretch)

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that changes θ by a factor of at most 4.4, (A,)."""
        return np.asarray(0.9 / np.maximum(np.abs(direction[-1]), 0.9))

    def known_share(self) -> FloatArray:
        """Total weight of the entries that are not missing, (T,)."""
        return np.asarray(self.weight @ ~self.targets.missing)

    def _free(self, theta: FloatArray, by_tau: FloatArray, tasks: Tasks) -> FloatArray:
        """1 where a parameter may move, 0 where it is fixed or pressed against its cap."""
        free = np.ones((self.features.rank + 2, len(tasks)))
        free[-2] = self.fit_intercept
        pressed = (theta >= self.max_theta) & (by_tau < 0.0)
        free[-1] = self.free_sigma[tasks] & ~pressed
        return free


@dataclass(frozen=True)
class Evaluation:
    """A point of :class:`OlsenProblem`: value (A,), gradient and Hessian products by (δ, ε, τ).

    Entry-wise curvatures are kept in single precision: they only shape search directions.
    """

    problem: OlsenProblem
    z: FloatArray
    value: FloatArray
    gradient: FloatArray
    free: FloatArray
    u_u: Any
    u_tau: Any
    tau_tau: FloatArray

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Hessian of each task's objective times its column of ``direction``."""
        direction = direction * self.free
        delta, epsilon, tau = direction[:-2], direction[-2], direction[-1]
        rough_epsilon, rough_tau = epsilon.astype(np.float32), tau.astype(np.float32)
        ridge = self.problem.features.ridge[:, None] * (delta + self.z * tau)
        by_tau = (self.z * (ridge - self.problem.features.ridge[:, None] * self.z * tau)).sum(
            axis=0
        )
        product = np.vstack([ridge, np.zeros_like(tau), by_tau + self.tau_tau * tau])
        for rows, block in self.problem.features.rough_blocks():
            along = block.forward(delta)
            along += rough_epsilon
            product[-1] += np.einsum("it,it->t", self.u_tau[rows], along)
            along *= self.u_u[rows]
            along += self.u_tau[rows] * rough_tau
            product[:-2] += block.adjoint(along)
            product[-2] += along.sum(axis=0)
        return product * self.free

    def precondition(self, residual: FloatArray) -> FloatArray:
        """Divide by a diagonal near the Hessian's: the basis makes z round by itself."""
        return residual / self._diagonal

    @cached_property
    def _diagonal(self) -> FloatArray:
        ridge = self.problem.features.ridge[:, None]
        level = np.abs(self.u_u).sum(axis=0, dtype=np.float64)
        level = np.where(level > _NO_CURVATURE, level, 1.0)
        by_tau = np.where(np.abs(self.tau_tau) > _NO_CURVATURE, np.abs(self.tau_tau), level)
        return np.vstack([level * (1.0 - ridge) + ridge, level, by_tau])
