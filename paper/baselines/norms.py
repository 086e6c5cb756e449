"""Norms of a coefficient matrix that make tasks share: what an optimiser needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from deeptobit import CensoredTargets, TobitRegressor
from deeptobit.likelihood import Gaussian, evaluate
from paper.arrays import FloatArray, Rows

SIGMA_FLOOR = 1e-6  # in standard units: reached when a task is fitted exactly


class Penalty(Protocol):
    """A norm Ω of coefficients W, features by tasks (D, T)."""

    def value(self, W: FloatArray) -> float:
        """Ω(W)."""

    def dual(self, G: FloatArray) -> float:
        """Ω*(G), the largest ⟨G, W⟩ over Ω(W) ≤ 1."""

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        """The proximal operator: minimises ½‖Z − W‖² + amount · Ω(Z)."""

    def shares(self, W: FloatArray) -> FloatArray:
        """Derivatives of Ω by the logarithms of the columns' scales, (T,); their sum is Ω(W)."""


class TraceNorm:
    """The sum of singular values: few directions serve all tasks.

    Examples
    --------
    >>> W = np.diag([3.0, 1.0])
    >>> TraceNorm().value(W), TraceNorm().dual(W), TraceNorm().shrink(W, 2.0).tolist()
    (4.0, 3.0, [[1.0, 0.0], [0.0, 0.0]])
    """

    def value(self, W: FloatArray) -> float:
        """Ω(W)."""
        return float(np.linalg.svd(W, compute_uv=False).sum())

    def dual(self, G: FloatArray) -> float:
        """Ω*(G)."""
        return float(np.linalg.svd(G, compute_uv=False)[0])

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        """The proximal operator."""
        if W.shape[0] < W.shape[1]:
            return self.shrink(W.T, amount).T
        # Singular values below the threshold need no digits, so those of WᵀW are accurate enough.
        sizes, right = _singular(W)
        kept = sizes > amount
        right, factor = right[:, kept], 1.0 - amount / sizes[kept]
        return np.asarray(W @ (right * factor) @ right.T)

    def shares(self, W: FloatArray) -> FloatArray:
        """Derivatives by the logarithms of the columns' scales."""
        sizes, right = _singular(W)
        return np.asarray(np.square(right) @ sizes)


class GroupNorm:
    """The ℓ2,1 norm, the sum of the rows' lengths: a feature matters to all tasks or to none.

    Examples
    --------
    >>> W = np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> GroupNorm().value(W), GroupNorm().dual(W), GroupNorm().shrink(W, 2.5).tolist()
    (6.0, 5.0, [[1.5, 2.0], [0.0, 0.0]])
    """

    def value(self, W: FloatArray) -> float:
        """Ω(W)."""
        return float(np.linalg.norm(W, axis=1).sum())

    def dual(self, G: FloatArray) -> float:
        """Ω*(G)."""
        return float(np.linalg.norm(G, axis=1).max())

    def shrink(self, W: FloatArray, amount: float) -> FloatArray:
        """The proximal operator."""
        lengths = np.linalg.norm(W, axis=1, keepdims=True)
        return np.asarray(W * (1.0 - amount / np.maximum(lengths, amount)))

    def shares(self, W: FloatArray) -> FloatArray:
        """Derivatives by the logarithms of the columns' scales."""
        lengths = np.linalg.norm(W, axis=1)
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        return np.asarray(inverse @ np.square(W))


