"""Gaussian entries of a block, their sums by task, and the step of a row, compiled.

Kernels with a ``first`` work on the tasks from there on, as many as they are given σ for.
"""

import math
from typing import TypeAlias

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import kernels as normal
from deeptobit.likelihood.kernels import jit, jit_inside, jit_sums
from deeptobit.online.reference import LEAST_CURVATURE, REACH, Block, Iterate, RowPlan

# Censored Gaussian entries at σ = 1: likelihood and derivatives, compiled.

Entry = tuple[float, float, float, float, float, float]
Row: TypeAlias = FloatArray  # one-dimensional: the tasks, features or components of one row

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NARROW = 1e-5  # the density is constant over the interval
_SHORT, _LEVEL = 2.0, 8.0  # 16 nodes are exact below, and nothing cancels above


@jit_inside
def row_entries(
    low: Row, high: Row, latent: Row, precision: Row, sides: Row, z: Row, out: FloatArray
) -> bool:
    """Sides, distances z and, at σ = 1, nll, score, derivative by log σ and curvature of one row.

    A side is 0 where an entry is observed, and ±1 where it is censored from the left or the right;
    z is the distance of the value or of the finite end. The others are the first four rows of
    ``out``. Missing entries give zeros. Returns whether the row has intervals with two different
    finite ends, for which :func:`fill_closed` has to be called.
    """
    closed = False
    for task in range(len(low)):
        start, end = low[task], high[task]
        left, right = start == -math.inf, end == math.inf
        # Not "and": that would be a branch, mispredicted half of the time.
        closed |= (start < end) & (not left) & (not right)
        sides[task] = (1.0 if left else 0.0) - (1.0 if right else 0.0)
        z[task] = ((end if left else start) - latent[task]) * precision[task]
    far = False
    for task in range(len(low)):
        turned = sides[task] * z[task]
        far |= turned < normal.TABLE_START
        # What is missing goes to the start too; from the end on, both are below 1e-18.
        turned = turned if turned >= normal.TABLE_START else normal.TABLE_START
        turned = normal.TABLE_END if turned > normal.TABLE_END else turned
        log_cdf, out[1, task] = normal.table_log_ndtr_mills(turned)
        out[0, task] = -log_cdf
    if far:
        for task in range(len(low)):
            if sides[task] * z[task] < normal.TABLE_START:
                log_cdf, out[1, task], _ = normal.log_ndtr_mills_excess(sides[task] * z[task])
                out[0, task] = -log_cdf
    # Every load comes before the choices: a load inside a choice would make it a branch.
    for task in range(len(low)):
        side, distance, tail, mills = sides[task], z[task], out[0, task], out[1, task]
        exact, known = side == 0.0, distance == distance
        here = distance if known else 0.0
        turned = side * here
        square = here * here
        nll = 0.5 * square + _LOG_SQRT_2PI if exact else tail
        score = -here if exact else side * mills
        curvature = 1.0 if exact else mills * (mills + turned)
        pull = 1.0 - square if exact else turned * mills
        out[0, task] = nll if known else 0.0
        out[1, task] = score if known else 0.0
        out[2, task] = pull if known else 0.0
        out[3, task] = curvature if known else 0.0
    return closed


@jit
def fill_closed(low: Row, high: Row, latent: Row, precision: Row, out: FloatArray) -> None:
    """Overwrite the entries of one row that have two different finite ends, (4, T) or (6, T)."""
    for task in range(len(low)):
        start, end = low[task], high[task]
        if start < end and not math.isinf(start) and not math.isinf(end):
            a = (start - latent[task]) * precision[task]
            b = (end - latent[task]) * precision[task]
            fields = two_sided(a, b)
            for field in range(len(out)):
                out[field, task] = fields[field]


