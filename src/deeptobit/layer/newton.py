"""Newton's method for many smooth problems at once, one per column of parameters.

:func:`solve_newton` is for problems with many parameters that share their data: a Hessian product
for all columns is then two matrix products, each Newton system is solved by conjugate gradients on
all columns together, and columns leave as they converge. :func:`minimize_each` is for problems of a
handful of parameters each, whose Hessians are small matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray

Tasks = NDArray[np.intp]
_ARMIJO = 1e-4
_SHORTEST_STEP = 2.0**-40
_VALUE_NOISE = 1e-9  # relative rounding error of a sum over many rows of a well-fitted task
_MAX_PRODUCTS = 200
_NO_CURVATURE = 1e-12  # relative curvature below which a step length means nothing


class NewtonEvaluation(Protocol):
    """What the solver needs to know of a point; columns are problems."""

    @property
    def value(self) -> FloatArray:
        """(A,)."""

    @property
    def gradient(self) -> FloatArray:
        """(P, A)."""

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """(P, A) to (P, A)."""

    def precondition(self, residual: FloatArray) -> FloatArray:
        """M⁻¹r for some positive definite M near the Hessian, (P, A)."""


class Problem(Protocol):
    """Separate smooth problems, one per column of the point."""

    def evaluate(self, point: FloatArray, tasks: Tasks) -> NewtonEvaluation:
        """Value, gradient and curvature of the problems ``tasks`` at their columns."""

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """The feasible point that a step along ``direction`` leads to."""

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The longest step along ``direction`` worth trying, at most 1."""


@dataclass(frozen=True)
class NewtonResult:
    """Where each problem ended.

    Parameters
    ----------
    point : array of shape (P, T)
    value : array of shape (T,)
    gradient_norm : array of shape (T,)
        Of the gradient in the preconditioned metric, before the last step for which it was needed.
    n_iter : int array of shape (T,)
    converged : bool array of shape (T,)
    least_curvature : array of shape (T,)
        Smallest curvature met on the way; near 0 where the objective hardly varies.
    """

    point: FloatArray
    value: FloatArray
    gradient_norm: FloatArray
    n_iter: NDArray[np.intp]
    converged: BoolArray
    least_curvature: FloatArray


def solve_newton(
    problem: Problem,
    start: FloatArray,
    *,
    tol: FloatArray,
    max_iter: int,
    watch: Callable[[FloatArray, FloatArray, FloatArray], None] = lambda *at: None,
) -> NewtonResult:
    """Minimise every column from ``start`` until its gradient norm is at most its ``tol``.

    Parameters
    ----------
    problem : Problem
    start : array of shape (P, T)
    tol : array of shape (T,)
    max_iter : int
    watch : function, optional
        Called with point (P, T), value (T,) and gradient norm (T,) at the start and after a step.
    """
    n_tasks = start.shape[1]
    point = start.copy()
    value, norm = np.empty(n_tasks), np.empty(n_tasks)
    least_curvature = np.full(n_tasks, np.inf)
    n_iter = np.zeros(n_tasks, dtype=np.intp)
    stuck = np.zeros(n_tasks, dtype=np.bool_)
    active = np.arange(n_tasks)
    here = problem.evaluate(point, active)
    while True:
        value[active] = here.value
        norm[active] = np.linalg.norm(here.gradient, axis=0)
        watch(point, value, norm)
        going = (norm[active] > tol[active]) & (n_iter[active] < max_iter) & ~stuck[active]
        if not going.any():
            break
        direction, curvature = newton_direction(here, going, 0.3 * tol[active])
        moving = active[going]
        least_curvature[moving] = np.minimum(least_curvature[moving], curvature[going])
        direction, gradient = direction[:, going], here.gradient[:, going]
        del here  # its curvature is as large as the data, and the next point needs the memory
        n_iter[moving] += 1
        point[:, moving], here, stuck[moving] = _line_search(
            problem, point[:, moving], value[moving], gradient, direction, moving
        )
        active = moving
    return NewtonResult(point, value, norm, n_iter, norm <= tol, least_curvature)


