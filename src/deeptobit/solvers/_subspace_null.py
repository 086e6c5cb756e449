"""Where one layer begins: the model without features, and the first direction away from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective import (
    AlignedFeatures,
    Layer,
    LayerProblem,
    OlsenProblem,
    RoundFeatures,
    SubspaceEvaluation,
    SubspaceProblem,
    round_features,
)
from deeptobit.solvers._sowing import leading_variance, spectral_norm
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

_NO_GRADIENT = 1e-6  # in standard units: below this, rounding is all there is
_LONGEST_START = 1e3  # of a task, in its standard deviations
_ONLY = np.zeros(1, dtype=np.intp)
_CAUTION = 1.5  # on the count of parameters in the floor of σ; chosen on simulated small cohorts


@dataclass(frozen=True)
class NullModel:
    """The model with W = 0, and the gradient by W there (in the basis of Z, transposed)."""

    problem: SubspaceProblem
    layer: Layer
    evaluation: SubspaceEvaluation
    gradient: FloatArray
    kinds: CensoringKinds

    @property
    def alpha_max(self) -> float:
        """The smallest alpha at which W = 0 is stationary against every direction.

        Without ``feature_sparsity`` the spectral norm of the gradient by W; with it the largest
        over the feature variances that the penalty may choose.
        """
        variance = leading_variance(self.gradient, self.problem.penalty.share)
        return spectral_norm(np.sqrt(variance) * self.gradient)

    @property
    def gradient_scale(self) -> float:
        """Norm of the gradient by W, the unit of every tolerance; of constant features a floor."""
        return max(float(np.linalg.norm(self.gradient)), _NO_GRADIENT)


def fit_null(problem: SubspaceProblem, *, tol: float = 1e-10) -> NullModel:
    """Intercepts and noise scales alone; tasks without a maximum are set aside as missing."""
    features = problem.features
    empty = RoundFeatures(
        features.design.without_matrix(),
        np.zeros((len(features.design.scale), 0)),
        np.zeros(0),
        np.zeros((features.n_samples, 0)),
    )
    olsen = OlsenProblem(
        empty,
        problem.targets,
        problem.scaling,
        problem.noise,
        problem.fit_intercept,
        problem.free_sigma,
        1.0 / SIGMA_FLOOR,
    )
    fixed = None if problem.free_sigma.all() else np.exp(-problem.fixed_log_sigma)
    olsen, result, kinds = fit_tobit(
        olsen, fixed, total_weight=problem.total_weight, tol=tol, max_iter=100
    )
    theta = result.point[-1]
    layer = Layer(
        np.zeros((problem.targets.shape[1], problem.rank)),
        np.zeros((features.rank, problem.rank)),
        result.point[-2] / theta,
        -np.log(theta),
    )
    aside = np.where(kinds.one_sided, np.nan, 0.0)
    targets = replace(
        problem.targets, low=problem.targets.low + aside, high=problem.targets.high + aside
    )
    floors = layer.log_sigma + np.log(sigma_floors(problem))
    problem = replace(problem, targets=targets, free_sigma=olsen.free_sigma, min_log_sigma=floors)
    evaluation = problem.evaluate(problem.pack(layer), _ONLY)
    return NullModel(problem, layer, evaluation, problem.coefficient_gradient(evaluation), kinds)


def sigma_floors(problem: SubspaceProblem) -> FloatArray:
    """Floors of σ over that of the null model, for rows in memory, (T,)."""
    return floors_for(problem, problem.total_weight * (problem.weight @ ~problem.targets.missing))


def floors_for(problem: LayerProblem, entries: FloatArray) -> FloatArray:
    """Floors of σ over that of the null model: 1.5 × parameters per entry, at most 1, (T,).

    ``entries`` (T,) are the known ones of every task, by weight. With more features than rows a
    task can be fitted exactly at a finite penalty, and the likelihood has no minimum: σ would run
    to 0. A fit with k parameters for n entries has explained a share k/n of pure noise, so a σ far
    below k/n of the null model's is not to be believed.
    """
    n_tasks, rank = problem.n_tasks, problem.rank
    # Directions of the features that the penalty leaves free: Σ λ/(λ + α) over their variances λ.
    ridge = problem.alpha * round_features(problem.features).squared_norms
    n_directions = max(float((1.0 / (1.0 + ridge)).sum()), float(rank))
    parameters = _CAUTION * rank * (n_directions + n_tasks - rank) / n_tasks
    return np.clip(parameters / np.maximum(entries, 1.0), SIGMA_FLOOR, 1.0)


def spectral_start(null: NullModel) -> Layer:
    """The leading directions of one Newton step for every task from W = 0."""
    problem, features = null.problem, null.problem.features
    rounded = round_features(features)
    gradient = null.gradient * np.sqrt(features.squared_norms)[:, None]
    if isinstance(features, AlignedFeatures):
        gradient = rounded.coordinates(gradient) * rounded.squared_norms[:, None]
    # Where curvature vanishes, as of tasks that are nearly all censored, a step has no end.
    level = np.maximum(null.evaluation.level, np.linalg.norm(gradient, axis=0) / _LONGEST_START)
    level = np.where(level > 0.0, level, 1.0)
    left, singular, right = np.linalg.svd(-gradient / np.sqrt(level), full_matrices=False)
    kept = slice(0, problem.rank)
    U = (right[kept].T * singular[kept]) / np.sqrt(level)[:, None]
    Z = left[:, kept]
    if isinstance(features, AlignedFeatures):
        Z = np.where(features.design.vanishing[:, None], 0.0, rounded.coefficients(Z))
        unused = ((0, 0), (0, problem.rank - Z.shape[1]))  # features may span fewer directions
        U, Z = np.pad(U, unused), np.pad(Z, unused)
    return problem.balance(null.layer._replace(U=U, Z=Z))
