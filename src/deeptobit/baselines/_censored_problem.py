"""The Tobit likelihood of all tasks under a norm of their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines._penalties import Penalty
from deeptobit.baselines._proximal import descend, squared_norm
from deeptobit.baselines._solution import Solution
from deeptobit.estimators import TobitRegressor
from deeptobit.kernels import olsen_rows
from deeptobit.likelihood import Gaussian
from deeptobit.solvers import SIGMA_FLOOR
from deeptobit.targets import CensoredTargets

_MAX_ROUNDS, _MAX_STEPS, _MAX_HALVINGS = 100, 1000, 20
_MAX_THETA = 1.0 / SIGMA_FLOOR
_SHORTEST, _LONGEST = -0.5, 1.0  # relative change of 1/σ in one step


@dataclass(frozen=True, eq=False)
class CensoredProblem:
    r"""The likelihood of intervals [low, high] (N, T), and a norm of γ (D, T), in Olsen's terms.

    .. math::
        \min_{\gamma, b, \theta}\ \frac1N \sum_{it} \mathrm{nll}(low_{it}, high_{it};\,
        x_i^\top\gamma_t + b_t, \theta_t) + \alpha\,\Omega(\gamma),
        \qquad \gamma_t = \beta_t/\sigma_t,\ \theta_t = 1/\sigma_t

    is convex. Two kinds of steps take turns: accelerated proximal gradients over (γ, b), at whose
    fixed θ the likelihood is no more curved than least squares; and Newton's method over the scale
    of every task's (γ, b, θ), along which its regression line stays where it is. Together they
    stop nowhere but at the optimum: multiplying a column of γ changes Ω smoothly.

    The certificate of a solution is the largest violation of the conditions of optimality

    .. math::
        \Omega^*(\nabla_\gamma) \le \alpha,\quad \langle\nabla_\gamma, \gamma\rangle =
        -\alpha\,\Omega(\gamma),\quad \nabla_b = 0,\quad \nabla_\theta = 0,

    the first as a share of α, the others in nats per row (the second divided by T).

    Parameters
    ----------
    X : array of shape (N, D)
    low, high : arrays of shape (N, T)
    penalty : Penalty

    Notes
    -----
    A task without a value between its bounds does not determine σ: it keeps the constant of the
    null model.
    """

    X: FloatArray
    low: FloatArray
    high: FloatArray
    penalty: Penalty

    @cached_property
    def alpha_max(self) -> float:
        """The least α at which all coefficients are 0."""
        return self.penalty.dual(self._evaluate(self._start).gradient[:-1])

    def null(self) -> Solution:
        """The solution from ``alpha_max`` on: the censored normal distribution of every task."""
        return self._solution(self._start, 0.0)

    def solve(self, alpha: float, start: Solution, tol: float) -> Solution:
        """The optimum at α, from a start nearby, to a certificate of ``tol``."""
        if alpha >= self.alpha_max:
            return self.null()
        point = _Point(np.vstack([start.coef, start.intercept]), start.theta)
        at = self._evaluate(point)
        for _ in range(_MAX_ROUNDS):
            by_scale = float(np.abs(self._scale_slopes(point, at, alpha)).max())
            certificate = max(self._line_violation(point.line, at.gradient, alpha), by_scale)
            if certificate <= tol:
                break
            point = self._move_lines(point, alpha, max(0.5 * tol, 0.1 * by_scale))
            point, at = self._rescale(point, alpha)
        return self._solution(point, certificate)

    def _move_lines(self, point: _Point, alpha: float, tol: float) -> _Point:
        """Accelerated proximal gradients over (γ, b), at a fixed θ."""

        def gradient(line: FloatArray) -> FloatArray:
            return self._evaluate(_Point(line, point.theta)).gradient

        def shrink(line: FloatArray) -> FloatArray:
            return np.vstack([self.penalty.shrink(line[:-1], alpha * self._step), line[-1:]])

        def done(line: FloatArray) -> bool:
            return self._line_violation(line, gradient(line), alpha) <= tol

        line = descend(gradient, shrink, self._step, point.line, done, _MAX_STEPS)
        return _Point(line, point.theta)

    def _rescale(self, point: _Point, alpha: float) -> tuple[_Point, _Evaluation]:
        """A Newton step over the scales of all tasks, halved until the objective falls."""
        at = self._evaluate(point)
        slopes = self._scale_slopes(point, at, alpha)
        curvature = np.where(at.curvature_by_scale > 0.0, at.curvature_by_scale, 1.0)
        longest = np.minimum(_LONGEST, _MAX_THETA / point.theta - 1.0)
        change = np.clip(-slopes / curvature, _SHORTEST, longest)
        before = at.nll + alpha * self.penalty.value(point.line[:-1])
        for _ in range(_MAX_HALVINGS):
            moved = _Point(point.line * (1.0 + change), point.theta * (1.0 + change))
            there = self._evaluate(moved)
            if there.nll + alpha * self.penalty.value(moved.line[:-1]) <= before:
                return moved, there
            change = 0.5 * change
        return point, at

    def _line_violation(self, line: FloatArray, gradient: FloatArray, alpha: float) -> float:
        """How far (γ, b) are from their optimum at a fixed θ."""
        coef, pull = line[:-1], gradient[:-1]
        excess = self.penalty.dual(pull) / alpha - 1.0
        misaligned = abs(alpha * self.penalty.value(coef) + float(np.vdot(pull, coef)))
        by_intercept = float(np.abs(gradient[-1]).max())
        return float(max(excess, misaligned / coef.shape[1], by_intercept))

    def _scale_slopes(self, point: _Point, at: _Evaluation, alpha: float) -> FloatArray:
        """Derivatives of the objective by the logarithms of the tasks' scales, (T,)."""
        slopes = at.slope_by_scale + alpha * self.penalty.shares(point.line[:-1])
        return np.where((point.theta >= _MAX_THETA) & (slopes < 0.0), 0.0, slopes)

    def _evaluate(self, point: _Point) -> _Evaluation:
        weight = np.full(len(self.X), 1.0 / len(self.X))
        scores = self._design @ point.line
        rows = olsen_rows(Gaussian(), self._low, self._high, scores, point.theta, weight)
        nll, slope, curvature = rows.sums
        return _Evaluation(
            float(nll.sum()), self._design.T @ rows.pull, slope, np.maximum(curvature - slope, 0.0)
        )

    def _solution(self, point: _Point, certificate: float) -> Solution:
        return Solution(point.line[:-1], point.line[-1], point.theta, certificate)

    @cached_property
    def _start(self) -> _Point:
        """γ = 0, with the best intercepts and scales."""
        targets = CensoredTargets.from_intervals(self.low, self.high)
        # One feature that is 0, under a penalty: nothing but intercepts and scales is left.
        null = TobitRegressor(alpha=1.0).fit(np.zeros((len(self.X), 1)), targets)
        theta = 1.0 / null.sigma_
        line = np.zeros((self.X.shape[1] + 1, len(theta)))
        line[-1] = null.intercept_ * theta
        return _Point(line, theta)

    @cached_property
    def _design(self) -> FloatArray:
        return np.column_stack([self.X, np.ones(len(self.X))])

    @cached_property
    def _step(self) -> float:
        return len(self.X) / squared_norm(self._design)

    @cached_property
    def _low(self) -> FloatArray:
        return np.where((self.low == self.high).any(axis=0), self.low, np.nan)

    @cached_property
    def _high(self) -> FloatArray:
        return np.where((self.low == self.high).any(axis=0), self.high, np.nan)


class _Point(NamedTuple):
    """(γ, b) of shape (D + 1, T), and θ of shape (T,)."""

    line: FloatArray
    theta: FloatArray


class _Evaluation(NamedTuple):
    """Mean nll of a row, its gradient by (γ, b), and derivatives by the scales of (γ, b, θ)."""

    nll: float
    gradient: FloatArray
    slope_by_scale: FloatArray
    curvature_by_scale: FloatArray
