"""Where one layer begins: the model without features, and the first direction away from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.features import AlignedFeatures, RoundFeatures, round_features
from deeptobit.layer.parameters import Layer
from deeptobit.layer.problem import (
    LayerEvaluation,
    LayerProblem,
    SubspaceEvaluation,
    SubspaceProblem,
)
from deeptobit.layer.tobit import SIGMA_FLOOR, CensoringKinds, OlsenProblem, fit_tobit

# Components that have vanished, and whether they should have.

CERTIFIED = 1.0 + 5e-4  # gradient norm over alpha at which no vanished component is missed
_VANISHED = 1e-5  # of the strongest component
_MAX_ROUNDS = 100
_SETTLED = 1e-10
_SHORTER, _MAX_SHORTENINGS = 0.1, 40
_SOWING_ONLY = np.zeros(1, dtype=np.intp)
_LEAST_LEVEL = 1e-6  # of curvature: where it vanishes, no step would be long enough


def spectral_norm(matrix: FloatArray) -> float:
    """The largest singular value; 0 of nothing."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def certificate(problem: LayerProblem, evaluation: LayerEvaluation) -> float:
    """Spectral norm of the gradient by W over alpha, in the metric of the penalty at this point.

    At most 1 where no component that has vanished would lower the objective; 0 for alpha = 0.
    """
    if problem.alpha == 0.0:
        return 0.0
    return spectral_norm(_metric_gradient(problem, evaluation)[1]) / problem.alpha


def sow(problem: LayerProblem, layer: Layer) -> Layer:
    """Fill vanished components with the directions in which the objective falls fastest.

    Returns the layer itself if no component has vanished, or none could be filled.
    """
    strength = np.linalg.norm(layer.U, axis=0)
    empty = np.flatnonzero(strength <= _VANISHED * max(strength.max(initial=0.0), 1e-3))
    evaluation = problem.evaluate(problem.pack(layer), _SOWING_ONLY)
    spread, gradient = _metric_gradient(problem, evaluation)
    left, singular, right = np.linalg.svd(gradient, full_matrices=False)
    count = min(len(empty), int((singular > CERTIFIED * problem.alpha).sum()))
    if count == 0:
        return layer
    level = float(evaluation.level.mean())
    size = np.sqrt((singular[:count] - problem.alpha) / max(level, _LEAST_LEVEL))
    for _ in range(_MAX_SHORTENINGS):
        U, Z = layer.U.copy(), layer.Z.copy()
        U[:, empty[:count]] = -right[:count].T * size
        Z[:, empty[:count]] = left[:, :count] * size * spread
        sown = problem.balance(layer._replace(U=U, Z=Z))
        if problem.value(problem.pack(sown), _SOWING_ONLY)[0] < evaluation.value[0]:
            return sown
        size *= _SHORTER  # features that are not standardised have more curvature than ``level``
    return layer


def _metric_gradient(
    problem: LayerProblem, evaluation: LayerEvaluation
) -> tuple[FloatArray, FloatArray]:
    """Prior standard deviations of the rows of Z, (r, 1), and the gradient by W times them."""
    norms = np.sqrt(problem.features.squared_norms)[:, None]
    gradient = problem.coefficient_gradient(evaluation)
    variance = problem.penalty.variance(evaluation.layer.Z)
    if not variance.any():  # no feature is in the model, so that none has shown its variance
        variance = leading_variance(gradient, problem.penalty.share)
    spread = np.sqrt(variance)
    return spread, gradient * norms * spread


def leading_variance(gradient: FloatArray, share: float) -> FloatArray:
    r"""Prior variances of the features for which the gradient G at W = 0 is largest, (D, 1).

    .. math:: \max_{\|u\| = 1,\ \omega \ge 0,\ \bar\omega = 1}
        \sum_d \tau_d\, (u^\top G_d)^2, \qquad \tau_d = \frac{1}{1 - s + s/\omega_d}

    u and τ are found in turns, from the leading singular vector and from the largest column: the
    root of the better maximum is the alpha above which nothing enters the model.

    Examples
    --------
    >>> G = np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]])
    >>> leading_variance(G, 0.0).ravel(), leading_variance(G, 1.0).ravel()
    (array([1., 1., 1., 1.]), array([4., 0., 0., 0.]))
    """
    if share == 0.0 or not gradient.any():
        return np.ones((len(gradient), 1))
    largest = gradient[np.linalg.norm(gradient, axis=1).argmax()]
    starts = (np.linalg.svd(gradient, full_matrices=False)[2][0], largest)
    found = [_climb(gradient, start, share) for start in starts]
    return max(found, key=lambda variance: spectral_norm(np.sqrt(variance) * gradient))


def _climb(gradient: FloatArray, direction: FloatArray, share: float) -> FloatArray:
    height = 0.0
    for _ in range(_MAX_ROUNDS):
        variance = _best_variance(np.abs(gradient @ direction), share)[:, None]
        _, singular, right = np.linalg.svd(np.sqrt(variance) * gradient, full_matrices=False)
        direction = right[0]
        if singular[0] <= height * (1.0 + _SETTLED):
            break
        height = singular[0]
    return variance


def _best_variance(slopes: FloatArray, share: float) -> FloatArray:
    """The τ that maximise Σ_d τ_d a_d²: (1 − m s/a_d)₊/(1 − s), where m makes the mean of ω one."""
    n_features = len(slopes)
    if share == 1.0:
        return np.where(np.arange(n_features) == slopes.argmax(), float(n_features), 0.0)
    ordered = np.sort(slopes)[::-1]
    counts = np.arange(1, n_features + 1)
    level = np.cumsum(ordered) / (n_features * (1.0 - share) + counts * share)
    inside = ordered > share * level
    threshold = share * level[np.flatnonzero(inside)[-1]]
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(1.0 - threshold / slopes, 0.0) / (1.0 - share))


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
