"""Components that have vanished, and whether they should have."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective import Layer, LayerEvaluation, LayerProblem

CERTIFIED = 1.0 + 5e-4  # gradient norm over alpha at which no vanished component is missed
_VANISHED = 1e-5  # of the strongest component
_MAX_ROUNDS = 100
_SETTLED = 1e-10
_SHORTER, _MAX_SHORTENINGS = 0.1, 40
_ONLY = np.zeros(1, dtype=np.intp)
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
    evaluation = problem.evaluate(problem.pack(layer), _ONLY)
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
        if problem.value(problem.pack(sown), _ONLY)[0] < evaluation.value[0]:
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
