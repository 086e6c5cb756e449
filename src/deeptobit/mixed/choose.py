"""Which random effects pay: fits without the last visits of some people, who are then forecast."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.mixed.evidence import MixedProblem
from deeptobit.mixed.people import person_loads, posterior
from deeptobit.mixed.solve import Solution, add_factors, solve, start
from deeptobit.targets import recorded_values

# Factors of people and of visits that are tried, in turn.
FACTORS = ((1, 0), (1, 1), (2, 1), (1, 2), (2, 2), (3, 2))
SHRINKAGES = (3.0, 15.0)
_FOLDS = 2
_TOL = 1e-4


class Structure(NamedTuple):
    """Random effects per person and outcome, factors of people and visits, and the shrinkage."""

    effects: int
    person_rank: int
    visit_rank: int
    shrinkage: float


def fit_structure(
    problem: MixedProblem, structure: Structure, alone: Solution | None = None, **settings: Any
) -> Solution:
    """The fit with given random effects, by way of the one without factors, if it is not given."""
    if alone is None:
        alone = solve(problem.with_factors(0, 0, 0.0), start(problem), **settings)
    _, n_shared, n_visit, shrinkage = structure
    if not n_shared and not n_visit:
        return alone
    joint = problem.with_factors(n_shared, n_visit, shrinkage)
    return solve(joint, add_factors(alone, n_shared, n_visit), alone.sites, **settings)


@dataclass(frozen=True)
class HiddenVisits:
    """A fold: the last visits of some people are hidden.

    Parameters
    ----------
    problem : MixedProblem
        With all effects per person that may be asked for.
    hidden : bool array of shape (N,)
        Nobody loses all rows.
    """

    problem: MixedProblem
    hidden: BoolArray

    @cached_property
    def rest(self) -> MixedProblem:
        """The problem without the hidden rows."""
        return self.problem.where(~self.hidden)

    def scores(self, found: Solution) -> FloatArray:
        """Mean ranked probability score of every hidden visit, weighted by nobody, (n,).

        Bounds are where entries are censored, which costs what lies beyond them alone.
        """
        effects, visits, every = found.point.effects, found.problem.visits, self.problem.visits
        low, high, z = (each[self.hidden] for each in (every.low, every.high, every.z))
        people = every.of_rows(np.arange(len(every.weight)))[self.hidden]
        latent = self.problem.features[self.hidden] @ found.point.coef.T + found.point.intercept
        loads = person_loads(z[:, : effects.own.shape[1]], effects)
        spread = np.empty(latent.shape)
        for row, person in enumerate(people):
            rows = slice(visits.starts[person], visits.starts[person + 1])
            sites = found.sites.tau[rows], found.sites.nu[rows]
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


def hide_last_visits(problem: MixedProblem, seed: int) -> list[HiddenVisits]:
    """Folds that each hide the last known visit of some of the people who have two."""
    visits = problem.visits
    known = ~np.isnan(visits.low).all(axis=1)
    rows = np.flatnonzero(known & (visits.of_rows(visits.weight) > 0.0))
    person = visits.of_rows(np.arange(len(visits.weight)))[rows]
    last = rows[(person != np.append(person[1:], -1)) & (np.bincount(person)[person] > 1)]
    folds = []
    for part in np.array_split(np.random.default_rng(seed).permutation(last), _FOLDS):
        hidden = np.zeros(len(visits.low), dtype=np.bool_)
        hidden[part] = True
        if len(part):
            folds.append(HiddenVisits(problem, hidden))
    return folds


def choose_structure(
    problem: MixedProblem,
    wanted: dict[str, Any],
    *,
    seed: int,
    max_iter: int,
    watch: Callable[[str], None],
) -> tuple[Structure, list[dict[str, Any]]]:
    """The random effects with which hidden last visits are forecast best.

    A structure replaces the best one before if it is better by more than the standard error of the
    difference, person by person, or if it is better and Schwarz's criterion agrees. ``wanted`` has
    what is given, by the fields of :class:`Structure`; None is to be chosen. Rows of a person are
    in the order of time.
    """
    folds = hide_last_visits(problem, seed)
    tried: list[dict[str, Any]] = []
    alone: dict[tuple[int, int], Solution] = {}
    settings: dict[str, Any] = {"tol": _TOL, "max_iter": max_iter}

    def score(structure: Structure) -> tuple[FloatArray, float]:
        watch(f"hidden last visits, {len(tried) + 1} structures tried")
        scores, schwarz = [], 0.0
        for number, fold in enumerate(folds):
            key = structure.effects, number
            at = fold.rest.with_effects(structure.effects)
            if key not in alone:
                alone[key] = fit_structure(
                    at, structure._replace(person_rank=0, visit_rank=0), **settings
                )
            found = fit_structure(at, structure, alone[key], **settings)
            scores.append(fold.scores(found))
            n_people = len(found.problem.visits.weight)
            schwarz += found.value * found.problem.total
            schwarz += 0.5 * np.log(n_people) * found.problem.n_parameters
        total = np.concatenate(scores)
        tried.append({**structure._asdict(), "crps": float(total.mean())})
        return total, schwarz

    def given(name: str, value: Any) -> Any:
        return value if wanted[name] is None else wanted[name]

    def better(candidates: Iterable[Structure], best: Structure, at: Any) -> Any:
        for candidate in candidates:
            if any(candidate == Structure(*list(row.values())[:4]) for row in tried):
                continue
            found = score(candidate)
            gain = at[0] - found[0]
            least = 0.0 if found[1] < at[1] else gain.std() / np.sqrt(len(gain))
            if gain.mean() > least:
                best, at = candidate, found
        return best, at

    n_tasks, most = problem.shape[1], problem.shape[2]
    least = Structure(min(1, most), 0, 0, 0.0)
    first = Structure(*(given(*each) for each in least._asdict().items()))
    best, at = first, score(first)
    slopes = range(first.effects + 1, most + 1) if wanted["effects"] is None else ()
    ranks = {
        (given("person_rank", R), given("visit_rank", G)): None
        for R, G in FACTORS
        if n_tasks > 1 and max(R, G) <= n_tasks
    }
    best, at = better((best._replace(effects=q) for q in slopes), best, at)
    best, at = better((best._replace(person_rank=R, visit_rank=G) for R, G in ranks), best, at)
    best, at = better((best._replace(effects=q) for q in slopes), best, at)
    if wanted["shrinkage"] is None and best.person_rank:
        best, at = better((best._replace(shrinkage=rho) for rho in SHRINKAGES), best, at)
    return best, tried
