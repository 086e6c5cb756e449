"""One layer to its optimum: Newton on everything at once, from any start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective import Layer, LayerProblem
from deeptobit.solvers._course import Course, Step
from deeptobit.solvers._newton import solve_newton
from deeptobit.solvers._selection import drop_if_idle, select_features
from deeptobit.solvers._sowing import CERTIFIED, certificate, sow
from deeptobit.solvers._subspace_null import NullModel

_ONLY = np.zeros(1, dtype=np.intp)
_MAX_SOWINGS = 10


@dataclass(frozen=True)
class SubspaceFit:
    """Where the batch solver ended.

    Parameters
    ----------
    layer : Layer
    objective : float
    gradient_norm : float
        Of the whole gradient (of the least subgradient where features have left: the residual of
        the optimality conditions), relative to that by W at W = 0.
    certificate : float
        Spectral norm of the gradient by W over alpha (0 for alpha = 0), in the metric of the
        penalty: at most 1 at the optimum of the trace-norm problem.
    n_iter : int
    converged : bool
    course : tuple of Step
        One per Newton step.
    """

    layer: Layer
    objective: float
    gradient_norm: float
    certificate: float
    n_iter: int
    converged: bool
    course: tuple[Step, ...]


def solve_subspace(
    null: NullModel,
    start: Layer,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    watch: Callable[[Step], None] | None = None,
) -> SubspaceFit:
    """Minimise the objective of rows in memory; see :func:`solve_layer`."""
    problem = replace(null.problem, alpha=alpha)
    course = Course(null.gradient_scale, watch)
    return solve_layer(problem, course, start, tol=tol, max_iter=max_iter)


def solve_layer(
    problem: LayerProblem, course: Course, start: Layer, *, tol: float, max_iter: int
) -> SubspaceFit:
    """Minimise the objective from ``start`` to a relative gradient norm of ``tol``.

    A component that has vanished stays so even where it should not, because (0, 0) is stationary
    for it. While the certificate shows this, such components are sown again. The ``course`` is
    told of every Newton step.
    """
    if problem.feature_sparsity > 0.0:
        start = select_features(problem, course, start)
    fit = _descend(problem, course, start, tol, max_iter)
    for _ in range(_MAX_SOWINGS):
        if fit.certificate <= CERTIFIED:
            break
        sown = sow(problem, fit.layer)
        if sown is fit.layer:
            break
        fit = _descend(problem, course, sown, tol, max_iter)
    return fit


def solve_path(
    null: NullModel, alphas: FloatArray, *, tol: float, max_iter: int
) -> Iterator[SubspaceFit]:
    """Fits for decreasing alphas, each started from the one before.

    From ``null.alpha_max`` upwards the fit has no coefficients, whatever the feature sparsity.
    """
    layer = null.layer
    for alpha in alphas.tolist():
        fit = solve_subspace(null, layer, alpha=alpha, tol=tol, max_iter=max_iter)
        layer = fit.layer
        yield fit


def _descend(
    problem: LayerProblem, course: Course, start: Layer, tol: float, max_iter: int
) -> SubspaceFit:
    result = solve_newton(
        problem,
        problem.pack(start),
        tol=np.array([tol * course.gradient_scale]),
        max_iter=max_iter,
        watch=course.follow(problem),
    )
    layer, objective = problem.unpack(result.point), float(result.value[0])
    if problem.feature_sparsity > 0.0:
        layer = drop_if_idle(problem, layer, objective)
    return SubspaceFit(
        layer=layer,
        objective=objective,
        gradient_norm=float(result.gradient_norm[0]) / course.gradient_scale,
        certificate=certificate(problem, problem.evaluate(problem.pack(layer), _ONLY)),
        n_iter=len(course.steps),
        converged=bool(result.converged[0]),
        course=tuple(course.steps),
    )


def relative_gradient(null: NullModel, layer: Layer) -> float:
    """Norm of the gradient at a layer, balanced first, relative to that by W at W = 0."""
    problem = null.problem
    evaluation = problem.evaluate(problem.pack(problem.balance(layer)), _ONLY)
    return float(np.linalg.norm(evaluation.gradient)) / null.gradient_scale
