"""The Tobit problems of all tasks on one design, in Olsen's convex coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeptobit import kernels
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise, OlsenDerivatives
from deeptobit.objective._basis import Basis
from deeptobit.objective._design import Design
from deeptobit.objective._scaling import TargetScaling
from deeptobit.targets import CensoredTargets

Tasks = NDArray[np.intp]


@dataclass(frozen=True)
class OlsenProblem:
    r"""All tasks' Tobit problems on one design, one column of parameters per task.

    A column holds :math:`(z, b, \theta)`: coefficients in the basis (γ = Bz), intercept and
    precision, all in standard units, so r + 2 rows. The objective of task t is

    .. math::
        \sum_i w_i\,\mathrm{nll}_{it} + \tfrac12 \sum_j ridge_j z_j^2,\qquad \sum_i w_i = 1.

    Parameters
    ----------
    design, targets, scaling, basis, noise
        The data in standard units and the model.
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
        Tasks whose σ is estimated; the others keep the θ they start with.
    max_theta : float
        1/σ may not exceed this: the floor of σ for a task that is fitted exactly.
    """

    design: Design
    targets: CensoredTargets
    scaling: TargetScaling
    basis: Basis
    noise: Noise
    fit_intercept: bool
    free_sigma: BoolArray
    max_theta: float

    def evaluate(self, point: FloatArray, tasks: Tasks) -> Evaluation:
        """Objective, gradient and curvature of some tasks at ``point`` of shape (r + 2, A)."""
        n_samples, n_tasks = self.design.shape[0], len(tasks)
        u_u, u_theta = np.empty((2, n_samples, n_tasks))
        value, theta_theta = np.zeros((2, n_tasks))
        gradient = np.zeros_like(point)
        coefficients = self.basis.vectors @ point[:-2]
        by_feature = np.zeros_like(coefficients)
        for rows, block in self.design.blocks():
            latent = block.forward(coefficients) + point[-2]
            entries = self.entries(rows, latent, point[-1], tasks)
            weight = self.design.weight[rows]
            weighted = entries.u * weight[:, None]
            by_feature += block.adjoint(weighted)
            value += weight @ entries.nll
            gradient[-2] += weighted.sum(axis=0)
            gradient[-1] += weight @ entries.theta
            theta_theta += weight @ entries.theta_theta
            np.multiply(entries.u_u, weight[:, None], out=u_u[rows])
            np.multiply(entries.u_theta, weight[:, None], out=u_theta[rows])
        ridge = self.basis.ridge[:, None]
        value += 0.5 * (ridge * point[:-2] ** 2).sum(axis=0)
        gradient[:-2] = self.basis.vectors.T @ by_feature + ridge * point[:-2]
        frame = Frame(point, self._free(point, gradient, tasks))
        return Evaluation(self, value, frame.pull(gradient), frame, u_u, u_theta, theta_theta)

    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (A,)."""
        total = 0.5 * (self.basis.ridge[:, None] * point[:-2] ** 2).sum(axis=0)
        coefficients = self.basis.vectors @ point[:-2]
        for rows, block in self.design.blocks():
            latent = block.forward(coefficients) + point[-2]
            nll = self.entries(rows, latent, point[-1], tasks).nll
            total += self.design.weight[rows] @ nll
        return np.asarray(total)

    def entries(
        self, rows: slice, u: FloatArray, theta: FloatArray, tasks: Tasks
    ) -> OlsenDerivatives:
        """Entry-wise likelihood of some rows and tasks at u (n, A) and θ (A,)."""
        low = self.scaling.apply(self.targets.low[rows][:, tasks], tasks)
        high = self.scaling.apply(self.targets.high[rows][:, tasks], tasks)
        return kernels.evaluate_olsen(self.noise, low, high, u, theta)

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """Step along a direction given in the point's :class:`Frame`; θ respects its cap."""
        moved = point + step * Frame(point, np.ones_like(point)).push(direction)
        moved[-1] = np.minimum(moved[-1], self.max_theta)
        return moved

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that leaves θ at least a tenth of its value, (A,)."""
        return np.asarray(0.9 / np.maximum(-direction[-1], 0.9))

    def known_share(self) -> FloatArray:
        """Total weight of the entries that are not missing, (T,)."""
        return np.asarray(self.design.weight @ ~self.targets.missing)

    def _free(self, point: FloatArray, gradient: FloatArray, tasks: Tasks) -> FloatArray:
        """1 where a parameter may move, 0 where it is fixed or pressed against its cap."""
        free = np.ones_like(point)
        free[-2] = self.fit_intercept
        pressed = (point[-1] >= self.max_theta) & (gradient[-1] < 0.0)
        free[-1] = self.free_sigma[tasks] & ~pressed
        return free


@dataclass(frozen=True)
class Frame:
    r"""Coordinates at a point (z, b, θ) in which location and scale hardly interact.

    A direction (δ, ε, τ) moves z by δ + zτ, b by ε + bτ and θ by θτ: δ and ε change the regression
    line, τ is the change of log θ. In the plain coordinates a well-fitted task is a long narrow
    valley along its own point, and conjugate gradients would crawl along it.

    Parameters
    ----------
    point : array of shape (r + 2, A)
    free : array of shape (r + 2, A)
        1 where a parameter may move, 0 where it is held.
    """

    point: FloatArray
    free: FloatArray

    def push(self, direction: FloatArray) -> FloatArray:
        """From the frame to plain coordinates."""
        direction = direction * self.free
        plain = direction + self.point * direction[-1]
        plain[-1] = self.point[-1] * direction[-1]
        return plain

    def pull(self, gradient: FloatArray) -> FloatArray:
        """From plain gradients to the frame's, the transpose of ``push``."""
        pulled = gradient.copy()
        pulled[-1] = (self.point * gradient).sum(axis=0)
        return pulled * self.free


@dataclass(frozen=True)
class Evaluation:
    """A point of :class:`OlsenProblem`: value (A,), gradient and Hessian products in its frame."""

    problem: OlsenProblem
    value: FloatArray
    gradient: FloatArray
    frame: Frame
    u_u: FloatArray
    u_theta: FloatArray
    theta_theta: FloatArray

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Hessian of each task's objective times its column of ``direction``."""
        basis, design = self.problem.basis, self.problem.design
        direction = self.frame.push(direction)
        coefficients = basis.vectors @ direction[:-2]
        by_feature = np.zeros_like(coefficients)
        product = np.empty_like(direction)
        product[-2] = 0.0
        product[-1] = self.theta_theta * direction[-1]
        for rows, block in design.blocks():
            along = block.forward(coefficients)
            along += direction[-2]
            product[-1] += np.einsum("it,it->t", self.u_theta[rows], along)
            along *= self.u_u[rows]
            along += self.u_theta[rows] * direction[-1]
            by_feature += block.adjoint(along)
            product[-2] += along.sum(axis=0)
        product[:-2] = basis.vectors.T @ by_feature + basis.ridge[:, None] * direction[:-2]
        return self.frame.pull(product)

    def diagonal(self) -> FloatArray:
        """A positive diagonal near the Hessian's, (r + 2, A): the basis makes z round by itself."""
        ridge = self.problem.basis.ridge[:, None]
        level = np.maximum(self.u_u.sum(axis=0), np.finfo(np.float64).tiny)
        # At the optimum the curvature by log θ is that of the residuals: about twice the level.
        return np.vstack([level * (1.0 - ridge) + ridge, level, 2.0 * level])
