"""Where one layer begins: the null model W = 0, and the leading directions away from it."""

from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.features import AlignedFeatures
from deeptobit.layer.parameters import Layer
from deeptobit.layer.problem import LayerProblem, SubspaceEvaluation, SubspaceProblem
from deeptobit.layer.tobit import SIGMA_FLOOR, CensoringKinds, OlsenProblem, fit_tobit

_NO_GRADIENT = 1e-6  # in standard units: below this, rounding is all there is
_LONGEST_START = 1e3  # of a task, in its standard deviations
_CAUTION = 1.5  # on the count of parameters in the floor of σ; chosen on simulated small cohorts


@dataclass(frozen=True)
class NullLayer:
    """A layer at W = 0 in standard units, and the gradient by W there.

    Parameters
    ----------
    problem : SubspaceProblem
        With floors of σ, and with tasks without a maximum set to missing.
    layer : Layer
    evaluation : SubspaceEvaluation
    gradient : array of shape (r, T)
        In an orthonormal basis of the features, transposed.
    kinds : CensoringKinds
    """

    problem: SubspaceProblem
    layer: Layer
    evaluation: SubspaceEvaluation
    gradient: FloatArray
    kinds: CensoringKinds

    @property
    def alpha_max(self) -> float:
        """The smallest alpha at which W = 0 is stationary against every direction.

        For the ridge this is the spectral norm of the gradient by W; for group sparsity the largest
        over the feature variances that the penalty may choose; inf for a penalty without variances.
        """
        variances = self.problem.penalty.leading_variances(self.gradient)
        if variances is None:
            return float("inf")
        return spectral_norm(np.sqrt(variances)[:, None] * self.gradient)

    @property
    def gradient_scale(self) -> float:
        """Norm of the gradient by W, the unit of every tolerance; has a floor."""
        return max(float(np.linalg.norm(self.gradient)), _NO_GRADIENT)


def null_layer(problem: SubspaceProblem, *, tol: float = 1e-10) -> NullLayer:
    """Fit intercepts and noise scales alone, and set tasks without a maximum to missing."""
    olsen = OlsenProblem(
        problem.features,
        problem.targets,
        problem.scaling,
        problem.noise,
        problem.fit_intercept,
        problem.free_sigma,
        1.0 / SIGMA_FLOOR,
    ).without_features()
    fixed = None if problem.free_sigma.all() else np.exp(-problem.fixed_log_sigma)
    olsen, result, kinds = fit_tobit(
        olsen, fixed, total_weight=problem.total_weight, tol=tol, max_iter=100
    )
    theta = result.point[-1]
    layer = Layer(
        np.zeros((problem.n_tasks, problem.rank)),
        np.zeros((problem.features.rank, problem.rank)),
        result.point[-2] / theta,
        -np.log(theta),
    )
    targets, aside = problem.targets, np.where(kinds.one_sided, np.nan, 0.0)
    entries = problem.total_weight * (problem.weight @ ~targets.missing)
    problem = replace(
        problem,
        targets=replace(targets, low=targets.low + aside, high=targets.high + aside),
        free_sigma=olsen.free_sigma,
        min_log_sigma=layer.log_sigma + np.log(sigma_floors(problem, entries)),
    )
    evaluation = problem.evaluate(problem.pack(layer))
    return NullLayer(problem, layer, evaluation, evaluation.coefficient_gradient(), kinds)


def sigma_floors(problem: LayerProblem, entries: FloatArray) -> FloatArray:
    """Floors of σ over that of the null model: 1.5 × parameters per entry, at most 1, (T,).

    ``entries`` (T,) is the weight of the known entries of every task. With more features than rows
    a task can be fitted exactly at a finite penalty, and the likelihood has no minimum: σ would run
    to 0. A fit with k parameters for n entries explains a share k/n of pure noise, so a σ far below
    k/n of the null model's is not credible.
    """
    n_tasks, rank = problem.n_tasks, problem.rank
    # Directions of the features that the penalty leaves free: Σ λ/(λ + α) over their variances λ.
    ridge = problem.alpha * problem.features.in_whitened_basis.squared_norms
    n_directions = max(float((1.0 / (1.0 + ridge)).sum()), float(rank))
    parameters = _CAUTION * rank * (n_directions + n_tasks - rank) / n_tasks
    return np.clip(parameters / np.maximum(entries, 1.0), SIGMA_FLOOR, 1.0)


def spectral_start(null: NullLayer) -> Layer:
    """The leading directions of one Newton step for every task from W = 0."""
    problem, features = null.problem, null.problem.features
    aligned = isinstance(features, AlignedFeatures)
    whitened = features.in_whitened_basis
    gradient = null.gradient * features.norms[:, None]
    if aligned:
        gradient = whitened.adjoint(gradient)
    # Where curvature vanishes, as of tasks that are nearly all censored, a step has no end.
    longest = np.linalg.norm(gradient, axis=0) / _LONGEST_START
    curvature = np.maximum(null.evaluation.total_curvature, longest)
    curvature = np.where(curvature > 0.0, curvature, 1.0)
    left, singular, right = np.linalg.svd(-gradient / np.sqrt(curvature), full_matrices=False)
    leading = slice(0, problem.rank)
    U = (right[leading].T * singular[leading]) / np.sqrt(curvature)[:, None]
    Z = left[:, leading]
    if aligned:
        Z = np.where(features.design.vanishing[:, None], 0.0, whitened.coefficients(Z))
        unused = ((0, 0), (0, problem.rank - Z.shape[1]))  # features may span fewer directions
        U, Z = np.pad(U, unused), np.pad(Z, unused)
    return problem.balance(null.layer._replace(U=U, Z=Z))


def spectral_norm(matrix: FloatArray) -> float:
    """The largest singular value; 0 of an empty matrix."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
