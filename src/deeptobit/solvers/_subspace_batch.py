"""One layer to its optimum: null model, spectral start, Newton on everything at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective import (
    Layer,
    OlsenProblem,
    RoundFeatures,
    SubspaceEvaluation,
    SubspaceProblem,
)
from deeptobit.solvers._newton import solve_newton
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

_ONLY = np.zeros(1, dtype=np.intp)
_VANISHED = 1e-5  # of the strongest component
_CERTIFIED = 1.0 + 5e-4  # gradient norm over alpha at which no vanished component is missed
_MAX_SOWINGS = 10
_CAUTION = 1.5  # on the count of parameters in the floor of σ; chosen on simulated small cohorts


@dataclass(frozen=True)
class SubspaceFit:
    """Where the batch solver ended.

    Parameters
    ----------
    layer : Layer
    objective : float
    gradient_norm : float
        Of the whole gradient, relative to that by W at W = 0.
    certificate : float
        Spectral norm of the gradient by W over alpha (0 for alpha = 0): at most 1 at the optimum of
        the trace-norm problem.
    n_iter : int
    converged : bool
    """

    layer: Layer
    objective: float
    gradient_norm: float
    certificate: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class NullModel:
    """The model with W = 0, and the gradient by W there (in the round basis, transposed)."""

    problem: SubspaceProblem
    layer: Layer
    evaluation: SubspaceEvaluation
    gradient: FloatArray
    kinds: CensoringKinds

    @property
    def alpha_max(self) -> float:
        """The smallest alpha whose optimum is W = 0: the spectral norm of the gradient by W."""
        return float(np.linalg.norm(self.gradient, 2)) if self.gradient.size else 0.0


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
    """Floors of σ over that of the null model: 1.5 × parameters per entry, at most 1, (T,).

    With more features than rows a task can be fitted exactly at a finite penalty, and the
    likelihood has no minimum: σ would run to 0. A fit with k parameters for n entries has explained
    a share k/n of pure noise, so a σ far below k/n of the null model's is not to be believed.
    """
    n_tasks, rank = problem.targets.shape[1], problem.rank
    # Directions of the features that the penalty leaves free: Σ λ/(λ + α) over their variances λ.
    n_directions = max(float((1.0 / (1.0 + problem.ridge)).sum()), float(rank))
    parameters = _CAUTION * rank * (n_directions + n_tasks - rank) / n_tasks
    entries = problem.total_weight * (problem.weight @ ~problem.targets.missing)
    return np.clip(parameters / np.maximum(entries, 1.0), SIGMA_FLOOR, 1.0)


def spectral_start(null: NullModel) -> Layer:
    """The leading directions of one Newton step for every task from W = 0."""
    problem = null.problem
    level = np.abs(null.evaluation.bend).sum(axis=0, dtype=np.float64)
    level = np.where(level > 0.0, level, 1.0)
    norms = np.sqrt(problem.features.squared_norms)[:, None]
    step = -(null.gradient * norms) / np.sqrt(level)
    left, singular, right = np.linalg.svd(step, full_matrices=False)
    kept = slice(0, problem.rank)
    U = (right[kept].T * singular[kept]) / np.sqrt(level)[:, None]
    return problem.balance(null.layer._replace(U=U, Z=left[:, kept]))


def solve_subspace(
    null: NullModel, start: Layer, *, alpha: float, tol: float, max_iter: int
) -> SubspaceFit:
    """Minimise the objective from ``start`` to a relative gradient norm of ``tol``.

    A component that has vanished stays so even where it should not, because (0, 0) is stationary
    for it. While the certificate shows this, such components are sown again.
    """
    problem = replace(null.problem, alpha=alpha)
    fit = _descend(problem, null, start, tol, max_iter)
    for _ in range(_MAX_SOWINGS):
        if alpha == 0.0 or fit.certificate <= _CERTIFIED:
            break
        sown = sow(problem, fit.layer)
        if sown is fit.layer:
            break
        again = _descend(problem, null, sown, tol, max_iter)
        fit = replace(again, n_iter=fit.n_iter + again.n_iter)
    return fit


def solve_path(
    null: NullModel, alphas: FloatArray, *, tol: float, max_iter: int
) -> Iterator[SubspaceFit]:
    """Fits for decreasing alphas, each started from the one before; the first may be zero."""
    layer = null.layer
    for alpha in alphas.tolist():
        fit = solve_subspace(null, layer, alpha=alpha, tol=tol, max_iter=max_iter)
        layer = fit.layer
        yield fit


def sow(problem: SubspaceProblem, layer: Layer) -> Layer:
    """Fill vanished components with the directions in which the objective falls fastest.

    Returns the layer itself if no component has vanished, or none could be filled.
    """
    strength = np.linalg.norm(layer.U, axis=0)
    empty = np.flatnonzero(strength <= _VANISHED * max(strength.max(initial=0.0), 1e-3))
    evaluation = problem.evaluate(problem.pack(layer), _ONLY)
    left, singular, right = np.linalg.svd(
        problem.coefficient_gradient(evaluation), full_matrices=False
    )
    count = min(len(empty), int((singular > _CERTIFIED * problem.alpha).sum()))
    if count == 0:
        return layer
    level = float(np.abs(evaluation.bend).sum(dtype=np.float64)) / problem.targets.shape[1]
    size = np.sqrt((singular[:count] - problem.alpha) / max(level, np.finfo(np.float64).tiny))
    norms = np.sqrt(problem.features.squared_norms)[:, None]
    U, Z = layer.U.copy(), layer.Z.copy()
    U[:, empty[:count]] = -right[:count].T * size
    Z[:, empty[:count]] = left[:, :count] * size / norms
    return problem.balance(layer._replace(U=U, Z=Z))


def _descend(
    problem: SubspaceProblem, null: NullModel, start: Layer, tol: float, max_iter: int
) -> SubspaceFit:
    scale = _gradient_scale(null)
    result = solve_newton(
        problem, problem.pack(start), tol=np.array([tol * scale]), max_iter=max_iter
    )
    slope = problem.coefficient_gradient(problem.evaluate(result.point, _ONLY))
    spectral = float(np.linalg.norm(slope, 2)) if slope.size else 0.0
    return SubspaceFit(
        layer=problem.unpack(result.point),
        objective=float(result.value[0]),
        gradient_norm=float(result.gradient_norm[0]) / scale,
        certificate=spectral / problem.alpha if problem.alpha > 0.0 else 0.0,
        n_iter=int(result.n_iter[0]),
        converged=bool(result.converged[0]),
    )


def relative_gradient(null: NullModel, layer: Layer) -> float:
    """Norm of the gradient at a layer, balanced first, relative to that by W at W = 0."""
    problem = null.problem
    evaluation = problem.evaluate(problem.pack(problem.balance(layer)), _ONLY)
    return float(np.linalg.norm(evaluation.gradient)) / _gradient_scale(null)


def _gradient_scale(null: NullModel) -> float:
    return max(float(np.linalg.norm(null.gradient)), np.finfo(np.float64).tiny)
