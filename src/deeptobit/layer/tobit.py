"""Maximum likelihood for the Tobit problems of all tasks at once, and the null model.

Everything is in standard units, in Olsen's (1978) convex coordinates γ = β/σ and θ = 1/σ.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Self

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer.features import BasisFeatures, TargetScaling
from deeptobit.layer.newton import NewtonResult, Tasks, solve_newton
from deeptobit.likelihood import Noise
from deeptobit.targets import CensoredTargets

SIGMA_FLOOR = 1e-6  # of the task's standard deviation: reached when a task is fitted exactly
_NO_CURVATURE = 1e-30  # below this, the curvature does not set the scale of a step
_LEAST_FLATTENING = 0.1


@dataclass(frozen=True)
class OlsenProblem:
    r"""All tasks' Tobit problems, one column of parameters per task.

    A column holds :math:`(z, b, \theta)`: coefficients in the whitened basis (γ = Bz = β/σ),
    intercept and precision θ = 1/σ, all in standard units, so r + 2 rows. The objective of task t
    is

    .. math::
        \sum_i w_i\,\mathrm{nll}_{it} + \tfrac12 \sum_j ridge_j z_j^2,\qquad \sum_i w_i = 1.

    Directions at a point are written (δ, ε, τ): δ and ε change the regression line (z by δ, b by ε
    at a fixed θ), τ is the change of log θ at a fixed line. In plain coordinates a well-fitted task
    is a long narrow valley along its own point, and conjugate gradients would crawl along it; in
    these, location and scale hardly interact.

    Parameters
    ----------
    features, targets, scaling, noise
        The data in standard units and the model.
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
        Tasks whose σ is estimated; the others keep the θ they start with.
    max_theta : float
        1/σ may not exceed this: the floor of σ for a task that is fitted exactly.
    """

    features: BasisFeatures
    targets: CensoredTargets
    scaling: TargetScaling
    noise: likelihood.Noise
    fit_intercept: bool
    free_sigma: BoolArray
    max_theta: float = 1.0 / SIGMA_FLOOR

    @property
    def weight(self) -> FloatArray:
        """Row weights that sum to one, (N,)."""
        return self.features.design.weight

    def evaluate(self, point: FloatArray, tasks: Tasks) -> "OlsenEvaluation":
        """Objective, gradient and curvature of some tasks at ``point`` of shape (r + 2, A)."""
        z, intercept, sigma = point[:-2], point[-2], 1.0 / point[-1]
        ridge = self.features.ridge[:, None]
        u_u, u_tau = np.empty((2, self.features.n_samples, len(tasks)), dtype=np.float32)
        by_latent, by_tau = np.zeros((len(point) - 1, len(tasks))), (ridge * z**2).sum(axis=0)
        value, tau_tau = 0.5 * by_tau, by_tau.copy()
        slopes, offset = z * sigma, intercept * sigma
        for rows, block in self.features.blocks():
            latent = block @ slopes
            latent += offset
            both = self.targets.low, self.targets.high
            low, high = (self.scaling.apply(ends[rows][:, tasks], tasks) for ends in both)
            at = likelihood.evaluate(self.noise, low, high, latent, sigma)
            weight = self.weight[rows]
            share = weight[:, None]
            value += weight @ at.nll
            by_latent[:-1] += block.adjoint(at.latent * share)
            by_latent[-1] += weight @ at.latent
            by_log_sigma = weight @ at.log_sigma
            # At a fixed line the latent stays, and log σ falls by τ.
            by_tau -= by_log_sigma
            tau_tau += by_log_sigma + weight @ at.log_sigma_log_sigma
            u_u[rows] = at.latent_latent * share
            u_tau[rows] = (at.latent + at.latent_log_sigma) * share
        u_u *= (sigma**2).astype(np.float32)
        u_tau *= -sigma.astype(np.float32)
        gradient = np.vstack([by_latent * sigma, by_tau])
        gradient[:-2] += ridge * z
        free = self._free(point[-1], gradient[-1], tasks)
        return OlsenEvaluation(self, z, value, gradient * free, free, u_u, u_tau, tau_tau)

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        """The point a step along (δ, ε, τ) leads to; θ respects its cap.

        θ is multiplied with √((1 + τ)/(1 − τ)), which is 1 + τ to first order and, for uncensored
        entries and a fixed line, leads a Newton step straight to the best θ.
        """
        tau = step * direction[-1]
        stretch = np.minimum(np.sqrt((1.0 + tau) / (1.0 - tau)), self.max_theta / point[-1])
        moved = point.copy()
        moved[:-1] += step * direction[:-1]
        return np.asarray(moved * stretch)

    def longest_step(self, direction: FloatArray) -> FloatArray:
        """The step (at most 1) that changes θ by a factor of at most 4.4, (A,)."""
        return np.asarray(0.9 / np.maximum(np.abs(direction[-1]), 0.9))

    def without_features(self) -> "OlsenProblem":
        """The null model of the same data: intercepts and noise scales alone."""
        return replace(self, features=BasisFeatures.none(self.features.design))

    def known_share(self) -> FloatArray:
        """Total weight of the entries that are not missing, (T,)."""
        return np.asarray(self.weight @ ~self.targets.missing)

    def _free(self, theta: FloatArray, by_tau: FloatArray, tasks: Tasks) -> FloatArray:
        """1 where a parameter may move, 0 where it is fixed or at its cap."""
        free = np.ones((self.features.rank + 2, len(tasks)))
        free[-2] = self.fit_intercept
        at_cap = (theta >= self.max_theta) & (by_tau < 0.0)
        free[-1] = self.free_sigma[tasks] & ~at_cap
        return free


@dataclass(frozen=True)
class OlsenEvaluation:
    """A point of :class:`OlsenProblem`: value (A,), gradient and Hessian products by (δ, ε, τ).

    Entry-wise curvatures are kept in single precision: they only shape search directions.
    """

    problem: OlsenProblem
    z: FloatArray
    value: FloatArray
    gradient: FloatArray
    free: FloatArray
    u_u: Any
    u_tau: Any
    tau_tau: FloatArray

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """Hessian of each task's objective times its column of ``direction``."""
        direction = direction * self.free
        delta, tau, rough = direction[:-2], direction[-1], direction.astype(np.float32)
        ridge = self.problem.features.ridge[:, None]
        by_tau = (ridge * self.z * delta).sum(axis=0) + self.tau_tau * tau
        product = np.vstack([ridge * (delta + self.z * tau), np.zeros_like(tau), by_tau])
        for rows, block in self.problem.features.blocks(single=True):
            along = block @ rough[:-2]
            along += rough[-2]
            product[-1] += np.einsum("it,it->t", self.u_tau[rows], along)
            along *= self.u_u[rows]
            along += self.u_tau[rows] * rough[-1]
            product[:-2] += block.adjoint(along)
            product[-2] += along.sum(axis=0)
        return product * self.free

    def precondition(self, residual: FloatArray) -> FloatArray:
        """Divide by a diagonal near the Hessian's: in the whitened basis little else is left."""
        return residual / self._diagonal

    @cached_property
    def _diagonal(self) -> FloatArray:
        ridge = self.problem.features.ridge[:, None]
        total = np.abs(self.u_u).sum(axis=0, dtype=np.float64)
        total = np.where(total > _NO_CURVATURE, total, 1.0)
        by_tau = np.where(np.abs(self.tau_tau) > _NO_CURVATURE, np.abs(self.tau_tau), total)
        return np.vstack([total * (1.0 - ridge) + ridge, total, by_tau])


