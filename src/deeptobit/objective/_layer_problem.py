"""One layer's problem, however its rows are summed: parameters, penalty, steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective._aligned import AlignedFeatures
from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._feature_penalty import (
    FeaturePenalty,
    group_share,
    least_subgradient,
)
from deeptobit.objective._layer import Layer
from deeptobit.objective._layer_evaluation import LayerEvaluation

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
