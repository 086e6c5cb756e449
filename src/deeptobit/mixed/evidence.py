r"""The evidence of repeated visits: one problem, its parameters, its value and gradient.

In standard units (features whitened, outcomes scaled, time centred and scaled) the objective is

.. math:: -\frac{1}{\sum_i w_i n_i}\Big(\sum_i w_i \log Z_i(\theta)
    - \frac\rho2\sum_t\|L_t\|^2\Big)
    + \frac12\sum_t \beta_t^\top A\beta_t,

with persons i of weight w and n visits, the shrinkage ρ of what outcomes share (in people), and
the diagonal ridge A on coefficients β; for two outcomes :func:`unequal_shares` is added. At a fixed
point of expectation propagation the derivative of log Z by the sites vanishes, so that its gradient
is that with the sites held fixed. All sums over people are additive: those in memory are the case
of one shard.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray, IntArray
from deeptobit.likelihood import Gaussian
from deeptobit.likelihood import evaluate as likelihood

_TOL, _ROUGHLY, _SWEEPS = 1e-9, 1e-5, 200
_MODE, _MOST_STEPS = 1e-10, 100  # of Newton's method, to the mode of an integrand
S = TypeVar("S")  # anything that can be added up


class Effects(NamedTuple):
    """Random effects in standard units: C (T, q, q), L (T, q, R), γ (T, G) and σ (T,)."""

    own: FloatArray
    shared: FloatArray
    visit: FloatArray
    sigma: FloatArray

    def covariance(self) -> FloatArray:
        """Ψ of all random effects, outcome by outcome, (Tq, Tq)."""
        n_tasks, q = self.own.shape[:2]
        loads = self.shared.reshape(n_tasks * q, self.shared.shape[2])
        total = (loads @ loads.T).reshape(n_tasks, q, n_tasks, q)
        tasks = np.arange(n_tasks)
        total[tasks, :, tasks] += self.own @ self.own.transpose(0, 2, 1)
        return total.reshape(n_tasks * q, n_tasks * q)

    def variances(self, z: FloatArray) -> FloatArray:
        """Variances of scores at new visits of people of whom nothing is known, (N, T)."""
        loads = np.concatenate([self.own, self.shared], axis=2)
        spread = np.square(np.einsum("nq,tqk->ntk", z, loads)).sum(axis=2)
        return np.asarray(spread + np.square(self.visit).sum(axis=1) + np.square(self.sigma))


def unequal_shares(effects: Effects) -> tuple[float, FloatArray, FloatArray]:
    r"""Penalty on unequal shares of common noise in two outcomes, and slopes by γ and log σ.

    Data identify two variances and a covariance, three numbers; γ and σ are four.
    The same share of both is taken: :math:`\tfrac12(\log v_1/\sigma_1^2 - \log v_2/\sigma_2^2)^2`
    with :math:`v = \gamma^2 + \sigma^2` is 0 for one of all divisions of a covariance.
    """
    own = np.square(effects.sigma)
    total = np.square(effects.visit).sum(axis=1) + own
    apart = np.subtract(*np.log(total / own)) * np.array([1.0, -1.0])
    by_visit = (2.0 * apart / total)[:, None] * effects.visit
    return 0.5 * float(apart[0] ** 2), by_visit, 2.0 * apart * (own / total - 1.0)


class Point(NamedTuple):
    """All parameters: coefficients (T, r), intercepts (T,) and random effects."""

    coef: FloatArray
    intercept: FloatArray
    effects: Effects


class Visits(NamedTuple):
    """What is known of people, row by row, in standard units.

    Parameters
    ----------
    starts : array of shape (n + 1,)
        The first row of every person, and the number of rows.
    low, high : arrays of shape (N, T)
        Ends of what is known of the entries.
    z : array of shape (N, q)
        1, and time where there are slopes.
    weight : array of shape (n,)
    """

    starts: IntArray
    low: FloatArray
    high: FloatArray
    z: FloatArray
    weight: FloatArray

    def of_rows(self, per_person: Any) -> Any:
        """A number per person, row by row."""
        return np.repeat(per_person, np.diff(self.starts))

    def where(self, rows: BoolArray) -> "Visits":
        """Some of the rows (N,), without people who have none of them."""
        counts = np.add.reduceat(rows.astype(np.int64), self.starts[:-1])
        kept = counts > 0
        starts = np.concatenate([[0], np.cumsum(counts[kept])])
        return Visits(starts, self.low[rows], self.high[rows], self.z[rows], self.weight[kept])


class Evidence(NamedTuple):
    """Log evidence of people, its slopes, and the Gaussian sites of their entries.

    Parameters
    ----------
    log_z : array of shape (n,)
    pull, tau, nu : arrays of shape (N, T)
        Slopes by m, and sites.
    slopes : array of shape (n, K), or (K,)
        By C, L, γ and log σ: per person, or their weighted sum.
    unconverged : int
        People whose sites did not settle.
    """

    log_z: FloatArray
    pull: FloatArray
    tau: FloatArray
    nu: FloatArray
    slopes: FloatArray
    unconverged: int


def evidence(
    visits: Visits,
    mean: FloatArray,
    effects: Effects,
    *,
    n_nodes: int = 0,
    by_person: bool = False,
    sites: FloatArray | None = None,
) -> Evidence:
    """Evidence of all people by expectation propagation, or by quadrature with ``n_nodes``.

    With ``sites`` (2, N, T), τ and ν, propagation begins there, ends sooner and leaves its own.
    """
    if n_nodes:
        return integrate(visits, mean, effects, n_nodes, by_person=by_person)
    from deeptobit.mixed import kernels  # compiled where they are needed

    n_people, width = len(visits.weight), sum(part.size for part in effects)
    if by_person:
        visits = visits._replace(weight=np.ones(n_people))
    tau, nu = np.zeros((2, *mean.shape)) if sites is None else sites.copy()
    log_z, pull, sweeps = np.empty(n_people), np.zeros_like(mean), np.empty(n_people, np.int64)
    slopes = np.zeros((n_people if by_person else 1, width))
    found = log_z, pull, tau, nu, slopes, sweeps
    kernels.propagate(visits, mean, effects, found, _TOL if sites is None else _ROUGHLY, _SWEEPS)
    settled = sweeps >= 0
    if sites is not None:
        sites[:] = np.where(visits.of_rows(settled)[:, None], (tau, nu), 0.0)
    slopes, unconverged = slopes if by_person else slopes[0], int((~settled).sum())
    return Evidence(log_z, pull, tau, nu, slopes, unconverged)


def integrate(
    visits: Visits, mean: FloatArray, effects: Effects, n_nodes: int, *, by_person: bool
) -> Evidence:
    """The same by adaptive Gauss–Hermite quadrature around the mode, without factors.

    Outcomes are then independent, and each has an integral over its own effects u.
    """
    rule, tasks = _product_rule(n_nodes, effects.own.shape[1]), range(len(effects.sigma))
    found = [_integrate_task(visits, mean, effects, task, rule) for task in tasks]
    log_z, pulls, by_own, by_sigma = zip(*found, strict=True)
    slopes = np.column_stack([*by_own, *by_sigma])
    slopes, none = slopes if by_person else visits.weight @ slopes, np.zeros(mean.shape)
    return Evidence(np.sum(log_z, axis=0), np.column_stack(pulls), none, none, slopes, 0)


def _integrate_task(
    visits: Visits, mean: FloatArray, effects: Effects, task: int, rule: tuple[FloatArray, ...]
) -> tuple[FloatArray, ...]:
    """Log evidence of one outcome, its slopes by m, and those of every person by C and log σ."""
    own, scale = effects.own[task], effects.sigma[[task]]
    first, person = visits.starts[:-1], visits.of_rows(np.arange(len(visits.weight)))
    load, n_people, q = visits.z @ own, len(first), len(own)
    low, high = visits.low[:, [task]], visits.high[:, [task]]

    def at(u: FloatArray) -> list[FloatArray]:
        latent = mean[:, task] + (load * u[person]).sum(axis=1)
        return [part[:, 0] for part in likelihood(Gaussian(), low, high, latent[:, None], scale)]

    u, hessian = np.zeros((n_people, q)), np.zeros((n_people, q, q))
    for _ in range(_MOST_STEPS):  # Newton's; the objective is concave
        _, slope, _, bend, *_ = at(u)
        products = bend[:, None, None] * load[:, :, None] * load[:, None]
        hessian = np.eye(q) + np.add.reduceat(products, first)
        push = u + np.add.reduceat(slope[:, None] * load, first)
        step = np.linalg.solve(hessian, push[..., None])[..., 0]
        u = u - step
        if np.abs(step).max(initial=0.0) < _MODE:
            break
    root = np.linalg.cholesky(hessian)
    spread = np.linalg.inv(root).transpose(0, 2, 1)

    def log_ratio(node: FloatArray) -> tuple[FloatArray, ...]:
        """Log of the integrand over the rule's weight, the node's location, and slopes there."""
        point = u + spread @ node
        nll, slope, by_scale, *_ = at(point)
        inside = 0.5 * (node @ node) - 0.5 * np.square(point).sum(axis=1)
        return inside - np.add.reduceat(nll, first), point, slope, by_scale

    total = np.full(n_people, -np.inf)
    for node, weight in zip(*rule, strict=True):
        total = np.logaddexp(total, np.log(weight) + log_ratio(node)[0])
    pull, by_own, by_sigma = np.zeros(len(mean)), np.zeros((n_people, q, q)), np.zeros(n_people)
    for node, weight in zip(*rule, strict=True):
        ratio, point, slope, by_scale = log_ratio(node)
        share = weight * np.exp(ratio - total)
        pull -= share[person] * slope
        by_sigma -= share * np.add.reduceat(by_scale, first)
        moved = np.add.reduceat(slope[:, None] * visits.z, first)
        by_own -= (share[:, None] * moved)[:, :, None] * point[:, None]
    half_log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    log_z = total - half_log_det - 0.5 * q * np.log(2.0 * np.pi)
    return log_z, pull, by_own.reshape(n_people, q * q), by_sigma


def _product_rule(n_nodes: int, n_effects: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Hermite nodes (K, q) and weights (K,) for exp(−x²/2)."""
    x, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    nodes = np.array(list(product(x, repeat=n_effects))).reshape(-1, n_effects)
    weights = np.array([np.prod(each) for each in product(w, repeat=n_effects)])
    kept = weights > 1e-300
    return nodes[kept], weights[kept]