@dataclass(frozen=True)
class CensoringKinds:
    """Tasks whose entries leave something undetermined.

    Parameters
    ----------
    one_sided : bool array of shape (T,)
        Every entry is censored, all on the same side: the likelihood has no maximum.
    two_sided : bool array of shape (T,)
        Every entry is censored, some on each side, and each side at one threshold only: σ is not
        determined, the rest is. Thresholds that differ from row to row would determine it.
    """

    one_sided: BoolArray
    two_sided: BoolArray

    @classmethod
    def of(cls, targets: CensoredTargets, weight: FloatArray) -> Self:
        """Classify the tasks; rows of weight 0 do not count."""
        targets = targets[weight > 0.0]
        left, right = targets.at_lower, targets.at_upper
        nothing_known = np.asarray((left | right | targets.missing).all(axis=0))
        both_sides = left.any(axis=0) & right.any(axis=0)
        two_sided = nothing_known & both_sides
        for task in np.flatnonzero(two_sided).tolist():
            thresholds = targets.high[left[:, task], task], targets.low[right[:, task], task]
            two_sided[task] = all(np.ptp(values) == 0.0 for values in thresholds)
        return cls(nothing_known & ~both_sides, two_sided)


def fit_tobit(
    problem: OlsenProblem,
    fixed_theta: FloatArray | None,
    *,
    total_weight: float,
    tol: float,
    max_iter: int,
    watch: Callable[[str], None] = lambda text: None,
) -> tuple[OlsenProblem, NewtonResult, CensoringKinds]:
    """Solve every task; returns the problem as solved (with undetermined σ held fixed).

    Parameters
    ----------
    problem : OlsenProblem
    fixed_theta : array of shape (T,), optional
        1/σ in standard units where σ is given instead of estimated.
    total_weight : float
        Sum of the row weights as given.
    tol : float
        Gradient norm at which a task has converged, for a task without missing entries.
    max_iter : int
    watch : function, optional
        Called with a line on the progress at the start and after a step.
    """
    kinds = CensoringKinds.of(problem.targets, problem.weight)
    undetermined = kinds.one_sided | kinds.two_sided
    problem = replace(problem, free_sigma=problem.free_sigma & ~undetermined)
    start = least_squares_start(problem)
    if fixed_theta is not None:
        start[:-1] *= fixed_theta / start[-1]
        start[-1] = fixed_theta
    else:
        start[:-1, undetermined] /= start[-1, undetermined]
        start[-1, undetermined] = 1.0
    one_sided, sigma = kinds.one_sided, problem.scaling.scale / start[-1]
    bounds = outermost_bounds(problem.targets[problem.weight > 0.0])
    n_entries = total_weight * problem.known_share()
    constant = beyond_the_bound(*bounds, n_entries, sigma, problem.noise)
    intercept = problem.scaling.apply(constant) * start[-1]
    start[:-2, one_sided], start[-2, one_sided] = 0.0, intercept[one_sided]
    # A constant cannot be improved upon where there is no maximum: such a task starts converged.
    tolerance = np.where(kinds.one_sided, np.inf, tol * problem.known_share())
    steps = count()

    def tell(point: FloatArray, value: FloatArray, norm: FloatArray) -> None:
        done = f"{(norm <= tolerance).sum()} of {len(norm)} targets converged"
        watch(f"{next(steps)} Newton steps, {done}")

    result = solve_newton(problem, start, tol=tolerance, max_iter=max_iter, watch=tell)
    return problem, result, kinds


