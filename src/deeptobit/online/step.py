"""The step of one row and of one batch, compiled: ``sketch`` moves V, ``refine`` moves U."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.kernels import is_finite, jit_inside, jit_sums
from deeptobit.online import kernels
from deeptobit.online.reference import LEAST_CURVATURE, REACH, Block, Iterate, RowPlan


@jit_inside
def sketch(
    now: Iterate,
    plan: RowPlan,
    row: int,
    x: FloatArray,
    gamma: float,
    score: FloatArray,
    h: FloatArray,
    pull: FloatArray,
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
    h: FloatArray,
    gamma: float,
    fade: float,
    entry: FloatArray,
    move: FloatArray,
    starts: FloatArray,
    sides: FloatArray,
    moments: FloatArray,
) -> float:
    """Step on each U_t, given V: problem (P:U). Twin of ``reference.refine``.

    An entry is known unless its start is NaN, and bounded on both sides if its side is 0. The
    scores in ``move`` become the steps of the intercepts.
    """
    _, Ut, intercept, sigma = now
    lowest, highest, learns_sigma = plan.lowest, plan.highest, plan.learns_sigma
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
        factor = sigma_factor(learns_sigma * fade, entry[2, t], moments[1, t])
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
    X, low, high, edge, sign, weight, closed = block
    V, Ut, intercept, sigma = now
    rank, n_tasks = Ut.shape
    h, pull, entry = np.empty(rank), np.empty(rank), np.empty((4, n_tasks))
    latent, precision = np.empty(n_tasks), np.empty(n_tasks)
    distance, score = np.empty(n_tasks), np.empty(n_tasks)
    loss = squares = 0.0
    for row in range(len(X)):
        x, starts, sides = X[row], edge[row], sign[row]
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
        kernels.row_entries(starts, sides, latent, precision, distance, entry)
        if closed:  # the edge of an interval is NaN, as if it were missing
            starts = low[row]
            kernels.fill_closed(starts, high[row], latent, precision, entry)
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


# The step of a batch.


@jit_sums
def move_moments(moments: FloatArray, sums: FloatArray, rows: float, forget: float) -> None:
    """Twin of ``reference.move_moments``."""
    fade_rows = 1.0 - (1.0 - forget) ** rows
    for t in range(moments.shape[1]):
        known = sums[3, t]
        count = max(known, 1e-300)
        fade = 1.0 - (1.0 - forget) ** known
        moments[0, t] += fade * (sums[1, t] / count - moments[0, t])
        moments[1, t] += fade * (sums[4, t] / count - moments[1, t])
        moments[2, t] += fade_rows * (known / max(rows, 1e-300) - moments[2, t])


@jit_sums
def learn_batches(
    block: Block, plan: RowPlan, now: Iterate, mean: Iterate, moments: FloatArray
) -> tuple[float, float]:
    """Gaussian twin of ``reference.learn_batches``."""
    X, low, high, edge, sign, weight, closed = block
    V, Ut, intercept, sigma = now
    rank = len(V)
    loss = squares = 0.0
    for index, first in enumerate(range(0, len(X), plan.every)):
        last = first + plan.every
        x, z, share = X[first:last], plan.Z[first:last], weight[first:last]
        starts, ends = low[first:last], high[first:last]
        edges, sides = edge[first:last], sign[first:last]
        gamma, fade = plan.step[index], plan.forget[index]
        H = np.dot(x, V.T)
        part = Block(x, starts, ends, edges, sides, share, closed)
        score, sums = kernels.evaluate(part, 0, np.dot(H, Ut), intercept, sigma)
        loss += sums[0].sum()
        move_moments(moments, sums, share.sum(), min(fade, 0.5))

        K = np.dot(z, x.T)
        system = gamma * plan.spread * share.reshape(-1, 1) * K
        for row in range(len(x)):
            system[row, row] += 1.0
        pull = np.dot(np.dot(score, Ut.T), plan.inverse)
        if not is_finite(system.sum() + pull.sum()):
            return np.inf, squares  # the step is then repeated with half its length
        move = gamma * np.linalg.solve(system, pull)
        V -= np.dot(move.T, z)
        H -= np.dot(K, move)
        wide = np.full((len(x), rank + 1), plan.learns_intercept)
        for row in range(len(x)):  # array assignments take seconds to compile
            for r in range(rank):
                wide[row, r] = H[row, r]
        gram = np.dot((wide * share.reshape(-1, 1)).T, wide)
        if not is_finite(gram.sum()):
            return np.inf, squares
        values, vectors = np.linalg.eigh(gram)
        target = np.dot(np.dot(wide, vectors).T, score)
        for k in range(rank + 1):
            value = values[k]
            for t in range(len(sigma)):
                damping = max(moments[0, t], LEAST_CURVATURE) / gamma
                target[k, t] *= sigma[t] * sigma[t] / (damping + value)
        step = np.dot(vectors, target)
        for r in range(rank):
            for t in range(len(sigma)):
                Ut[r, t] -= step[r, t]
                squares += step[r, t] * step[r, t]
        for t in range(len(sigma)):
            scale = sigma[t] * sigma_factor(plan.learns_sigma * fade, sums[2, t], moments[1, t])
            sigma[t] = min(max(scale, plan.lowest[t]), plan.highest[t])
            intercept[t] -= plan.learns_intercept * step[rank, t]
        move_towards(mean, now, plan.averaged + index + 1)
    return loss, squares