@jit
def two_sided(a: float, b: float) -> Entry:
    """Fields of ``Derivatives`` for an interval [a, b] around a latent score of 0."""
    width = b - a
    middle = 0.5 * (a + b)
    if width * max(1.0, abs(middle)) <= _NARROW:
        z = middle
        nll = 0.5 * z * z + _LOG_SQRT_2PI - math.log(width)
        return nll, -z, 1.0 - z * z, 1.0, 2.0 * z, 2.0 * z * z
    near, far = (a, b) if middle >= 0.0 else (-b, -a)
    fall = math.exp(-width * abs(middle))  # of the density, from the near to the far end
    if width <= _SHORT and width * abs(middle) <= _LEVEL:
        mass = 0.0  # over the density at the near end
        for node in range(16):
            t = 0.5 * width * (1.0 + _NODES[node])
            mass += 0.5 * width * _WEIGHTS[node] * math.exp(-t * (near + 0.5 * t))
        at_near = 1.0 / mass
        nll = 0.5 * near * near + _LOG_SQRT_2PI - math.log(mass)
    else:
        log_near, mills_near, _ = normal.log_ndtr_mills_excess(-near)
        log_far, _, _ = normal.log_ndtr_mills_excess(-far)
        rest = -math.expm1(log_far - log_near)
        at_near = mills_near / rest
        nll = -log_near - math.log(rest)
    at_a, at_b = (at_near, at_near * fall) if middle >= 0.0 else (at_near * fall, at_near)
    pull, stretch = at_b - at_a, b * at_b - a * at_a
    square = b * b * at_b - a * a * at_a
    cube = b * b * b * at_b - a * a * a * at_a
    curvature = min(max(stretch + pull * pull, 0.0), 1.0)
    cross, by_scale_twice = square + pull * stretch - pull, cube + stretch * stretch - stretch
    return nll, pull, stretch, curvature, cross, by_scale_twice


@jit_sums
def null_sums(block: Block, first: int, mean: Row, sigma: Row) -> FloatArray:
    """Gaussian twin of ``reference.null_sums``, (6, T)."""
    _, low, high, weight = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    out, entry = np.zeros((6, n_tasks)), np.empty((6, n_tasks))
    sides, z = np.empty(n_tasks), np.empty(n_tasks)
    for row in range(len(low)):
        share, starts, ends = weight[row], low[row, first:last], high[row, first:last]
        closed = row_entries(starts, ends, mean, precision, sides, z, entry)
        for task in range(n_tasks):
            side, distance, g = sides[task], z[task], entry[1, task]
            here = distance if distance == distance else 0.0
            bend = -2.0 * g if side == 0.0 else -g * (1.0 - here * (g + here))
            entry[4, task] = bend
            entry[5, task] = here * bend
        if closed:
            fill_closed(starts, ends, mean, precision, entry)
        for field in range(6):
            for task in range(n_tasks):
                out[field, task] += share * entry[field, task]
    return out


@jit_sums
def evaluate(
    block: Block, first: int, linear: FloatArray, intercept: Row, sigma: Row
) -> tuple[FloatArray, FloatArray]:
    """Gaussian twin of ``reference.evaluate``: (n, T) and (8, T)."""
    _, low, high, weight = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    score, sums, entry = np.empty(linear.shape), np.zeros((8, n_tasks)), np.empty((4, n_tasks))
    sides, z, latent = np.empty(n_tasks), np.empty(n_tasks), np.empty(n_tasks)
    for row in range(len(linear)):
        share, lifts, scores = weight[row], linear[row], score[row]
        for task in range(n_tasks):
            latent[task] = lifts[task] + intercept[task]
        starts, ends = low[row, first:last], high[row, first:last]
        if row_entries(starts, ends, latent, precision, sides, z, entry):
            fill_closed(starts, ends, latent, precision, entry)
        for task in range(n_tasks):
            start, end, side, g = starts[task], ends[task], sides[task], entry[1, task]
            known = share if start == start else 0.0
            exact = share if start == end else 0.0
            lift = lifts[task] * precision[task]
            sums[0, task] += share * entry[0, task]
            sums[1, task] += share * entry[3, task]
            sums[2, task] += share * entry[2, task]
            sums[3, task] += known
            sums[4, task] += known if side == 0.0 else 0.0
            sums[5, task] += exact
            sums[6, task] += share * g * lift
            sums[7, task] += share * entry[3, task] * lift * lift
            g = REACH if g > REACH else (-REACH if g < -REACH else g)
            scores[task] = share * g * precision[task]
    return score, sums


# The step of one row: ``sketch`` moves V, ``refine`` moves U.


@jit_inside
def sketch(
    now: Iterate, plan: RowPlan, row: int, x: Row, gamma: float, score: Row, h: Row, pull: Row
) -> None:
    """Step on V, given U: problem (P:V). Twin of ``reference.sketch``; h changes from Vx to V⁺x."""
    V, Ut, _, _ = now
    (rank, n_features), n_tasks = V.shape, len(score)
    z, inverse, leverage = plan.Z[row], plan.inverse, 0.0
    for j in range(n_features):
        leverage += x[j] * z[j]
    leverage = max(leverage, 0.0)
    damped = gamma / (1.0 + gamma * leverage * plan.spread)
    for r in range(rank):
        total = 0.0
        for t in range(n_tasks):
            total += score[t] * Ut[r, t]
        pull[r] = total
    for r in range(rank):
        total = 0.0
        for k in range(rank):
            total += inverse[r, k] * pull[k]
        length = damped * total
        h[r] -= leverage * length
        for j in range(n_features):
            V[r, j] -= length * z[j]