def newton_direction(
    system: NewtonEvaluation, wanted: BoolArray, enough: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Solve Hd = −g by preconditioned conjugate gradients, precisely enough for fast convergence.

    A column stops when its residual is below :math:`\min(0.1, \sqrt{\|g\|})\,\|g\|`, or below what
    is ``enough``, or where it meets a direction without positive curvature (it then keeps what it
    has: a descent direction).

    Parameters
    ----------
    system : NewtonEvaluation
    wanted : bool array of shape (A,)
        Columns to solve; the others get a zero direction.
    enough : array of shape (A,)
        Residual norm below which further work would be wasted.

    Returns
    -------
    direction : array of shape (P, A)
    least_curvature : array of shape (A,)
        Smallest pᵀHp / pᵀp over the search directions p.
    """
    residual = -system.gradient
    size = np.linalg.norm(residual, axis=0)
    goal = np.maximum(np.minimum(0.1, np.sqrt(size)) * size, enough)
    direction = np.zeros_like(residual)
    search, in_metric = system.precondition(residual), residual.copy()  # p and Mp
    energy = (residual * search).sum(axis=0)
    least = np.full(size.shape, np.inf)
    going = wanted & (size > 0.0)
    for product_count in range(_MAX_PRODUCTS):
        if not going.any():
            break
        product = system.hessian_product(search)
        curvature = (search * product).sum(axis=0)
        metric = (search * in_metric).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = curvature / np.square(search).sum(axis=0)
            least = np.where(going, np.minimum(least, slope), least)
            curved = curvature > _NO_CURVATURE * metric
            length = np.where(going & curved, energy / curvature, 0.0)
        if product_count == 0:
            direction = np.where(going & ~curved, search, direction)
        going &= curved
        direction += length * search
        residual -= length * product
        going &= np.linalg.norm(residual, axis=0) > goal
        scaled = system.precondition(residual)
        fresh = (residual * scaled).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(going, fresh / energy, 0.0)
        search = np.where(going, scaled, 0.0) + keep * search
        in_metric = np.where(going, residual, 0.0) + keep * in_metric
        energy = fresh
    return direction, least


def _line_search(
    problem: Problem,
    point: FloatArray,
    value: FloatArray,
    gradient: FloatArray,
    direction: FloatArray,
    tasks: Tasks,
) -> tuple[FloatArray, NewtonEvaluation, BoolArray]:
    """Take the full step where it descends enough, and halve it for the columns where not."""
    step = problem.longest_step(direction)
    slope = (gradient * direction).sum(axis=0)
    slack = _VALUE_NOISE * np.maximum(np.abs(value), 1.0)
    trial = problem.move(point, direction, step)
    there = problem.evaluate(trial, tasks)
    # Near the optimum the decrease drowns in the rounding of the value, but not of the gradient.
    closer = np.linalg.norm(there.gradient, axis=0) < 0.5 * np.linalg.norm(gradient, axis=0)
    no_higher = there.value <= value + slack
    # NaN counts as too high.
    short = ~(there.value <= value + _ARMIJO * step * slope) & ~(closer & no_higher)
    if not short.any():
        return trial, there, short
    del there
    while short.any():
        step[short] *= 0.5
        ended = step < _SHORTEST_STEP
        step[ended] = 0.0
        trial[:, short] = problem.move(point[:, short], direction[:, short], step[short])
        short[ended] = False
        if not short.any():
            break
        again = problem.evaluate(trial[:, short], tasks[short]).value
        short[short] = ~(again <= (value + _ARMIJO * step * slope)[short])
    return trial, problem.evaluate(trial, tasks), np.asarray(step == 0.0)


# Problems of a handful of parameters each.

_MAX_HALVINGS = 30
_ROUNDING = 1e-12  # of an objective that is a sum over rows

# Values (T,), and a function for gradients (P, T) and Hessians (P, P, T).
Objective = tuple[FloatArray, Callable[[], tuple[FloatArray, FloatArray]]]


def minimize_each(
    objective: Callable[[FloatArray], Objective],
    start: FloatArray,
    *,
    longest: float,
    max_steps: int,
    tol: float = 1e-8,
) -> tuple[FloatArray, FloatArray]:
    """Minimise T smooth functions of P parameters each, together.

    Directions of negative curvature count with its size. No parameter moves by more than
    ``longest`` in a step, and a step that would raise the value is halved. The end is where no
    parameter moves by more than ``tol``.

    Returns
    -------
    point : array of shape (P, T)
    value : array of shape (T,)

    Examples
    --------
    >>> def objective(x):
    ...     value = x[0] ** 4 - 2.0 * x[0] ** 2
    ...     return value, lambda: (4.0 * (x**3 - x), 12.0 * x[None] ** 2 - 4.0)
    >>> minimize_each(objective, np.array([[0.1, 3.0, -0.5]]), longest=1.0, max_steps=50)
    (array([[ 1.,  1., -1.]]), array([-1., -1., -1.]))
    """
    point = start
    value, derivatives = objective(point)
    for _ in range(max_steps):
        gradient, hessian = derivatives()
        step = -np.einsum("ijt,jt->it", positive_inverse(hessian), gradient)
        step *= np.minimum(1.0, longest / np.maximum(np.abs(step).max(axis=0), 1e-300))
        highest = value + _ROUNDING * np.abs(value)
        for _ in range(_MAX_HALVINGS):
            value, derivatives = objective(point + step)
            rises = ~(value <= highest)
            if not rises.any():
                break
            step = np.where(rises, 0.5 * step, step)
        else:
            step = np.where(rises, 0.0, step)
            value, derivatives = objective(point + step)
        point = point + step
        if np.abs(step).max(initial=0.0) < tol:
            break
    return point, value


def positive_inverse(hessian: FloatArray) -> FloatArray:
    """Inverses of symmetric matrices (P, P, T), with the sizes of their eigenvalues, none 0."""
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    return np.asarray((axes / values[:, None] @ axes.transpose(0, 2, 1)).transpose(1, 2, 0))
