"""Maximum of the evidence: a start, L-BFGS, factors that outcomes share, and the ridge."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from deeptobit.arrays import FloatArray, IntArray
from deeptobit.mixed.evidence import Effects, MixedProblem, Point, Sites
from deeptobit.targets import recorded_values

SIGMA_FLOOR = 1e-6  # in units of the outcome's own standard deviation
_MOST_SHARED = 0.7  # of a variance, at the start
_SECANTS = 30
_RESTARTS, _ROUNDING = 5, 1e-10
_FOLDS, _LOOSE = 4, 1e-4
PATH = tuple(10.0 ** np.arange(1.0, -3.5, -0.5))
"""Ridges that are tried, in turn."""


@dataclass(frozen=True)
class Solution:
    """Where the solver ended, with the sites of the entries there."""

    problem: MixedProblem
    point: Point
    sites: Sites
    value: float
    gradient_norm: float
    n_iter: int
    converged: bool

    @classmethod
    def empty(cls, problem: MixedProblem) -> "Solution":
        """That of a problem without outcomes."""
        point = problem.unpack(np.zeros(0))
        return cls(problem, point, problem.sites(), 0.0, 0.0, 0, True)

    @property
    def log_likelihood(self) -> float:
        """Log evidence of all people, without penalties."""
        visits = self.problem.visits
        return float(visits.weight @ self.problem.evidence(self.point, self.sites).log_z)


def start(problem: MixedProblem) -> Point:
    """Least squares for the recorded values, and half of what is left as variance of people."""
    visits, (_, n_tasks, q) = problem.visits, problem.shape
    values = recorded_values(visits.low, visits.high)
    known, row_weight = ~np.isnan(values), visits.of_rows(visits.weight)[:, None]
    share = known * row_weight
    total = share.sum(axis=0)
    values = np.where(known, values, 0.0)
    intercept = (share * values).sum(axis=0) / total * problem.fit_intercept
    coef = np.zeros((n_tasks, len(problem.ridge)))
    for _ in range(3):  # a few steps of the proximal point are a start, not a solution
        rest = share * (values - intercept - problem.features @ coef.T)
        coef += (rest.T @ problem.features / total[:, None]) / (1.0 + problem.ridge)
        intercept = intercept + rest.sum(axis=0) / total * problem.fit_intercept
    rest = known * (values - intercept - problem.features @ coef.T)
    variance = (row_weight * rest**2).sum(axis=0) / total
    sd = np.sqrt(np.maximum(variance, 1e-4))
    own = np.zeros((n_tasks, q, q))
    for effect, size in enumerate((0.7, 0.3)[:q]):
        own[:, effect, effect] = size * sd
    sigma = np.where(problem.free_sigma, (0.7 if q else 1.0) * sd, 1.0)
    shared, visit = np.zeros((n_tasks, q, 0)), np.zeros((n_tasks, 0))
    return Point(coef, intercept, Effects(own, shared, visit, sigma))


def solve(
    problem: MixedProblem,
    point: Point,
    sites: Sites | None = None,
    *,
    tol: float,
    max_iter: int,
    watch: Callable[[str], None] | None = None,
    hold_effects: bool = False,
) -> Solution:
    """Minimise from a point by L-BFGS; sites are kept from one evaluation to the next.

    With ``hold_effects`` random effects and σ stay as they are.
    """
    sites = problem.sites() if sites is None else sites.copy()
    n_evaluations = 0

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal n_evaluations
        found, gradient, _ = problem.evaluate(theta, sites)
        n_evaluations += 1
        if watch is not None:
            watch(f"evaluation {n_evaluations}, objective {found:.6f}")
        return found, gradient

    theta = problem.pack(point)
    bounds: list[Any] = [(None, None)] * len(theta)
    n_tasks = problem.shape[1]
    for task, free in enumerate(np.broadcast_to(problem.free_sigma, n_tasks)):
        ends = (np.log(SIGMA_FLOOR), np.log(1e3)) if free else (0.0, 0.0)
        bounds[len(theta) - n_tasks + task] = ends
    if hold_effects:
        first = len(theta) - problem.n_effects
        bounds[first:] = [(value, value) for value in theta[first:]]
    lowest = np.array([-np.inf if low is None else low for low, _ in bounds])
    options: Any = {"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": 0.0, "gtol": tol}
    options["maxcor"] = _SECANTS
    n_iter, before, settled = 0, np.inf, False
    for _ in range(_RESTARTS):
        result = minimize(
            objective, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        theta, n_iter = result.x, n_iter + int(result.nit)
        found, gradient, unconverged = problem.evaluate(theta, sites)
        held = (theta <= lowest) & ((gradient > 0.0) | hold_effects)
        norm = float(np.abs(np.where(held, 0.0, gradient)).max(initial=0.0))
        # A line search that finds no lower value ends too early, or where only rounding is left.
        settled = norm <= tol or before - found <= _ROUNDING * max(1.0, abs(found))
        if settled or n_iter >= max_iter:
            break
        before = found
    point = problem.unpack(theta)
    converged = bool(settled and not unconverged)
    return Solution(problem, point, sites, found, norm, n_iter, converged)


def add_factors(alone: Solution, n_shared: int, n_visit: int) -> Point:
    """A start with factors, from the correlations of what outcomes have in common without them.

    The posterior mean of the effects u is Aᵀ times the slopes by m, that of ε is σ times them.
    """
    problem, (coef, intercept, effects) = alone.problem, alone.point
    visits, (_, n_tasks, q) = problem.visits, problem.shape
    pull = problem.evidence(alone.point, alone.sites).pull
    shared, visit = np.zeros((n_tasks, q, n_shared)), np.zeros((n_tasks, n_visit))
    own, sigma = effects.own.copy(), effects.sigma.copy()
    if n_shared and q:
        loads = np.einsum("nq,tqk->ntk", visits.z, own)
        means = np.add.reduceat(pull[..., None] * loads, visits.starts[:-1], axis=0)
        share = _common(means[..., 0], n_shared)
        shared += own[:, :, :1] * share[:, None, :]
        own[:, :, 0] *= np.sqrt(1.0 - np.square(share).sum(axis=1))[:, None]
    if n_visit:
        share = _common(pull, n_visit) * np.broadcast_to(problem.free_sigma, n_tasks)[:, None]
        visit += sigma[:, None] * share
        sigma *= np.sqrt(1.0 - np.square(share).sum(axis=1))
    return Point(coef, intercept, Effects(own, shared, visit, sigma))


def _common(values: FloatArray, n_factors: int) -> FloatArray:
    """Loadings (T, K) of correlations of columns on their leading directions."""
    moments = values.T @ values
    size = np.sqrt(moments.diagonal())
    correlation = moments / np.outer(*2 * (np.where(size > 0.0, size, 1.0),))
    roots, axes = np.linalg.eigh(correlation)
    kept = min(n_factors, len(roots))
    loads = np.zeros((len(roots), n_factors))
    loads[:, :kept] = (axes * np.sqrt(np.maximum(roots, 0.0)))[:, : -kept - 1 : -1]
    loads *= np.sign(loads.sum(axis=0) + 1e-300)
    common = np.square(loads).sum(axis=1, keepdims=True)
    return np.asarray(loads * np.sqrt(_MOST_SHARED / np.maximum(common, _MOST_SHARED)))


class CrossFit(NamedTuple):
    """The ridge, fixed effects (N, T) of people who were left out, and what is left around them."""

    alpha: float
    mean: FloatArray
    rest: Solution


def cross_fit(
    problem: MixedProblem,
    norms: FloatArray,
    order: IntArray,
    *,
    max_iter: int,
    watch: Callable[[str], None],
) -> CrossFit:
    """Choose the ridge where features are many, so that residuals are those of other people.

    Along a path of alpha, coefficients are fitted without every fourth person, with the random
    effects as they are, and then random effects and σ around the fixed effects of the people who
    were left out. The evidence of the latter chooses alpha. In-sample residuals of many features
    would make all variances too small. ``norms`` are those of the basis, (r,), and ``order`` are
    numbers of people (n,), the same for people who are the same: a weight of 2 is a person twice.
    """
    settings: dict[str, Any] = {"tol": _LOOSE, "max_iter": max_iter}
    fold = order % _FOLDS
    mean = np.zeros(problem.visits.low.shape)
    null = problem.around(mean)
    rest = solve(null, start(null), **settings)
    best, behind = CrossFit(PATH[0], mean, rest), 0
    coef = [np.zeros((problem.shape[1], len(norms)))] * _FOLDS
    for alpha in PATH if len(np.unique(fold)) > 1 else ():
        watch(f"the ridge on coefficients, alpha = {alpha:.2g}")
        shrunk, mean = replace(problem, ridge=alpha * norms), np.empty(mean.shape)
        for number in np.unique(fold).tolist():
            inside = shrunk.where(problem.visits.of_rows(fold != number))
            at = Point(coef[number], rest.point.intercept, rest.point.effects)
            found = solve(inside, at, **settings, hold_effects=True).point
            rows, coef[number] = problem.visits.of_rows(fold == number), found.coef
            mean[rows] = problem.features[rows] @ found.coef.T
        around = problem.around(mean)
        rest = solve(around, rest.point, **settings)
        behind = 0 if rest.value < best.rest.value else behind + 1
        best = CrossFit(alpha, mean, rest) if not behind else best
        if behind > 1:
            break
    return best
