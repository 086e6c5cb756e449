"""Maximum of the evidence: a start, L-BFGS, factors, the ridge, and which random effects pay.

The latter are chosen by fits without the last visits of some people, who are then forecast.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from deeptobit.arrays import BoolArray, FloatArray, IntArray
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.mixed.evidence import Effects, MixedProblem, Point
from deeptobit.mixed.people import person_loads, posterior
from deeptobit.targets import recorded_values

SIGMA_FLOOR = 1e-3  # in units of the outcome's own standard deviation
_MOST_SHARED = 0.7  # of a variance, at the start
_LOG_SIGMA = np.log([SIGMA_FLOOR, 1e3])
_SECANTS = 30
_FIRST_STEPS = 15  # after which parameters are measured in new units
_LEAST_INFORMATION = 1e-2  # per row
_RESTARTS, _ROUNDING = 5, 1e-10
_FOLDS, _LOOSE = 4, 1e-4
PATH = tuple(10.0 ** np.arange(1.0, -3.5, -0.5))  # ridges that are tried, in turn
Watch = Callable[[str], None]  # told what is being done


@dataclass(frozen=True)
class Solution:
    """Where the solver ended."""

    problem: MixedProblem
    point: Point
    value: float
    gradient_norm: float
    n_iter: int
    n_restarts: int
    converged: bool

    @property
    def log_likelihood(self) -> float:
        """Log evidence of all people, without penalties."""
        return float(self.problem.total(partial(MixedProblem.sums, point=self.point))[-2])


def start(problem: MixedProblem) -> Point:
    """Least squares for the recorded values, and half of what is left as variance of people."""
    visits, (_, n_tasks, q) = problem.visits, problem.shape
    values = recorded_values(visits.low, visits.high)
    known, row_weight = ~np.isnan(values), visits.of_rows(visits.weight)[:, None]
    share = known * row_weight
    total = np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)
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
    *,
    tol: float,
    max_iter: int,
    watch: Watch = lambda text: None,
    hold_effects: bool = False,
) -> Solution:
    """Minimise from a point by L-BFGS; ``hold_effects``: random effects and σ stay as they are."""
    steps, theta, n_factors = count(1), problem.pack(point), problem.n_shared + problem.n_visit
    bounds: Any = np.full((len(theta), 2), [-np.inf, np.inf])
    bounds[-problem.shape[1] :] = np.where(np.reshape(problem.free_sigma, (-1, 1)), _LOG_SIGMA, 0.0)
    if hold_effects:
        bounds[-problem.n_effects :] = theta[-problem.n_effects :, None]
    lowest, highest = bounds.T
    n_iter, n_restarts, before, settled, norm = 0, -1, np.inf, False, np.inf

    def look(theta: FloatArray) -> tuple[float, FloatArray, float, int]:
        """Objective, free part of its gradient and size of that, people who did not settle."""
        found, gradient, unconverged = problem.evaluate(theta)
        held = (theta <= lowest) & ((gradient > 0.0) | hold_effects)
        gradient = np.where(held, 0.0, gradient)
        return found, gradient, float(np.abs(gradient).max(initial=0.0)), unconverged

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        nonlocal norm
        found, gradient, norm, _ = look(unit * scaled)
        return found, unit * gradient

    def after_step(xk: Any) -> None:
        stage = "coefficients" if hold_effects else f"random effects, {n_factors} factors"
        watch(f"{stage}, step {next(steps)} of at most {max_iter}")
        if norm <= tol:
            raise StopIteration

    options: Any = {"maxcor": _SECANTS, "ftol": 0.0, "gtol": 0.0}
    for most in (_FIRST_STEPS, *_RESTARTS * [max_iter]):
        unit, n_restarts = _units(problem, theta), n_restarts + 1
        options["maxiter"] = min(most, max_iter - n_iter)
        options["maxfun"] = 10 * options["maxiter"]
        result = minimize(
            objective,
            theta / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds / unit[:, None],
            callback=after_step,
            options=options,
        )
        theta, n_iter = np.clip(unit * result.x, lowest, highest), n_iter + int(result.nit)
        found, _, norm, unconverged = look(theta)
        # A line search that finds no lower value ends too early, or where only rounding is left.
        settled = norm <= tol or before - found <= _ROUNDING * max(1.0, abs(found))
        if settled or n_iter >= max_iter:
            break
        before = found
    converged = bool(settled and not unconverged)
    point = problem.unpack(theta)
    return Solution(problem, point, found, norm, n_iter, n_restarts, converged)


def _units(problem: MixedProblem, theta: FloatArray) -> FloatArray:
    """What parameters are measured in: about their standard errors for one row, (P,).

    Squared slopes of people stand for the curvature, which differs much between outcomes that are
    mostly at a bound.
    """
    squares = problem.total(partial(MixedProblem.score_squares, point=problem.unpack(theta)))
    information = squares / problem.n_rows + problem.penalty + _LEAST_INFORMATION
    return np.asarray(1.0 / np.sqrt(information))


def add_factors(alone: Solution, n_shared: int, n_visit: int) -> Point:
    """A start with factors, from the correlations of what outcomes have in common without them.

    The posterior mean of the effects u is Aᵀ times the slopes by m, that of ε is σ times them.
    """
    problem, (coef, intercept, effects) = alone.problem, alone.point
    _, n_tasks, q = problem.shape
    in_people, in_visits = problem.total(partial(_products, point=alone.point))
    shared, visit = np.zeros((n_tasks, q, n_shared)), np.zeros((n_tasks, n_visit))
    own, sigma = effects.own.copy(), effects.sigma.copy()
    if n_shared and q:
        share = _common(in_people, n_shared)
        shared += own[:, :, :1] * share[:, None, :]
        own[:, :, 0] *= np.sqrt(1.0 - np.square(share).sum(axis=1))[:, None]
    if n_visit:
        share = _common(in_visits, n_visit) * np.broadcast_to(problem.free_sigma, n_tasks)[:, None]
        visit += sigma[:, None] * share
        sigma *= np.sqrt(1.0 - np.square(share).sum(axis=1))
    return Point(coef, intercept, Effects(own, shared, visit, sigma))


def _products(problem: MixedProblem, point: Point) -> FloatArray:
    """Of outcomes: products of what people keep first, and of what is left of visits, (2, T, T)."""
    pull, z, own = problem.evidence(point).pull, problem.visits.z, point.effects.own
    loads = z @ own[:, :, 0].T if z.shape[1] else np.zeros_like(pull)
    means = np.add.reduceat(pull * loads, problem.visits.starts[:-1], axis=0)
    return np.stack([means.T @ means, pull.T @ pull])


def _common(moments: FloatArray, n_factors: int) -> FloatArray:
    """Loadings (T, K) of the correlations of moments (T, T) on their leading directions."""
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
    """The ridge, out-of-fold fixed effects (N, T), and the fit with these as an offset."""

    alpha: float
    mean: FloatArray
    rest: Solution


def cross_fit(
    problem: MixedProblem, norms: FloatArray, order: IntArray, *, max_iter: int, watch: Watch
) -> CrossFit:
    """Choose the ridge where features are many, so that residuals are those of other people.

    Along a path of alpha, coefficients are fitted without every fourth person, with the random
    effects as they are, and then random effects and σ around the fixed effects of the people who
    were left out. The evidence of the latter chooses alpha. In-sample residuals of many features
    would make all variances too small. ``norms`` are those of the basis, (r,), and ``order`` are
    numbers of people (n,), equal for people with equal data: a weight of 2 is a person twice.
    """
    settings: dict[str, Any] = {"tol": _LOOSE, "max_iter": max_iter}
    fold = order % _FOLDS
    mean = np.zeros(problem.visits.low.shape)
    null = problem.around(mean).keeping_sites()
    rest = solve(null, start(null), **settings)
    best, behind = CrossFit(PATH[0], mean, rest), 0
    coef = [np.zeros((problem.shape[1], len(norms)))] * _FOLDS
    for place, alpha in enumerate(PATH if len(np.unique(fold)) > 1 else (), 1):
        watch(f"the ridge on coefficients, alpha {place} of at most {len(PATH)}")
        shrunk, mean = replace(problem, ridge=alpha * norms), np.empty(mean.shape)
        for number in np.unique(fold).tolist():
            inside = shrunk.where(problem.visits.of_rows(fold != number)).keeping_sites()
            at = Point(coef[number], rest.point.intercept, rest.point.effects)
            found = solve(inside, at, **settings, hold_effects=True).point
            rows, coef[number] = problem.visits.of_rows(fold == number), found.coef
            mean[rows] = problem.features[rows] @ found.coef.T
        around = problem.around(mean).keeping_sites()
        rest = solve(around, rest.point, **settings)
        behind = 0 if rest.value < best.rest.value else behind + 1
        best = CrossFit(alpha, mean, rest) if not behind else best
        if behind > 1:
            break
    return best


# Factors of people and of visits that are tried, in turn.
FACTORS = ((1, 0), (1, 1), (2, 1), (1, 2), (2, 2), (3, 2))
SHRINKAGES = (3.0, 15.0)
_HIDDEN_FOLDS = 2
_SEARCH_TOL = 1e-4


class Structure(NamedTuple):
    """Random effects per person and outcome, factors of people and visits, and the shrinkage."""

    effects: int
    person_rank: int
    visit_rank: int
    shrinkage: float


def fit_structure(problem: MixedProblem, structure: Structure, **settings: Any) -> Solution:
    """The fit with given random effects, by way of the one without factors."""
    alone = solve(problem.with_factors(0, 0, 0.0), start(problem), **settings)
    return with_factors(alone, structure, **settings)


def with_factors(alone: Solution, structure: Structure, **settings: Any) -> Solution:
    """The fit with the factors of a structure, from the one without any."""
    _, n_shared, n_visit, shrinkage = structure
    if not n_shared and not n_visit:
        return alone
    joint = alone.problem.with_factors(n_shared, n_visit, shrinkage)
    return solve(joint, add_factors(alone, n_shared, n_visit), **settings)


def hidden_scores(problem: MixedProblem, hidden: BoolArray, found: Solution) -> FloatArray:
    """Mean ranked probability score of every hidden visit by a fit to the others, (n,).

    Visits count alike, whatever the weight of people. Predictions are clipped where entries
    are censored, so scores ignore their shape beyond.
    """
    effects, visits, every = found.point.effects, found.problem.visits, problem.visits
    low, high, z = (each[hidden] for each in (every.low, every.high, every.z))
    people = every.of_rows(np.arange(len(every.weight)))[hidden]
    latent = problem.features[hidden] @ found.point.coef.T + found.point.intercept
    loads = person_loads(z[:, : effects.own.shape[1]], effects)
    spread, known = np.empty(latent.shape), found.problem.evidence(found.point)
    for row, person in enumerate(people):
        rows = slice(visits.starts[person], visits.starts[person + 1])
        sites = known.tau[rows], known.nu[rows]
        shift, spread[row] = posterior(visits.z[rows], *sites, effects).at(loads[row])
        latent[row] += shift
    spread += np.square(effects.visit).sum(axis=1) + np.square(effects.sigma)
    values = recorded_values(low, high)
    missing = np.isnan(values)
    lower = _whole(np.where(np.isneginf(low), high, -np.inf), np.fmax)
    upper = _whole(np.where(np.isposinf(high), low, np.inf), np.fmin)
    y = Predictive(Gaussian(), latent, np.sqrt(spread), lower, upper)
    score = np.where(missing, 0.0, y.crps(np.where(missing, latent, values)))
    return np.asarray(score.sum(axis=1) / np.maximum((~missing).sum(axis=1), 1))


def _whole(ends: FloatArray, pick: Any) -> FloatArray:
    """The bound of a task where its entries have but one; each entry's own otherwise."""
    common = np.asarray(pick.reduce(ends, axis=0))
    return np.where(np.isinf(ends), common, ends)


