"""One layer's problem, however its rows are summed: parameters, penalty, steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer.features import AlignedFeatures, RoundFeatures
from deeptobit.layer.parameters import Layer, TargetScaling
from deeptobit.likelihood import Noise
from deeptobit.penalties import FeaturePenalty, group_share, least_subgradient
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    pass  # FIXME self import


# The preconditioner of the subspace Tobit: blocks of its Gauss–Newton Hessian.

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


# A point of one layer's problem, however its rows are summed.


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


Tasks = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class LayerProblem(ABC):
    r"""The penalised likelihood of one layer, in standard units.

    .. math::
        \sum_i w_i \sum_t \mathrm{nll}(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}\left(\|U\|_F^2 + \Omega(V)\right),\qquad \sum_i w_i = 1.

    It is one problem, so the solver sees a point of one column. V is written in a basis of the
    features, :math:`V = (BZ)^\top`: the round one, where :math:`\Omega(V) = \|V\|_F^2` is diagonal,
    or their own, where features can leave (:class:`FeaturePenalty`). A subclass sums the likelihood
    over rows.

    A feature that is out of the model, :math:`V_d = 0`, sits at a kink. The gradient there is the
    least subgradient, and its norm the residual of the optimality conditions: 0 while
    :math:`\|\partial_{V_d} \text{nll}\|` is below the threshold.

    Parameters
    ----------
    features, noise
        The features in standard units and the family of the noise.
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
    feature_sparsity : float
        s, from 0 to 1, of which :func:`group_share` makes the penalty's weight; above 0 the
        features must be aligned.
    smoothing : float
        ε of the penalty, in the units of Z.
    """

    features: RoundFeatures
    noise: Noise
    rank: int
    alpha: float
    fit_intercept: bool
    free_sigma: BoolArray
    min_log_sigma: FloatArray
    fixed_log_sigma: FloatArray
    total_weight: float
    feature_sparsity: float = 0.0
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a basis in which no feature can leave."""
        if self.feature_sparsity > 0.0 and not isinstance(self.features, AlignedFeatures):
            raise ValueError("feature_sparsity > 0 needs aligned features: use subspace_features")

    @abstractmethod
    def evaluate(self, point: FloatArray, tasks: Tasks) -> LayerEvaluation:
        """Objective, gradient and curvature at a point; ``tasks`` is the only problem there is."""

    @abstractmethod
    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (1,)."""

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.free_sigma)

    @cached_property
    def penalty(self) -> FeaturePenalty:
        """Ω, of the rows of Z."""
        share = group_share(self.feature_sparsity, len(self.features.design.scale))
        return FeaturePenalty(self.features.squared_norms, share, self.smoothing)

    def pack(self, layer: Layer) -> FloatArray:
        """A layer as one column of parameters."""
        return np.concatenate([part.ravel() for part in layer])[:, None]

    def unpack(self, point: FloatArray) -> Layer:
        """The layer behind a column of parameters."""
        n_tasks, rank, n_directions = self.n_tasks, self.rank, self.features.rank
        cuts = np.cumsum([n_tasks * rank, n_directions * rank, n_tasks])
        U, Z, intercept, log_sigma = np.split(point[:, 0], cuts)
        return Layer(U.reshape(n_tasks, rank), Z.reshape(n_directions, rank), intercept, log_sigma)

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """Step, keep σ above its floor, and balance U against V, which only lowers the penalty.

        A feature whose column of V would turn back on itself leaves.
        """
        layer = self.unpack(point + step * direction)
        Z = layer.Z
        if self.penalty.kinked:
            turned = (self.unpack(point).Z * Z).sum(axis=1) < 0.0
            Z = np.where(turned[:, None], 0.0, Z)
        log_sigma = np.maximum(layer.log_sigma, self.min_log_sigma)
        return self.pack(self.balance(layer._replace(Z=Z, log_sigma=log_sigma)))

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that changes no σ by a factor of more than e², (1,)."""
        largest = np.abs(self.unpack(direction).log_sigma).max(initial=0.0)
        return np.array([2.0 / max(largest, 2.0)])

    def balance(self, layer: Layer) -> Layer:
        """The factors of the same UV with the least ‖U‖² + Σ_j ‖Z_j‖²/τ_j, τ being that of Z."""
        U, Z = self.penalty.balance(layer.U, layer.Z)
        return layer._replace(U=U, Z=Z)

    def coefficient_gradient(self, evaluation: LayerEvaluation) -> FloatArray:
        """The gradient by W in an orthonormal basis of the features, transposed, (r, T).

        W = 0 in a direction is optimal under a trace norm of weight α if and only if the spectral
        norm of this is at most α; on the support of W it equals α.
        """
        norms = np.sqrt(self.features.squared_norms)[:, None]
        return np.asarray(evaluation.by_coefficients() / norms)

    def penalty_value(self, layer: Layer) -> float:
        """The penalty's share of the objective."""
        return 0.5 * self.alpha * (float(np.square(layer.U).sum()) + self.penalty.value(layer.Z))

    def gradient_and_free(self, layer: Layer, slopes: Layer) -> tuple[FloatArray, FloatArray]:
        """The gradient from the likelihood's slopes, and 1 where a parameter may move, (P, 1)."""
        by_U = slopes.U + self.alpha * layer.U
        by_Z = slopes.Z + self.alpha * self.penalty.slope(layer.Z)
        pressed = (layer.log_sigma <= self.min_log_sigma) & (slopes.log_sigma > 0.0)
        absent = self.penalty.absent(layer.Z)
        by_Z[absent] = least_subgradient(by_Z[absent], self.alpha * self.penalty.threshold(layer.Z))
        free = Layer(
            np.ones_like(layer.U),
            np.ones_like(layer.Z) * ~absent[:, None],
            np.full(self.n_tasks, float(self.fit_intercept)),
            (self.free_sigma & ~pressed).astype(np.float64),
        )
        gradient = Layer(
            by_U, by_Z, slopes.intercept * free.intercept, slopes.log_sigma * free.log_sigma
        )
        return self.pack(gradient), self.pack(free)


