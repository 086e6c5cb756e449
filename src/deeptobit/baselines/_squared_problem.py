"""Least squares of all tasks under a norm of their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines._moments import Moments, moments
from deeptobit.baselines._penalties import Penalty
from deeptobit.baselines._proximal import descend
from deeptobit.baselines._solution import Solution

_MAX_STEPS = 5000


@dataclass(frozen=True, eq=False)
class SquaredProblem:
    r"""Squared errors of the known entries of Y (N, T), and a norm of the coefficients W (D, T).

    .. math::
        \min_{W, b}\ \frac{1}{2N}\sum_{(i,t)\,\text{known}} (y_{it} - x_i^\top w_t - b_t)^2
        + \alpha\,\Omega(W)

    Intercepts vanish once X and Y are centred on the rows in which a task is known. The certificate
    of a solution is its duality gap, as a share of the objective at W = 0: with residuals r and
    their covariances C = Xᵀr/N with the features, every s with sΩ*(C) ≤ α proves that no objective
    is below :math:`(s\langle y, r\rangle - s^2\|r\|^2/2)/N`.

    Parameters
    ----------
    X : array of shape (N, D)
    Y : array of shape (N, T)
        NaN where missing.
    penalty : Penalty

    Examples
    --------
    >>> from deeptobit.baselines._penalties import TraceNorm
    >>> X = np.array([[1.0], [-1.0]])
    >>> problem = SquaredProblem(X, 3.0 * X + 1.0, TraceNorm())
    >>> found = problem.solve(1.0, problem.null(), 1e-12)
    >>> round(problem.alpha_max, 6), found.coef.round(6), found.intercept
    (3.0, array([[2.]]), array([1.]))
    """

    X: FloatArray
    Y: FloatArray
    penalty: Penalty

    @cached_property
    def alpha_max(self) -> float:
        """The least α at which all coefficients are 0."""
        return self.penalty.dual(self._cross)

    def null(self) -> Solution:
        """The solution from ``alpha_max`` on."""
        return self._solution(np.zeros_like(self._cross), 0.0)

    def solve(self, alpha: float, start: Solution, tol: float) -> Solution:
        """The optimum at α, from a start nearby, to a relative duality gap of ``tol``."""
        if alpha >= self.alpha_max:
            return self.null()
        step = 1.0 / max(part.curvature for part in self._parts)
        W = descend(
            self._gradient,
            lambda W: self.penalty.shrink(W, alpha * step),
            step,
            start.coef,
            lambda W: self._gap(W, alpha) <= tol,
            _MAX_STEPS,
        )
        return self._solution(W, self._gap(W, alpha))

    def _gap(self, W: FloatArray, alpha: float) -> float:
        pull = self._gradient(W)
        fitted = float(np.vdot(self._cross, W))
        squares = self._total - 2.0 * fitted + float(np.vdot(W, pull + self._cross))
        along = self._total - fitted
        feasible = alpha / max(self.penalty.dual(pull), np.finfo(np.float64).tiny)
        scale = min(feasible, along / max(squares, np.finfo(np.float64).tiny))
        primal = 0.5 * squares + alpha * self.penalty.value(W)
        dual = scale * along - 0.5 * scale**2 * squares
        return 2.0 * (primal - dual) / self._total

    def _gradient(self, W: FloatArray) -> FloatArray:
        pull = -self._cross
        for part in self._parts:
            pull[:, part.tasks] += part.times(W[:, part.tasks])
        return pull

    def _solution(self, W: FloatArray, certificate: float) -> Solution:
        intercept = np.empty(W.shape[1])
        for part in self._parts:
            intercept[part.tasks] = part.mean_y - part.mean_x @ W[:, part.tasks]
        return Solution(W, intercept, np.ones(W.shape[1]), certificate)

    @cached_property
    def _parts(self) -> list[Moments]:
        return list(moments(self.X, self.Y))

    @cached_property
    def _cross(self) -> FloatArray:
        cross = np.empty((self.X.shape[1], self.Y.shape[1]))
        for part in self._parts:
            cross[:, part.tasks] = part.cross
        return cross

    @cached_property
    def _total(self) -> float:
        return sum(part.total for part in self._parts)
