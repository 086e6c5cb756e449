"""Maximum likelihood for all tasks at once, in standard units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.objective import OlsenProblem
from deeptobit.solvers._newton import NewtonResult, solve_newton

_LEAST_FLATTENING = 0.1
SIGMA_FLOOR = 1e-6  # of the task's standard deviation: reached when a task is fitted exactly


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
    def of(cls, problem: OlsenProblem) -> CensoringKinds:
        """Classify the tasks of a problem; rows of weight 0 do not count."""
        present = problem.weight > 0.0
        targets = problem.targets
        left = targets.at_lower[present].any(axis=0)
        right = targets.at_upper[present].any(axis=0)
        open_ended = targets.at_lower | targets.at_upper | targets.missing
        nothing_known = np.asarray(open_ended[present].all(axis=0))
        two_sided = nothing_known & left & right
        for task in np.flatnonzero(two_sided).tolist():
            one_threshold = _is_constant(targets.high[present & targets.at_lower[:, task], task])
            and_one_more = _is_constant(targets.low[present & targets.at_upper[:, task], task])
            two_sided[task] = one_threshold and and_one_more
        return cls(nothing_known & ~(left & right), two_sided)


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def fit_tobit(
    problem: OlsenProblem,
    fixed_theta: FloatArray | None,
    *,
    total_weight: float,
    tol: float,
    max_iter: int,
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
    """
    kinds = CensoringKinds.of(problem)
    undetermined = kinds.one_sided | kinds.two_sided
    problem = replace(problem, free_sigma=problem.free_sigma & ~undetermined)
    start = least_squares_start(problem)
    if fixed_theta is not None:
        start[:-1] *= fixed_theta / start[-1]
        start[-1] = fixed_theta
    else:
        start[:-1, undetermined] /= start[-1, undetermined]
        start[-1, undetermined] = 1.0
    beyond = _beyond_the_bound(problem, start[-1], total_weight)
    start[:, kinds.one_sided] = beyond[:, kinds.one_sided]
    # A constant cannot be improved upon where there is no maximum: such a task starts converged.
    tolerance = np.where(kinds.one_sided, np.inf, tol * problem.known_share())
    result = solve_newton(problem, start, tol=tolerance, max_iter=max_iter)
    return problem, result, kinds


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
        residual = values[rows] - block.forward(slopes)
        weighted = exact[rows] * residual
        total += weighted.sum(axis=0)
        squares += (weighted * residual).sum(axis=0)
    known = np.where(usable, exact_share, 1.0)
    intercept = total / known if problem.fit_intercept else np.zeros_like(total)
    variance = np.where(usable, squares / known - intercept**2, 1.0)
    # A handful of uncensored entries says little of σ: two more with variance 1 are imagined.
    n_exact = np.where(usable, exact_share * problem.features.n_samples, 0.0)
    variance = (n_exact * np.maximum(variance, 1e-4) + 2.0) / (n_exact + 2.0)
    theta = 1.0 / np.sqrt(variance)
    return np.vstack([slopes * theta, intercept * theta, theta])


def _beyond_the_bound(problem: OlsenProblem, theta: FloatArray, total_weight: float) -> FloatArray:
    """Constant solutions for tasks that are censored throughout, on one side.

    With n such entries the chance of the next one being inside is put at ½/(n + 1), Jeffreys' rule:
    the prediction stays finite and close to the bound.
    """
    targets, scaling = problem.targets[problem.weight > 0.0], problem.scaling
    low, high = scaling.apply(targets.low), scaling.apply(targets.high)
    distance = -problem.noise.ppf(0.5 / (total_weight * problem.known_share() + 1.0))
    lowest = np.where(targets.at_lower, high, np.inf).min(axis=0)
    highest = np.where(targets.at_upper, low, -np.inf).max(axis=0)
    left = targets.at_lower.any(axis=0)
    point = np.zeros((problem.features.rank + 2, len(theta)))
    with np.errstate(invalid="ignore"):
        point[-2] = np.where(left, lowest * theta - distance, highest * theta + distance)
    point[-1] = theta
    return point