# A point of the subspace Tobit on rows in memory: Hessian products pass over them again.


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


# One layer of the subspace Tobit: all tasks share W = UV (eq. 2 of the paper, mean form).

_ALL = slice(None)


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

    def evaluate(self, point: FloatArray, tasks: Tasks) -> SubspaceEvaluation:
        """Objective, gradient and curvature at a point; ``tasks`` is the only problem there is."""
        layer = self.unpack(point)
        shape = self.targets.shape
        pull, bend, cross = np.empty((3, *shape), dtype=np.float32)
        hidden = np.empty((shape[0], self.rank))
        value, slopes = self.penalty_value(layer), Layer(*map(np.zeros_like, layer))
        scale_scale, sigma = np.zeros(shape[1]), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            h = block.forward(layer.Z)
            at = self._entries(rows, h @ layer.U.T + layer.intercept, sigma)
            weight = self.weight[rows]
            share = weight[:, None]
            G = at.latent * share
            value += float(weight @ at.nll.sum(axis=1))
            slopes.U[...] += G.T @ h
            slopes.Z[...] += block.adjoint(G @ layer.U)
            slopes.intercept[...] += G.sum(axis=0)
            slopes.log_sigma[...] += weight @ at.log_sigma
            scale_scale += weight @ at.log_sigma_log_sigma
            hidden[rows], pull[rows] = h, G
            np.multiply(at.latent_latent, share, out=bend[rows], casting="same_kind")
            np.multiply(at.latent_log_sigma, share, out=cross[rows], casting="same_kind")
        gradient, free = self.gradient_and_free(layer, slopes)
        return SubspaceEvaluation(
            self,
            layer,
            np.array([value]),
            gradient,
            free,
            scale_scale,
            hidden,
            pull,
            bend,
            cross,
        )

    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (1,)."""
        layer = self.unpack(point)
        total, sigma = self.penalty_value(layer), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            latent = block.forward(layer.Z) @ layer.U.T + layer.intercept
            total += float(self.weight[rows] @ self._entries(rows, latent, sigma).nll.sum(axis=1))
        return np.array([total])

    def _entries(self, rows: slice, latent: FloatArray, sigma: FloatArray) -> Any:
        low = self.scaling.apply(self.targets.low[rows], _ALL)
        high = self.scaling.apply(self.targets.high[rows], _ALL)
        return likelihood.evaluate(self.noise, low, high, latent, sigma)