def _singular(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Singular values and right singular vectors, from the eigenvectors of WᵀW."""
    squares, right = np.linalg.eigh(W.T @ W)
    return np.sqrt(np.maximum(squares, 0.0)), right


# What a problem of many tasks is solved by.


class Solution(NamedTuple):
    """Coefficients of many tasks, features by tasks, in the units of their problem.

    Attributes
    ----------
    coef : array of shape (D, T)
        W, or γ = W/σ where σ is part of the problem.
    intercept : array of shape (T,)
        Likewise.
    theta : array of shape (T,)
        1/σ; 1 where σ is not part of the problem.
    certificate : float
        How far it may be from the optimum, as the problem measures it.
    """

    coef: FloatArray
    intercept: FloatArray
    theta: FloatArray
    certificate: float

    def latent(self, X: FloatArray) -> FloatArray:
        """Scores (N, T) before censoring."""
        return np.asarray((X @ self.coef + self.intercept) / self.theta)


class Problem(Protocol):
    """A loss of many tasks with a norm on their coefficients."""

    @property
    def alpha_max(self) -> float:
        """The least strength of the norm at which all coefficients are 0."""

    def null(self) -> Solution:
        """The solution from ``alpha_max`` on."""

    def solve(self, alpha: float, start: Solution, tol: float) -> Solution:
        """The optimum at α, from a start nearby, to a certificate of ``tol``."""


# Accelerated proximal gradients: a smooth convex function and a norm.

_CHECK_EVERY = 5


def descend(
    gradient: Callable[[FloatArray], FloatArray],
    shrink: Callable[[FloatArray], FloatArray],
    step: float,
    start: FloatArray,
    done: Callable[[FloatArray], bool],
    max_iter: int,
) -> FloatArray:
    r"""Minimise f + Ω from ``start`` on, until it is ``done``.

    .. math::
        W_{k+1} = \mathrm{shrink}(Z_k - s\,\nabla f(Z_k)),\qquad
        Z_{k+1} = W_{k+1} + \frac{t_k - 1}{t_{k+1}}(W_{k+1} - W_k)

    (Beck and Teboulle 2009), with momentum dropped whenever it points uphill (O'Donoghue and Candès
    2015), which makes convergence linear where f is strongly convex.

    Parameters
    ----------
    gradient, shrink : callables
        ∇f, and the proximal operator of s·Ω.
    step : float
        s, at most the inverse of the Lipschitz constant of ∇f.
    start : array
    done : callable
        Whether a point is good enough; asked at first and at every fifth step.
    max_iter : int

    Examples
    --------
    >>> centre = np.array([3.0, 0.5])
    >>> soft = lambda W: np.sign(W) * np.maximum(np.abs(W) - 0.5, 0.0)
    >>> descend(lambda W: W - centre, lambda W: soft(W), 0.5, np.zeros(2),
    ...         lambda W: False, 50).round(6)
    array([2., 0.])
    """
    W = ahead = start
    momentum = 1.0
    for count in range(max_iter):
        if count % _CHECK_EVERY == 0 and done(W):
            break
        new = shrink(ahead - step * gradient(ahead))
        if np.vdot(ahead - new, new - W) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - W)
        W, momentum = new, following
    return W


def squared_norm(matrix: FloatArray) -> float:
    """The square of the largest singular value, from the smaller of AᵀA and AAᵀ.

    Examples
    --------
    >>> round(squared_norm(np.array([[3.0, 4.0]])), 6)
    25.0
    """
    smaller = matrix if matrix.shape[0] < matrix.shape[1] else matrix.T
    return float(np.linalg.eigvalsh(smaller @ smaller.T).max(initial=0.0))


# Second moments of features and outcomes, for tasks that are known in different rows.


@dataclass(frozen=True, eq=False)
class Moments:
    """Tasks that are known in the same rows, and the moments of these rows.

    Parameters
    ----------
    tasks : array of shape (A,)
    mean_x, mean_y : arrays of shapes (D,) and (A,)
    root : array of shape (min(n, D), D)
        A square root of the features' second moments: rootᵀ root = XᵀX/N, centred.
    cross : array of shape (D, A)
        XᵀY/N, centred.
    total : float
        ‖Y‖²/N, centred.
    """

    tasks: Rows
    mean_x: FloatArray
    mean_y: FloatArray
    root: FloatArray
    cross: FloatArray
    total: float

    @property
    def curvature(self) -> float:
        """The largest second moment in any direction."""
        return squared_norm(self.root)

    def times(self, W: FloatArray) -> FloatArray:
        """XᵀXW/N for coefficients W (D, A)."""
        return np.asarray(self.root.T @ (self.root @ W))


def moments(X: FloatArray, Y: FloatArray) -> Iterator[Moments]:
    """Moments of tasks by the rows in which they are known, each divided by all N rows.

    Examples
    --------
    >>> X, Y = np.array([[1.0], [3.0], [8.0]]), np.array([[0.0], [2.0], [np.nan]])
    >>> found = next(moments(X, Y))
    >>> found.mean_x, found.cross.round(4), round(found.curvature, 4)
    (array([2.]), array([[0.6667]]), 0.6667)
    """
    patterns, member = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for number, known in enumerate(patterns.T):
        tasks = np.flatnonzero(member == number)
        share, outcomes = X[known], Y[np.ix_(known, tasks)]
        count = max(len(share), 1)
        mean_x, mean_y = share.sum(axis=0) / count, outcomes.sum(axis=0) / count
        centred, deviations = (share - mean_x) / np.sqrt(len(X)), outcomes - mean_y
        root = np.asarray(np.linalg.qr(centred, "r")) if len(share) > X.shape[1] else centred
        cross = centred.T @ deviations / np.sqrt(len(X))
        total = float(np.square(deviations).sum()) / len(X)
        yield Moments(tasks, mean_x, mean_y, root, cross, total)


# Least squares of all tasks under a norm of their coefficients.

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


# The Tobit likelihood of all tasks under a norm of their coefficients.

_MAX_ROUNDS, _MAX_LINE_STEPS, _MAX_HALVINGS = 100, 1000, 20
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

        line = descend(gradient, shrink, self._step, point.line, done, _MAX_LINE_STEPS)
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
        sigma = 1.0 / point.theta
        latent = (self._design @ point.line) * sigma
        at = evaluate(Gaussian(), self._low, self._high, latent, sigma)
        # Multiplying (γ, b, θ) leaves the latent score where it is and divides σ.
        slope = -at.log_sigma.mean(axis=0)
        curvature = at.log_sigma_log_sigma.mean(axis=0) - slope
        gradient = self._design.T @ (at.latent * sigma) / len(self.X)
        nll = float(at.nll.sum()) / len(self.X)
        return _Evaluation(nll, gradient, slope, np.maximum(curvature, 0.0))

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