class StreamedPeople(Protocol):
    """People who are not in memory: their weight and that of their rows, and sums over them."""

    @property
    def n_people(self) -> float:
        """Weight of all people."""

    @property
    def n_rows(self) -> float:
        """Weight of all their rows."""

    def total(self, problem: "MixedProblem", task: "Callable[[MixedProblem], S]") -> S:
        """Add up what a task makes of the problem, with the visits of some people in turn."""


@dataclass(frozen=True)
class MixedProblem:
    """The objective of a mixed model with its number of factors.

    Parameters
    ----------
    visits : Visits
    features : array of shape (N, r)
        In the basis of the coefficients.
    ridge : array of shape (r,)
    n_shared, n_visit : int
        R and G.
    shrinkage : float
        ρ, in people.
    fit_intercept : bool
    free_sigma : bool array of shape (T,)
        Whether σ is estimated; it is 1 otherwise.
    n_nodes : int
        Nodes of the quadrature; 0 for expectation propagation.
    beyond : StreamedPeople, optional
        Everybody, where ``visits`` are but some of the people.
    sites : array of shape (2, N, T), optional
        Kept from one evaluation to the next; see :func:`evidence`.
    """

    visits: Visits
    features: FloatArray
    ridge: FloatArray
    n_shared: int = 0
    n_visit: int = 0
    shrinkage: float = 0.0
    fit_intercept: bool = True
    free_sigma: Any = True
    n_nodes: int = 0
    beyond: "StreamedPeople | None" = None
    sites: FloatArray | None = None

    @property
    def n_people(self) -> float:
        """Weight of all people."""
        return float(self.visits.weight.sum()) if self.beyond is None else self.beyond.n_people

    @property
    def n_rows(self) -> float:
        """Weight of all rows."""
        weight, counts = self.visits.weight, np.diff(self.visits.starts)
        return float(weight @ counts) if self.beyond is None else self.beyond.n_rows

    def total(self, task: "Callable[[MixedProblem], S]") -> S:
        """Add up a task's results over all people."""
        return task(self) if self.beyond is None else self.beyond.total(self, task)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, T, q)."""
        n_rows, n_tasks = self.visits.low.shape
        return n_rows, n_tasks, self.visits.z.shape[1]

    @property
    def n_parameters(self) -> int:
        """Free parameters; loadings count up to rotation, and no more than covariances have."""
        (_, n_tasks, q), R, G = self.shape, self.n_shared, self.n_visit
        fixed = n_tasks * (len(self.ridge) + self.fit_intercept)
        person = n_tasks * q * (q + 1) // 2 + n_tasks * q * R - R * (R - 1) // 2
        person = min(person, n_tasks * q * (n_tasks * q + 1) // 2)
        free = int(np.broadcast_to(self.free_sigma, n_tasks).sum())
        noise = free + n_tasks * G - G * (G - 1) // 2
        return fixed + person + min(noise, free + n_tasks * (n_tasks - 1) // 2)

    def with_factors(self, n_shared: int, n_visit: int, shrinkage: float) -> "MixedProblem":
        """The same people with other factors."""
        return replace(self, n_shared=n_shared, n_visit=n_visit, shrinkage=shrinkage)

    def around(self, mean: FloatArray) -> "MixedProblem":
        """The problem with given fixed effects (N, T) as an offset, without features."""
        low, high = self.visits.low - mean, self.visits.high - mean
        visits, none = self.visits._replace(low=low, high=high), np.zeros((len(mean), 0))
        return replace(self, visits=visits, features=none, ridge=np.zeros(0))

    def with_effects(self, n_effects: int) -> "MixedProblem":
        """The same with the first of the effects per person."""
        z = np.ascontiguousarray(self.visits.z[:, :n_effects])
        return replace(self, visits=self.visits._replace(z=z))

    def where(self, rows: BoolArray) -> "MixedProblem":
        """The problem of some rows (N,)."""
        visits, features = self.visits.where(rows), self.features[rows]
        return replace(self, visits=visits, features=features, sites=None)

    def keeping_sites(self) -> "MixedProblem":
        """The same, faster and less exact, for comparisons: a value depends on those before it."""
        return replace(self, sites=np.zeros((2, *self.visits.low.shape)))

    def mean(self, point: Point) -> FloatArray:
        """Fixed effects of the rows, (N, T)."""
        return np.asarray(self.features @ point.coef.T + point.intercept)

    def evidence(self, point: Point, *, by_person: bool = False) -> Evidence:
        """Evidence and its slopes at a point."""
        given: Any = {"n_nodes": self.n_nodes, "by_person": by_person, "sites": self.sites}
        return evidence(self.visits, self.mean(point), point.effects, **given)

    def sums(self, point: Point) -> FloatArray:
        """Weighted sums over the people in memory, (P + 2,).

        Slopes by all parameters, the log evidence, and how many people's sites did not settle.
        """
        found, weight = self.evidence(point), self.visits.weight
        pull = found.pull * self.visits.of_rows(weight)[:, None]
        by_coef, by_intercept = pull.T @ self.features, pull.sum(axis=0) * self.fit_intercept
        slopes = by_coef.ravel(), by_intercept, self.effect_slopes(found.slopes)
        return np.concatenate([*slopes, [weight @ found.log_z, found.unconverged]])

    def _scores(self, point: Point) -> Iterator[FloatArray]:
        """Weighted slopes of the people in memory: parts (n, K) in the order of the parameters."""
        found, starts = self.evidence(point, by_person=True), self.visits.starts[:-1]
        weight = self.visits.weight[:, None]
        for pull in found.pull.T:
            yield weight * np.add.reduceat(pull[:, None] * self.features, starts, axis=0)
        yield weight * np.add.reduceat(found.pull, starts, axis=0) * self.fit_intercept
        yield weight * self.effect_slopes(found.slopes)

    def score_products(self, point: Point) -> FloatArray:
        """Sum of ssᵀ over the people in memory, s being their weighted slopes, (P, P)."""
        scores = np.concatenate(list(self._scores(point)), axis=1)
        return np.asarray(scores.T @ scores)

    def score_squares(self, point: Point) -> FloatArray:
        """The diagonal of that, (P,)."""
        return np.concatenate([np.square(part).sum(axis=0) for part in self._scores(point)])

    @property
    def penalty(self) -> FloatArray:
        """Ridges of all parameters, per row, (P,)."""
        n_tasks, effects = self.shape[1], np.zeros(self.n_effects)
        effects[self._places[1]] = self.shrinkage / self.n_rows
        return np.concatenate([np.tile(self.ridge, n_tasks), np.zeros(n_tasks), effects])

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray, int]:
        """Objective, gradient, and how many people's sites did not settle."""
        point = self.unpack(theta)
        sums = self.total(partial(MixedProblem.sums, point=point))
        by_penalty = self.penalty * theta
        value = 0.5 * float(by_penalty @ theta) - float(sums[-2]) / self.n_rows
        gradient = by_penalty - sums[:-2] / self.n_rows
        if self.shape[1] == 2 and self.n_visit:
            apart, by_visit, by_sigma = unequal_shares(point.effects)
            slopes = np.concatenate([by_visit.ravel(), by_sigma * self.free_sigma])
            value, gradient[-len(slopes) :] = value + apart, gradient[-len(slopes) :] + slopes
        return value, gradient, int(sums[-1])

    # Parameters as one vector: coefficients, intercepts, lower triangles of C, L, γ and log σ.

    @property
    def _lower(self) -> Any:
        return np.tril_indices(self.shape[2])

    @property
    def _places(self) -> list[slice]:
        """Where C, L, γ and log σ are among the random effects."""
        _, n_tasks, q = self.shape
        sizes = [q * (q + 1) // 2, q * self.n_shared, self.n_visit, 1]
        ends = np.cumsum([0, *(n_tasks * size for size in sizes)])
        return [slice(start, end) for start, end in pairwise(ends.tolist())]

    @property
    def n_effects(self) -> int:
        """Number of parameters of the random effects."""
        return int(self._places[-1].stop)

    def pack(self, point: Point) -> FloatArray:
        """A point as one vector."""
        (coef, intercept, (own, *factors, sigma)) = point
        parts = coef, intercept, own[(slice(None), *self._lower)], *factors, np.log(sigma)
        return np.concatenate([part.ravel() for part in parts])

    def unpack(self, theta: FloatArray) -> Point:
        """The point of a vector."""
        (_, n_tasks, q), n_coef = self.shape, self.shape[1] * len(self.ridge)
        coef = theta[:n_coef].reshape(n_tasks, len(self.ridge))
        intercept, rest = theta[n_coef : n_coef + n_tasks], theta[n_coef + n_tasks :]
        lower, shared, visit, log_sigma = (rest[place] for place in self._places)
        own = np.zeros((n_tasks, q, q))
        own[(slice(None), *self._lower)] = lower.reshape(n_tasks, q * (q + 1) // 2)
        shared = shared.reshape(n_tasks, q, self.n_shared)
        visit = visit.reshape(n_tasks, self.n_visit)
        return Point(coef, intercept, Effects(own, shared, visit, np.exp(log_sigma)))

    def effect_slopes(self, slopes: FloatArray) -> FloatArray:
        """Slopes (..., K) by the parameters of the random effects, from those by C, L, γ, log σ."""
        _, n_tasks, q = self.shape
        n_own = n_tasks * q * q
        own = slopes[..., :n_own].reshape(*slopes.shape[:-1], n_tasks, q, q)
        lower = own[(..., *self._lower)].reshape(*slopes.shape[:-1], -1)
        rest = slopes[..., n_own:].copy()
        rest[..., -n_tasks:] *= np.broadcast_to(self.free_sigma, n_tasks)
        return np.concatenate([lower, rest], axis=-1)