@jit_inside
def refine(
    now: Iterate,
    plan: RowPlan,
    h: Row,
    gamma: float,
    fade: float,
    entry: FloatArray,
    move: Row,
    starts: Row,
    sides: Row,
    moments: FloatArray,
) -> float:
    """Step on each U_t, given V: problem (P:U). Twin of ``reference.refine``.

    An entry is known unless its start is NaN, and bounded on both sides if its side is 0. The
    scores in ``move`` become the steps of the intercepts.
    """
    _, Ut, intercept, sigma = now
    lowest, highest = plan.lowest, plan.highest
    rank, n_tasks = Ut.shape
    square = 0.0
    for r in range(rank):
        square += h[r] * h[r]
    damping = gamma * (1.0 + square)
    for t in range(n_tasks):
        start, side = starts[t], sides[t]
        known = 1.0 if start == start else 0.0
        bounded = known if side == 0.0 else 0.0
        moments[0, t] += fade * known * (entry[3, t] - moments[0, t])
        moments[1, t] += fade * known * (bounded - moments[1, t])
        moments[2, t] += fade * (known - moments[2, t])
        curvature = max(moments[0, t], LEAST_CURVATURE)
        move[t] *= gamma * sigma[t] * sigma[t] / (curvature + damping)
        factor = sigma_factor(fade, entry[2, t], moments[1, t])
        scale, floor, ceiling = sigma[t] * factor, lowest[t], highest[t]
        scale = floor if scale < floor else scale
        sigma[t] = ceiling if scale > ceiling else scale
    total = 0.0
    for t in range(n_tasks):
        total += move[t] * move[t]
        intercept[t] -= plan.learns_intercept * move[t]
    for r in range(rank):
        scale = h[r]
        for t in range(n_tasks):
            Ut[r, t] -= move[t] * scale
    return total * square


@jit_inside
def sigma_factor(fade: float, by_log_sigma: float, bounded: float) -> float:
    """Twin of ``reference.sigma_factor``."""
    change = -0.5 * fade * by_log_sigma / max(bounded, 0.05)
    change = 0.2 if change > 0.2 else (-0.2 if change < -0.2 else change)
    return 1.0 + change


@jit_sums
def learn_rows(
    block: Block, plan: RowPlan, now: Iterate, mean: Iterate, moments: FloatArray
) -> tuple[float, float]:
    """Gaussian twin of ``reference.learn_rows``."""
    X, low, high, weight = block
    V, Ut, intercept, sigma = now
    rank, n_tasks = Ut.shape
    h, pull, entry = np.empty(rank), np.empty(rank), np.empty((4, n_tasks))
    latent, precision, score = np.empty(n_tasks), np.empty(n_tasks), np.empty(n_tasks)
    sides, distance = np.empty(n_tasks), np.empty(n_tasks)
    loss = squares = 0.0
    for row in range(len(X)):
        x, starts, ends = X[row], low[row], high[row]
        gamma, fade = weight[row] * plan.step[row], min(weight[row] * plan.forget[row], 0.5)
        for r in range(rank):
            total = 0.0
            for j in range(len(x)):
                total += V[r, j] * x[j]
            h[r] = total
        for t in range(n_tasks):
            latent[t] = intercept[t]
            precision[t] = 1.0 / sigma[t]
        for r in range(rank):
            scale = h[r]
            for t in range(n_tasks):
                latent[t] += Ut[r, t] * scale
        if row_entries(starts, ends, latent, precision, sides, distance, entry):
            fill_closed(starts, ends, latent, precision, entry)
        nll = 0.0
        for t in range(n_tasks):
            nll += entry[0, t]
            g = entry[1, t]
            g = REACH if g > REACH else (-REACH if g < -REACH else g)
            score[t] = g * precision[t]
        loss += weight[row] * nll
        sketch(now, plan, row, x, gamma, score, h, pull)
        squares += refine(now, plan, h, gamma, fade, entry, score, starts, sides, moments)
        if (row + 1) % plan.every == 0:
            move_towards(mean, now, plan.averaged + (row + 1) // plan.every)
    return loss, squares


@jit_sums
def move_towards(mean: Iterate, now: Iterate, averaged: int) -> None:
    """Twin of ``reference.move_towards``, without arrays in between."""
    share = 4.0 / (averaged + 3.0)
    for middle, last in (
        (mean.V.ravel(), now.V.ravel()),
        (mean.Ut.ravel(), now.Ut.ravel()),
        (mean.intercept, now.intercept),
        (mean.sigma, now.sigma),
    ):
        for k in range(len(middle)):
            middle[k] += share * (last[k] - middle[k])
