"""One layer to its optimum: Newton on everything at once, from any start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.newton import Course, Step, solve_newton
from deeptobit.layer.parameters import Layer
from deeptobit.layer.problem import LayerProblem
from deeptobit.layer.start import CERTIFIED, NullModel, certificate, sow

# Which features stay: a smooth way to the support of the group penalty.

_LEVELS = (1.0, 0.2, 0.04, 0.008, 0.002)  # of the mean size of a column of V
_MAX_ITER = 30  # per level
_ROUNDING = 1e-12


def select_features(problem: LayerProblem, course: Course, layer: Layer) -> Layer:
    r"""Go near the optimum with norms smoothed less and less, and drop what has become small.

    Newton's method at the kinks lets dozens of correlated features leave and enter by turns. With
    :math:`\sqrt{\|V_d\|^2 + \epsilon^2}` in place of each norm there is no kink, all features are
    decided on together, and what is left to the exact problem is the choice among the few whose
    columns are about as large as the last ε.
    """
    unit = float(np.linalg.norm(layer.Z, axis=1).mean())
    for level in _LEVELS if unit > 0.0 else ():
        smooth = replace(problem, smoothing=level * unit)
        result = solve_newton(
            smooth,
            smooth.pack(layer),
            tol=np.array([max(0.01 * level, 1e-4) * course.gradient_scale]),
            max_iter=_MAX_ITER,
            watch=course.follow(smooth),
        )
        layer = smooth.unpack(result.point)
    sizes = np.linalg.norm(layer.Z, axis=1)[:, None]
    return layer._replace(Z=np.where(sizes < _LEVELS[-1] * unit, 0.0, layer.Z))


def drop_if_idle(problem: LayerProblem, layer: Layer, objective: float) -> Layer:
    """The layer without coefficients if that is no worse: on the way to 0 they never arrive."""
    empty = layer._replace(U=np.zeros_like(layer.U), Z=np.zeros_like(layer.Z))
    value = float(problem.value(problem.pack(empty), np.zeros(1, dtype=np.intp))[0])
    return empty if value <= objective + _ROUNDING * abs(objective) else layer


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