def fit_constants(
    problem: OlsenProblem, sigma: FloatArray | None, total_weight: float
) -> tuple[OlsenProblem, FloatArray, FloatArray, CensoringKinds]:
    """Intercepts and σ alone, (T,) each, in standard units; ``sigma`` where σ is given.

    In the problem returned, without features, tasks whose likelihood has no maximum are missing,
    and an undetermined σ is fixed.
    """
    theta = None if sigma is None else 1.0 / sigma
    problem, result, kinds = fit_tobit(
        problem.without_features(), theta, total_weight=total_weight, tol=1e-10, max_iter=100
    )
    targets, aside = problem.targets, np.where(kinds.one_sided, np.nan, 0.0)
    targets = replace(targets, low=targets.low + aside, high=targets.high + aside)
    sigma = 1.0 / result.point[-1]
    return replace(problem, targets=targets), result.point[-2] * sigma, sigma, kinds


def least_squares_start(problem: OlsenProblem) -> FloatArray:
    """Least squares on the recorded values, corrected for censoring: two passes, (r + 2, T).

    Least squares flattens slopes by about the share of uncensored entries (Greene 1981), so they
    are divided by it; intercept and σ then come from the residuals of the uncensored entries.
    """
    share, weight = problem.known_share(), problem.weight[:, None]
    values = np.nan_to_num(problem.scaling.apply(problem.targets.values))
    exact = np.where(problem.targets.observed, weight, 0.0)
    exact_share = exact.sum(axis=0)
    usable = exact_share > 0.0
    flattening = np.clip(exact_share / share, _LEAST_FLATTENING, 1.0)
    slopes = np.zeros((problem.features.rank, len(share)))
    for rows, block in problem.features.blocks():
        slopes += block.adjoint(values[rows] * weight[rows])
    slopes /= share * np.where(usable, flattening, 1.0)

    total, squares = np.zeros((2, len(share)))
    for rows, block in problem.features.blocks():
        residual = values[rows] - block @ slopes
        weighted = exact[rows] * residual
        total += weighted.sum(axis=0)
        squares += (weighted * residual).sum(axis=0)
    known = np.where(usable, exact_share, 1.0)
    intercept = total / known if problem.fit_intercept else np.zeros_like(total)
    variance = np.where(usable, squares / known - intercept**2, 1.0)
    # A few uncensored entries hardly determine σ: two more with variance 1 are added.
    n_exact = np.where(usable, exact_share * problem.features.n_samples, 0.0)
    variance = (n_exact * np.maximum(variance, 1e-4) + 2.0) / (n_exact + 2.0)
    theta = 1.0 / np.sqrt(variance)
    return np.vstack([slopes * theta, intercept * theta, theta])


def beyond_the_bound(
    lowest: FloatArray, highest: FloatArray, n_entries: FloatArray, sigma: FloatArray, noise: Noise
) -> FloatArray:
    """Constants for tasks that are censored throughout, on one side, (T,).

    With n such entries the chance of the next one being inside is put at ½/(n + 1), Jeffreys' rule:
    the prediction stays finite and close to the bound.

    Parameters
    ----------
    lowest, highest : arrays of shape (T,)
        What :func:`outermost_bounds` finds.
    n_entries, sigma : arrays of shape (T,)
    noise : Noise

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> one = np.ones(1)
    >>> beyond_the_bound(0.0 * one, -np.inf * one, 9.0 * one, one, Gaussian()).round(2)
    array([-1.64])
    """
    distance = -sigma * noise.ppf(0.5 / (n_entries + 1.0))
    return np.asarray(np.where(np.isfinite(lowest), lowest - distance, highest + distance))


def outermost_bounds(targets: CensoredTargets) -> tuple[FloatArray, FloatArray]:
    """The least bound that entries are at from below, the largest from above; ±inf if none is."""
    lowest = np.where(targets.at_lower, targets.high, np.inf).min(axis=0)
    return lowest, np.where(targets.at_upper, targets.low, -np.inf).max(axis=0)
