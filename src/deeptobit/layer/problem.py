"""One layer's objective: all tasks share W = UV (equation 2 of the paper, as a mean over rows).

The paper alternates between V given U (problem P:V) and U given V (problem P:U). Here both are
blocks of one Newton step: ``by_Z`` and ``by_U`` in the gradients and Hessian products below.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer.features import BasisFeatures, Layer, TargetScaling
from deeptobit.layer.newton import Tasks
from deeptobit.penalties import Penalty, Ridge, balance, least_subgradient
from deeptobit.targets import CensoredTargets

ONLY: Tasks = np.zeros(1, dtype=np.intp)  # a layer is one problem: the column of all parameters
_NO_CURVATURE = 1e-30
_LEAST = 1e-8  # of the largest curvature in a block of the preconditioner
_SOFTENED = 1.0 - 1e-3  # below 1, so that the corrected block stays positive
_MAX_FACTOR = 1500  # features up to which a factorisation per component pays


@dataclass(frozen=True, kw_only=True)
class LayerProblem(ABC):
    r"""The penalised likelihood of one layer, in standard units.

    .. math::
        \sum_i w_i \sum_t \mathrm{nll}(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \alpha\left(\tfrac12\|U\|_F^2 + P(V)\right),\qquad \sum_i w_i = 1.

    It is one problem, so the solver sees a point of one column. V is written in a basis of the
    features, :math:`V = (BZ)^\top`: the whitened one for a penalty that is invariant under
    rotations, as the ridge is, or the features' own. A subclass sums the likelihood over rows.

    A feature that is out of the model, :math:`V_d = 0`, may sit at a kink of P. The gradient there
    is the least subgradient, and its norm the residual of the optimality conditions: 0 while
    :math:`\|\partial_{V_d} \text{nll}\|` is below the threshold.

    Parameters
    ----------
    features, noise
        The features in standard units and the family of the noise.
    rank : int
    alpha : float
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
    total_weight : float
        Sum of the row weights as given.
    sigma : array of shape (T,), optional
        Given noise scales in standard units; estimated by default.
    min_log_sigma : array of shape (T,) or ()
        Floors of log σ in standard units, reached where a task is fitted exactly; none by default.
    penalty : Penalty
        P; its features come from :func:`features_for`.
    """

    features: BasisFeatures
    noise: likelihood.Noise
    rank: int
    alpha: float
    fit_intercept: bool
    free_sigma: BoolArray
    total_weight: float
    sigma: FloatArray | None = None
    min_log_sigma: FloatArray = field(default_factory=lambda: np.array(-np.inf))
    penalty: Penalty = field(default_factory=Ridge)

    def __post_init__(self) -> None:
        """Refuse a basis that the penalty does not know."""
        if not self.penalty.rotation_invariant and self.features.rotated is None:
            raise ValueError(f"{self.penalty} needs features in their own basis: use features_for")

    @abstractmethod
    def evaluate(self, point: FloatArray, tasks: Tasks = ONLY) -> "LayerEvaluation":
        """Objective, gradient and curvature at a point; ``tasks`` has one element, the layer."""

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.free_sigma)

    def pack(self, layer: Layer) -> FloatArray:
        """A layer as one column of parameters."""
        return np.concatenate([part.ravel() for part in layer])[:, None]

    def unpack(self, point: FloatArray) -> Layer:
        """The layer behind a column of parameters."""
        n_tasks, rank, n_directions = self.n_tasks, self.rank, self.features.rank
        end_U, end_Z = n_tasks * rank, (n_tasks + n_directions) * rank
        column = point[:, 0]
        U = column[:end_U].reshape(n_tasks, rank)
        Z = column[end_U:end_Z].reshape(n_directions, rank)
        return Layer(U, Z, column[end_Z : end_Z + n_tasks], column[end_Z + n_tasks :])

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """Step, keep σ above its floor, and balance U against V, which only lowers the penalty.

        A feature whose column of V would turn back on itself leaves, if the penalty has kinks.
        """
        layer = self.unpack(point + step * direction)
        Z = layer.Z
        if self.penalty.has_kinks:
            turned = (self.unpack(point).Z * Z).sum(axis=1) < 0.0
            Z = np.where(turned[:, None], 0.0, Z)
        log_sigma = np.maximum(layer.log_sigma, self.min_log_sigma)
        return self.pack(self.balance(layer._replace(Z=Z, log_sigma=log_sigma)))

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that changes no σ by a factor of more than e², (1,)."""
        largest = np.abs(self.unpack(direction).log_sigma).max(initial=0.0)
        return np.array([2.0 / max(largest, 2.0)])

    def orthonormal(self, Z: FloatArray) -> FloatArray:
        """V in an orthonormal basis of the features, (R, r), as the penalty sees it."""
        return np.asarray((self.features.norms[:, None] * Z).T)

    def orthonormal_adjoint(self, V: FloatArray) -> FloatArray:
        """The transpose of :meth:`orthonormal` as a linear map: slopes by Z from those by V."""
        return np.asarray(V.T * self.features.norms[:, None])

    def balance(self, layer: Layer) -> Layer:
        """The factors of the same UV with the least ‖U‖² + Σ_d ‖V_d‖²/τ_d, if P has variances τ."""
        V = self.orthonormal(layer.Z)
        U, V = balance(layer.U, V, self.penalty.variances(V))
        return layer._replace(U=U, Z=V.T / self.features.norms[:, None])

    def penalty_value(self, layer: Layer) -> float:
        """The penalty's share of the objective."""
        half = 0.5 * float(np.square(layer.U).sum())
        return self.alpha * (half + self.penalty.value(self.orthonormal(layer.Z)))

    def penalty_product(self, Z: FloatArray, d_Z: FloatArray) -> FloatArray:
        """The Hessian of αP times a change of Z, (r, R)."""
        product = self.penalty.curvature(self.orthonormal(Z), self.orthonormal(d_Z))
        return self.alpha * self.orthonormal_adjoint(product)

    def gradient_and_free(self, layer: Layer, slopes: Layer) -> tuple[FloatArray, FloatArray]:
        """The gradient from the likelihood's slopes, and 1 where a parameter may move, (P, 1)."""
        V = self.orthonormal(layer.Z)
        by_Z = slopes.Z + self.alpha * self.orthonormal_adjoint(self.penalty.gradient(V))
        absent = self.penalty.zeros(V)
        if absent.any():
            threshold = self.alpha * self.penalty.threshold(V)[absent]
            by_Z[absent] = least_subgradient(by_Z[absent].T, threshold).T
        at_floor = (layer.log_sigma <= self.min_log_sigma) & (slopes.log_sigma > 0.0)
        intercept = np.full(self.n_tasks, float(self.fit_intercept))
        log_sigma = (self.free_sigma & ~at_floor).astype(np.float64)
        present = np.ones_like(layer.Z) * ~absent[:, None]
        free = Layer(np.ones_like(layer.U), present, intercept, log_sigma)
        by_U = slopes.U + self.alpha * layer.U
        gradient = Layer(by_U, by_Z, slopes.intercept * intercept, slopes.log_sigma * log_sigma)
        return self.pack(gradient), self.pack(free)


@dataclass(frozen=True)
class LayerEvaluation(ABC):
    """Value, gradient and curvature at a point of a :class:`LayerProblem`.

    A subclass sums curvature over rows. A feature that enters (absent, with a gradient) has no
    curvature that a Newton step could use: all that enter move together, apart from the rest,
    along their gradient.

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
    def total_curvature(self) -> FloatArray:
        """Sum over rows of the curvature by the score of every task, (T,)."""

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

    def coefficient_gradient(self) -> FloatArray:
        """The likelihood's gradient by W in an orthonormal basis of the features, (r, T).

        W = 0 in a direction is optimal under a trace norm of weight α if and only if the spectral
        norm of this is at most α; on the support of W it equals α.
        """
        return np.asarray(self.by_coefficients() / self.problem.features.norms[:, None])

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Hessian times a direction (P, 1)."""
        product = self.problem.pack(self._smooth_product(direction * self.free)) * self.free
        if self._entering.any():
            product += self._stiffness * direction * self._entering
        return np.asarray(product)

    def precondition(self, residual: FloatArray) -> FloatArray:
        """Solve with the diagonal blocks of a Gauss–Newton Hessian, each a Kronecker product."""
        d = self.problem.unpack(residual * self.free)
        scaled = self.problem.pack(self._divide_by_blocks(d))
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
    def _divide_by_blocks(self) -> Callable[[Layer], Layer]:
        """Division by the blocks of U, Z, intercept and log σ, those of U and Z in their axes."""
        U, curvature, scale = self.layer.U, self.total_curvature, np.abs(self.scale_scale)
        curvature = np.where(curvature > _NO_CURVATURE, curvature, 1.0)
        scale = np.where(scale > _NO_CURVATURE, scale, 1.0)
        hidden_values, hidden_axes = np.linalg.eigh(self.second_moments)
        of_U = np.outer(curvature, np.maximum(hidden_values, 0.0)) + self.problem.alpha
        of_U = np.maximum(of_U, _LEAST * of_U.max(initial=0.0))
        task_values, task_axes = np.linalg.eigh(U.T @ (U * curvature[:, None]))
        solve_Z = _z_block(self.problem, self.layer.Z @ task_axes, np.maximum(task_values, 0.0))

        def divide(d: Layer) -> Layer:
            by_U = (d.U @ hidden_axes) / of_U @ hidden_axes.T
            by_Z = solve_Z(d.Z @ task_axes) @ task_axes.T
            return Layer(by_U, by_Z, d.intercept / curvature, d.log_sigma / scale)

        return divide


@dataclass(frozen=True, kw_only=True)
class SubspaceProblem(LayerProblem):
    """A :class:`LayerProblem` whose rows are in memory.

    Parameters
    ----------
    targets, scaling
        The outcomes and their standard units.
    features, noise, rank, alpha, …
        As in :class:`LayerProblem`.
    """

    targets: CensoredTargets
    scaling: TargetScaling

    @property
    def weight(self) -> FloatArray:
        """Row weights that sum to one, (N,)."""
        return self.features.design.weight

    def evaluate(self, point: FloatArray, tasks: Tasks = ONLY) -> "SubspaceEvaluation":
        """Objective, gradient and curvature at a point; ``tasks`` has one element, the layer."""
        layer = self.unpack(point)
        shape = self.targets.shape
        by_latent, curvature, cross = np.empty((3, *shape), dtype=np.float32)
        hidden = np.empty((shape[0], self.rank))
        value, slopes = self.penalty_value(layer), Layer(*map(np.zeros_like, layer))
        scale_scale, sigma = np.zeros(shape[1]), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            h = block @ layer.Z
            latent = h @ layer.U.T + layer.intercept
            both = self.targets.low, self.targets.high
            low, high = (self.scaling.apply(ends[rows]) for ends in both)
            at = likelihood.evaluate(self.noise, low, high, latent, sigma)
            weight = self.weight[rows]
            share = weight[:, None]
            G = at.latent * share
            value += float(weight @ at.nll.sum(axis=1))
            slopes.U[...] += G.T @ h
            slopes.Z[...] += block.adjoint(G @ layer.U)
            slopes.intercept[...] += G.sum(axis=0)
            slopes.log_sigma[...] += weight @ at.log_sigma
            scale_scale += weight @ at.log_sigma_log_sigma
            hidden[rows], by_latent[rows] = h, G
            np.multiply(at.latent_latent, share, out=curvature[rows], casting="same_kind")
            np.multiply(at.latent_log_sigma, share, out=cross[rows], casting="same_kind")
        gradient, free = self.gradient_and_free(layer, slopes)
        total = np.array([value])
        return SubspaceEvaluation(
            self, layer, total, gradient, free, scale_scale, hidden, by_latent, curvature, cross
        )


@dataclass(frozen=True)
class SubspaceEvaluation(LayerEvaluation):
    """A point of :class:`SubspaceProblem`; Hessian products pass over the rows again.

    Derivatives by the score of every entry, ``by_latent``, ``curvature`` and ``cross`` (with
    log σ), are weighted and kept in single precision, each (N, T).
    """

    problem: SubspaceProblem
    hidden: FloatArray
    by_latent: Any
    curvature: Any
    cross: Any

    @cached_property
    def total_curvature(self) -> FloatArray:
        """Sum over rows of the curvature by the score of every task, (T,)."""
        return np.asarray(np.abs(self.curvature).sum(axis=0, dtype=np.float64))

    @property
    def second_moments(self) -> FloatArray:
        """Of the rows' coordinates Vx, (R, R)."""
        return np.asarray(self.hidden.T @ (self.hidden * self.problem.weight[:, None]))

    def by_coefficients(self) -> FloatArray:
        """The likelihood's gradient by W in the basis of Z, transposed, (r, T)."""
        total = np.zeros((self.problem.features.rank, self.problem.n_tasks))
        for rows, block in self.problem.features.blocks():
            total += block.adjoint(self.by_latent[rows].astype(np.float64))
        return total

    def _smooth_product(self, direction: FloatArray) -> Layer:
        problem, layer = self.problem, self.layer
        d = problem.unpack(direction)
        d_U, U = d.U.astype(np.float32), layer.U.astype(np.float32)
        d_intercept, d_scale = d.intercept.astype(np.float32), d.log_sigma.astype(np.float32)
        by_U, by_Z = problem.alpha * d.U, problem.penalty_product(layer.Z, d.Z)
        by_intercept, by_scale = np.zeros_like(d.intercept), self.scale_scale * d.log_sigma
        for rows, block in problem.features.blocks(single=True):
            h = self.hidden[rows].astype(np.float32)
            d_h = np.asarray(block @ d.Z, dtype=np.float32)
            along = d_h @ U.T + h @ d_U.T + d_intercept
            by_scale += np.einsum("it,it->t", self.cross[rows], along)
            along *= self.curvature[rows]
            along += self.cross[rows] * d_scale
            by_U += along.T @ h + self.by_latent[rows].T @ d_h
            by_Z += block.adjoint(along @ U + self.by_latent[rows] @ d_U)
            by_intercept += along.sum(axis=0)
        return Layer(by_U, by_Z, by_intercept, by_scale)


def _z_block(
    problem: LayerProblem, Z: FloatArray, task_values: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    r"""Division by the block of Z, in the axes of the tasks with curvatures μ (R,).

    In the whitened basis it is diagonal. In the features' own it is, component by component,
    :math:`M_r = \mu_r G + \alpha S` over the features that are present, with their Gram matrix G
    and the stiffness S of the penalty across columns, less what it is softer along columns.
    That correction has one dimension per feature and is solved by Woodbury's identity.
    """
    features, V = problem.features, problem.orthonormal(Z)
    across, along = (problem.alpha * each for each in problem.penalty.stiffness(V))
    present = np.flatnonzero(~problem.penalty.zeros(V))
    factorise = problem.alpha > 0.0 and 0 < len(present) <= _MAX_FACTOR
    if features.rotated is None or not factorise:
        curvature = task_values * (1.0 - features.ridge[:, None])
        curvature = curvature + (across * features.squared_norms)[:, None]
        curvature = np.maximum(curvature, _LEAST * curvature.max(initial=0.0))
        return lambda rows: rows / curvature
    gram = features.gram[np.ix_(present, present)]
    gram = gram + _LEAST * gram.max() * np.eye(len(present))
    inverses = np.linalg.inv(task_values[:, None, None] * gram + np.diag(across[present]))
    V = V[:, present]
    sizes = np.linalg.norm(V, axis=0)
    axes = np.divide(V, sizes, out=np.zeros_like(V), where=sizes > 0.0)
    softer = _SOFTENED * (across - along)[present]
    softness = (axes[:, :, None] * axes[:, None, :] * inverses).sum(axis=0)
    # (D⁻¹ − S)⁻¹ with D the diagonal of ``softer``, which may have zeros.
    inner = np.linalg.solve(np.eye(len(present)) - softer[:, None] * softness, np.diag(softer))

    def solve(rows: FloatArray) -> FloatArray:
        first = (inverses @ rows[present].T[:, :, None])[:, :, 0]
        correction = axes * (inner @ (axes * first).sum(axis=0))
        solved = np.zeros_like(rows)
        solved[present] = (first + (inverses @ correction[:, :, None])[:, :, 0]).T
        return solved

    return solve