def hide_last_visits(problem: MixedProblem, seed: int) -> list[BoolArray]:
    """Folds: rows (N,) with the last known visits of some of the people who have two."""
    visits = problem.visits
    known = ~np.isnan(visits.low).all(axis=1)
    rows = np.flatnonzero(known & (visits.of_rows(visits.weight) > 0.0))
    person = visits.of_rows(np.arange(len(visits.weight)))[rows]
    last = rows[(person != np.append(person[1:], -1)) & (np.bincount(person)[person] > 1)]
    parts = np.array_split(np.random.default_rng(seed).permutation(last), _HIDDEN_FOLDS)
    return [np.isin(np.arange(len(visits.low)), part) for part in parts if len(part)]


def choose_structure(
    problem: MixedProblem, wanted: dict[str, Any], *, seed: int, max_iter: int, watch: Watch
) -> tuple[Structure, list[dict[str, Any]]]:
    """The random effects with which held-out last visits are forecast best.

    A structure replaces the best one before if it is better by more than the standard error of the
    difference, person by person, or if it is better and Schwarz's criterion agrees. ``wanted`` has
    what is given, by the fields of :class:`Structure`; None is to be chosen. Rows of a person are
    in the order of time.
    """
    folds = hide_last_visits(problem, seed)
    tried: dict[Structure, float] = {}
    settings: dict[str, Any] = {"tol": _SEARCH_TOL, "max_iter": max_iter}

    @cache
    def alone(number: int, n_effects: int) -> Solution:
        """The fit to a fold without factors."""
        rest = problem.where(~folds[number]).with_effects(n_effects).keeping_sites()
        return fit_structure(rest, Structure(n_effects, 0, 0, 0.0), **settings)

    def score(structure: Structure) -> tuple[FloatArray, float]:
        watch(f"held-out last visits, structure {len(tried) + 1} of at most {most_tried}")
        scores, schwarz = [], 0.0
        for number, hidden in enumerate(folds):
            found = with_factors(alone(number, structure.effects), structure, **settings)
            scores.append(hidden_scores(problem, hidden, found))
            n_people = len(found.problem.visits.weight)
            schwarz += found.value * found.problem.n_rows
            schwarz += 0.5 * np.log(n_people) * found.problem.n_parameters
        total = np.concatenate(scores)
        tried[structure] = float(total.mean())
        return total, schwarz

    n_tasks, most = problem.shape[1], problem.shape[2]
    given = {name: value for name, value in wanted.items() if value is not None}
    best = Structure(min(1, most), 0, 0, 0.0)._replace(**given)
    slopes = [{"effects": q} for q in range(best.effects + 1, most + 1)]
    possible = [(R, G) for R, G in FACTORS if n_tasks > 1 and max(R, G + 1) <= n_tasks]
    most_tried = 1 + 2 * len(slopes) + len(possible) + len(SHRINKAGES)
    at = score(best)

    def try_each(changes: Iterable[dict[str, Any]]) -> None:
        """Move to what is better than the best before; what is given stays."""
        nonlocal best, at
        for change in changes:
            candidate = best._replace(**(change | given))
            if candidate in tried:
                continue
            found = score(candidate)
            gain = at[0] - found[0]
            least = 0.0 if found[1] < at[1] else gain.std() / np.sqrt(len(gain))
            if gain.mean() > least:
                best, at = candidate, found

    try_each(slopes)
    try_each({"person_rank": R, "visit_rank": G} for R, G in possible)
    try_each(slopes)
    if best.person_rank:
        try_each({"shrinkage": rho} for rho in SHRINKAGES)
    return best, [{**structure._asdict(), "crps": crps} for structure, crps in tried.items()]
