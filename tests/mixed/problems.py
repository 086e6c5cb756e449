"""Generated visits, and the evidence of linear mixed models by the density of all entries."""

from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from deeptobit.arrays import FloatArray
from deeptobit.mixed import Effects, MixedProblem, Point, Visits


def make_effects(rng: np.random.Generator, n_tasks: int, q: int, R: int, G: int) -> Effects:
    """Random effects of moderate size; C is lower triangular."""
    return Effects(
        np.tril(rng.normal(size=(n_tasks, q, q))) * 0.6,
        rng.normal(size=(n_tasks, q, R)) * 0.5,
        rng.normal(size=(n_tasks, G)) * 0.5,
        rng.uniform(0.5, 1.0, n_tasks),
    )


def make_problem(
    seed: int = 0,
    *,
    n_people: int = 12,
    n_tasks: int = 3,
    q: int = 2,
    R: int = 1,
    G: int = 1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    missing: float = 0.0,
    **settings: Any,
) -> tuple[MixedProblem, Point]:
    """Visits drawn from the model, one to four per person, and the parameters they came from."""
    rng = np.random.default_rng(seed)
    effects = make_effects(rng, n_tasks, q, R, G)
    counts = rng.integers(1, 5, n_people)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    n_rows = int(starts[-1])
    z = np.column_stack([np.ones(n_rows), rng.normal(size=n_rows)])[:, :q].copy()
    features = rng.normal(size=(n_rows, 2))
    point = Point(rng.normal(size=(n_tasks, 2)), rng.normal(size=n_tasks), effects)
    person = np.repeat(np.arange(n_people), counts)
    own = np.einsum(
        "nq,tqk,ntk->nt", z, effects.own, rng.normal(size=(n_people, n_tasks, q))[person]
    )
    shared = np.einsum("nq,tqk,nk->nt", z, effects.shared, rng.normal(size=(n_people, R))[person])
    latent = features @ point.coef.T + point.intercept + own + shared
    latent += rng.normal(size=(n_rows, G)) @ effects.visit.T
    latent += rng.normal(size=latent.shape) * effects.sigma
    low, high = np.where(latent <= bounds[0], -np.inf, latent), latent.copy()
    high[latent <= bounds[0]] = bounds[0]
    low[latent >= bounds[1]], high[latent >= bounds[1]] = bounds[1], np.inf
    gone = rng.random(latent.shape) < missing
    low[gone] = high[gone] = np.nan
    visits = Visits(starts, low, high, z, rng.uniform(0.5, 2.0, n_people))
    problem = MixedProblem(visits, features, np.zeros(2), n_shared=R, n_visit=G, **settings)
    return problem, point


def dense_log_density(problem: MixedProblem, point: Point) -> FloatArray:
    """Log density of every person whose entries are all observed or missing, (n,)."""
    visits, effects, found = problem.visits, point.effects, []
    mean, psi = problem.mean(point), point.effects.covariance()
    for first, last in zip(visits.starts[:-1], visits.starts[1:], strict=True):
        z = visits.z[first:last]
        n_tasks = mean.shape[1]
        loads = np.einsum("vq,ts->vtsq", z, np.eye(n_tasks)).reshape(len(z) * n_tasks, -1)
        total = loads @ psi @ loads.T
        shared = effects.visit @ effects.visit.T + np.diag(effects.sigma**2)
        total += np.kron(np.eye(len(z)), shared)
        y, m = visits.low[first:last].ravel(), mean[first:last].ravel()
        known = ~np.isnan(y)
        inside = total[np.ix_(known, known)]
        density = multivariate_normal(m[known], inside).logpdf(y[known]) if known.any() else 0.0
        found.append(float(density))
    return np.array(found)
