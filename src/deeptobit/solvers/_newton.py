"""Newton's method for many small smooth problems at once, one per column.

The problems share their data, so a Hessian product for all columns is two matrix products: each
Newton system is solved by conjugate gradients on all columns together, and columns leave as they
converge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.solvers._conjugate_gradient import newton_direction

_ARMIJO = 1e-4
_SHORTEST_STEP = 2.0**-40
_VALUE_NOISE = 1e-9  # relative rounding error of a sum over many rows of a well-fitted task


class Evaluation(Protocol):
    """What the solver needs to know of a point; columns are problems."""

    @property
    def value(self) -> FloatArray:
        """(A,)."""
        ...

    @property
    def gradient(self) -> FloatArray:
        """(P, A)."""
        ...

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """(P, A) to (P, A)."""
        ...

    def precondition(self, residual: FloatArray) -> FloatArray:
        """M⁻¹r for some positive definite M near the Hessian, (P, A)."""
        ...


class Problem(Protocol):
    """Separate smooth problems, one per column of the point."""

    def evaluate(self, point: FloatArray, tasks: NDArray[np.intp]) -> Evaluation:
        """Value, gradient and curvature of the problems ``tasks`` at their columns."""
        ...

    def value(self, point: FloatArray, tasks: NDArray[np.intp]) -> FloatArray:
        """Value alone."""
        ...

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """The feasible point that a step along ``direction`` leads to."""
        ...

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The longest step along ``direction`` worth trying, at most 1."""
        ...


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
        Smallest curvature met on the way; near 0 where a direction is flat.
    """

    point: FloatArray
    value: FloatArray
    gradient_norm: FloatArray
    n_iter: NDArray[np.intp]
    converged: BoolArray
    least_curvature: FloatArray


Watch = Callable[[FloatArray, FloatArray, FloatArray], None]


def solve_newton(
    problem: Problem,
    start: FloatArray,
    *,
    tol: FloatArray,
    max_iter: int,
    watch: Watch | None = None,
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
        if watch is not None:
            watch(point, value, norm)
        going = (norm[active] > tol[active]) & (n_iter[active] < max_iter) & ~stuck[active]
        if not going.any():
            break
        direction, curvature = newton_direction(here, going, 0.3 * tol[active])
        moving = active[going]
        least_curvature[moving] = np.minimum(least_curvature[moving], curvature[going])
        direction, gradient = direction[:, going], here.gradient[:, going]
        del here  # its curvature is as large as the data, and the next point needs the room
        n_iter[moving] += 1
        point[:, moving], here, stuck[moving] = _line_search(
            problem, point[:, moving], value[moving], gradient, direction, moving
        )
        active = moving
    return NewtonResult(point, value, norm, n_iter, norm <= tol, least_curvature)


def _line_search(
    problem: Problem,
    point: FloatArray,
    value: FloatArray,
    gradient: FloatArray,
    direction: FloatArray,
    tasks: NDArray[np.intp],
) -> tuple[FloatArray, Evaluation, BoolArray]:
    """Take the full step where it descends enough, and halve it for the columns where not."""
    step = problem.longest_step(direction)
    slope = (gradient * direction).sum(axis=0)
    slack = _VALUE_NOISE * np.maximum(np.abs(value), 1.0)
    trial = problem.move(point, direction, step)
    there = problem.evaluate(trial, tasks)
    # Near the optimum the decrease drowns in the rounding of the value, but not of the gradient.
    flatter = np.linalg.norm(there.gradient, axis=0) < 0.5 * np.linalg.norm(gradient, axis=0)
    level = there.value <= value + slack
    short = _too_high(there.value, value, step, slope) & ~(flatter & level)
    if not short.any():
        return trial, there, short
    while short.any():
        step[short] *= 0.5
        ended = step < _SHORTEST_STEP
        step[ended] = 0.0
        trial[:, short] = problem.move(point[:, short], direction[:, short], step[short])
        short[ended] = False
        if not short.any():
            break
        again = problem.value(trial[:, short], tasks[short])
        short[short] = _too_high(again, value[short], step[short], slope[short])
    return trial, problem.evaluate(trial, tasks), np.asarray(step == 0.0)


def _too_high(
    trial: FloatArray, value: FloatArray, step: FloatArray, slope: FloatArray
) -> BoolArray:
    """Whether the value has not fallen enough; NaN counts as too high."""
    return ~(trial <= value + _ARMIJO * step * slope)
