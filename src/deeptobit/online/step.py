"""The adaptive online step, one row after the other, compiled."""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.kernels import is_finite, jit_sums
from deeptobit.online.kernels import fill_closed, fill_scores, row_entries
from deeptobit.online.reference import REACH
from deeptobit.online.rows import Block, Iterate, PlainPlan, RowPlan


@jit_sums
def learn_rows(
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
) -> int:
    """Gaussian twin of ``reference_learn_rows``; see there for the mathematics."""
    X, low, high, edge, sign, weight, closed = block
    Z, step, forget, inverse, spread, lowest, highest, learns_b, learns_sigma, every = plan
    V, Ut, intercept, sigma = now
    rank, n_features, n_tasks = len(V), X.shape[1], len(sigma)
    h, q, p = np.empty(rank), np.empty(rank), np.empty(rank)
    latent, precision, z = np.empty(n_tasks), np.empty(n_tasks), np.empty(n_tasks)
    entry, move = np.empty((4, n_tasks)), np.empty(n_tasks)
    for row in range(len(X)):
        x, turned, share, gamma = X[row], Z[row], weight[row], step[row]
        leverage = 0.0
        for j in range(n_features):
            leverage += x[j] * turned[j]
        leverage = max(leverage, 0.0)
        for r in range(rank):
            total = 0.0
            for j in range(n_features):
                total += V[r, j] * x[j]
            h[r] = total
        for t in range(n_tasks):
            latent[t] = intercept[t]
            precision[t] = 1.0 / sigma[t]
        for r in range(rank):
            scale = h[r]
            for t in range(n_tasks):
                latent[t] += Ut[r, t] * scale
        starts, sides = edge[row], sign[row]  # enough to tell what is known, and less to read
        row_entries(starts, sides, latent, precision, z, entry)
        if closed:
            starts = low[row]
            fill_closed(starts, high[row], latent, precision, entry)
        loss = 0.0
        for t in range(n_tasks):
            loss += entry[0, t]
            score = entry[1, t]
            score = REACH if score > REACH else (-REACH if score < -REACH else score)
            move[t] = score * precision[t]
        out[0] += share * loss

        for r in range(rank):
            total = 0.0
            for t in range(n_tasks):
                total += move[t] * Ut[r, t]
            q[r] = total
        damped = share * gamma / (1.0 + share * gamma * leverage * spread)
        for r in range(rank):
            total = 0.0
            for k in range(rank):
                total += inverse[r, k] * q[k]
            p[r] = damped * total
        size = 1.0
        for r in range(rank):
            length = p[r]
            h[r] -= leverage * length
            size += h[r] * h[r]
            for j in range(n_features):
                V[r, j] -= length * turned[j]

        fade = min(share * forget[row], 0.5)
        for t in range(n_tasks):
            start, side = starts[t], sides[t]
            known = 1.0 if start == start else 0.0
            exact = known if side == 0.0 else 0.0
            moments[0, t] += fade * known * (entry[2, t] - moments[0, t])
            moments[1, t] += fade * known * (exact - moments[1, t])
            moments[2, t] += fade * (known - moments[2, t])
            curvature = max(moments[0, t], 0.02)
            move[t] *= share * gamma * sigma[t] * sigma[t] / (curvature + share * gamma * size)
            change = -0.5 * fade * entry[3, t] / max(moments[1, t], 0.05)
            change = 0.2 if change > 0.2 else (-0.2 if change < -0.2 else change)
            scale = sigma[t] * (1.0 + learns_sigma * change)
            floor, ceiling = lowest[t], highest[t]
            scale = floor if scale < floor else scale
            sigma[t] = ceiling if scale > ceiling else scale
        total = 0.0
        for t in range(n_tasks):
            total += move[t] * move[t]
            intercept[t] -= learns_b * move[t]
        out[1] += total * (size - 1.0)
        for r in range(rank):
            scale = h[r]
            for t in range(n_tasks):
                Ut[r, t] -= move[t] * scale
        if (row + 1) % every == 0:
            averaged += 1
            move_towards(mean, now, 4.0 / (averaged + 3.0))
    return averaged


@jit_sums
def move_towards(mean: Iterate, now: Iterate, share: float) -> None:
    """Move the averages by a share of their distance to the iterate."""
    for row in range(len(mean[0])):
        for column in range(mean[0].shape[1]):
            mean[0][row, column] += share * (now[0][row, column] - mean[0][row, column])
        for column in range(mean[1].shape[1]):
            mean[1][row, column] += share * (now[1][row, column] - mean[1][row, column])
    for task in range(len(mean[2])):
        mean[2][task] += share * (now[2][task] - mean[2][task])
        mean[3][task] += share * (now[3][task] - mean[3][task])


# The adaptive online step, one batch after the other, compiled.


@jit_sums
def learn_batches(
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
) -> int:
    """Gaussian twin of ``batches_by_pieces``; see there for the mathematics."""
    X, low, high, edge, sign, weight, closed = block
    Z, step, forget, inverse, spread, lowest, highest, learns_b, learns_sigma, size = plan
    V, Ut, intercept, sigma = now
    for batch, first in enumerate(range(0, len(X), size)):
        last = first + size
        x, z, share = X[first:last], Z[first:last], weight[first:last]
        starts, ends = low[first:last], high[first:last]
        edges, sides = edge[first:last], sign[first:last]
        gamma, fade = step[batch], forget[batch]
        H = np.dot(x, V.T)
        latent = np.dot(H, Ut)
        latent += intercept
        score, sums = np.empty(latent.shape), np.zeros((5, len(sigma)))
        part = Block(x, starts, ends, edges, sides, share, closed)
        fill_scores(part, 0, latent, sigma, REACH, score, sums)
        out[0] += sums[0].sum()
        _move_moments(moments, sums, share.sum(), min(fade, 0.5))

        K = np.dot(z, x.T)
        pull = np.dot(np.dot(score, Ut.T), inverse)
        pace = _damped(K, pull, share, gamma, spread)
        V -= np.dot(pace.T, z)
        H -= np.dot(K, pace)
        wide, gram = _with_intercept(H, share, learns_b)
        if not is_finite(gram.sum()):
            V[:] = np.nan  # the guard sees it
            return averaged
        values, vectors = np.linalg.eigh(gram)
        turned = np.dot(wide, vectors)
        out[1] += _refine(turned, score, values, vectors, gamma, moments, learns_b, now)
        if learns_sigma:
            _move_sigma(sigma, fade, sums[2], moments[1], lowest, highest)
        averaged += 1
        move_towards(mean, now, 4.0 / (averaged + 3.0))
    return averaged


@jit_sums
def _move_moments(moments: FloatArray, sums: FloatArray, rows: float, forget: float) -> None:
    """Move the running means by as much as that many rows would."""
    fade_rows = 1.0 - (1.0 - forget) ** rows
    for t in range(moments.shape[1]):
        known = sums[3, t]
        count = max(known, 1e-300)
        fade = 1.0 - (1.0 - forget) ** known
        moments[0, t] += fade * (sums[1, t] / count - moments[0, t])
        moments[1, t] += fade * (sums[4, t] / count - moments[1, t])
        moments[2, t] += fade_rows * (known / max(rows, 1e-300) - moments[2, t])


@jit_sums
def _damped(
    K: FloatArray, pull: FloatArray, weight: FloatArray, gamma: float, spread: float
) -> FloatArray:
    """γ(I + γρΩK)⁻¹ pull, by Cholesky in the symmetric form with Ω^{1/2} on both sides.

    The right-hand sides are further rows of the matrix: their part of the factor is half of the
    solution.
    """
    n, rank = pull.shape
    root = np.sqrt(weight)
    L = np.empty((n + rank, n))
    for i in range(n):
        scale = gamma * spread * root[i]
        for j in range(i + 1):
            L[i, j] = scale * root[j] * K[i, j]
        L[i, i] += 1.0
        scale = 1.0 / root[i] if root[i] > 0.0 else 1.0
        for r in range(rank):
            L[n + r, i] = scale * pull[i, r]
    sound = True
    for j in range(n):
        above, pivot = L[j, :j], L[j, j]
        for k in range(len(above)):
            pivot -= above[k] * above[k]
        sound &= pivot > 0.0
        scale = 1.0 / np.sqrt(pivot)
        L[j, j] = scale
        for i in range(j + 1, n + rank):
            row, total = L[i, :j], L[i, j]
            for k in range(len(row)):
                total -= row[k] * above[k]
            L[i, j] = scale * total
    step = np.empty((n, rank))
    for i in range(n - 1, -1, -1):
        above = L[i, :i]
        # Rounding of a nearly singular metric: treat rows as if they were orthogonal.
        alone = gamma / (1.0 + gamma * spread * weight[i] * max(K[i, i], 0.0))
        for r in range(rank):
            value, row = L[n + r, i] * L[i, i], L[n + r, :i]
            step[i, r] = gamma * root[i] * value if sound else alone * pull[i, r]
            for k in range(len(row)):
                row[k] -= value * above[k]
    return step


@jit_sums
def _with_intercept(
    H: FloatArray, weight: FloatArray, learns_b: float
) -> tuple[FloatArray, FloatArray]:
    """[H, 1] and its weighted second moments."""
    n, rank = H.shape
    wide, heavy = np.empty((n, rank + 1)), np.empty((n, rank + 1))
    for i in range(n):
        wide[i, :rank] = H[i]
        wide[i, rank] = learns_b
        for r in range(rank + 1):
            heavy[i, r] = weight[i] * wide[i, r]
    return wide, np.dot(heavy.T, wide)


@jit_sums
def _refine(
    turned: FloatArray,
    score: FloatArray,
    values: FloatArray,
    vectors: FloatArray,
    gamma: float,
    moments: FloatArray,
    learns_b: float,
    now: Iterate,
) -> float:
    """Step of U and b in the coordinates of the eigenvectors; its squared length in U."""
    _, Ut, intercept, sigma = now
    rank, n_tasks = Ut.shape
    target = np.dot(turned.T, score)
    for k in range(rank + 1):
        value = values[k]
        for t in range(n_tasks):
            target[k, t] *= sigma[t] * sigma[t] / (max(moments[0, t], 0.02) / gamma + value)
    move = np.dot(vectors, target)
    length = 0.0
    for r in range(rank):
        for t in range(n_tasks):
            Ut[r, t] -= move[r, t]
            length += move[r, t] * move[r, t]
    for t in range(n_tasks):
        intercept[t] -= learns_b * move[rank, t]
    return length


@jit_sums
def _move_sigma(
    sigma: FloatArray,
    forget: float,
    pull: FloatArray,
    bounded: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> None:
    for t in range(len(sigma)):
        change = -0.5 * forget * pull[t] / max(bounded[t], 0.05)
        change = 0.2 if change > 0.2 else (-0.2 if change < -0.2 else change)
        scale = sigma[t] * (1.0 + change)
        floor, ceiling = lowest[t], highest[t]
        scale = floor if scale < floor else scale
        sigma[t] = ceiling if scale > ceiling else scale


# Algorithms 1 and 2 of the paper with a given step, one row after the other, compiled.


@jit_sums
def plain_rows(
    block: Block,
    plan: PlainPlan,
    now: Iterate,
    observed_share: FloatArray,
    out: FloatArray,
) -> None:
    """Gaussian twin of ``reference_plain_rows``; see there for the mathematics."""
    X, low, high, edge, sign, weight, closed = block
    step, forget, alpha, learns_b, learns_sigma = plan
    V, Ut, intercept, sigma = now
    rank, n_features, n_tasks = len(V), X.shape[1], len(sigma)
    h, q = np.empty(rank), np.empty(rank)
    latent, precision, z = np.empty(n_tasks), np.empty(n_tasks), np.empty(n_tasks)
    entry = np.empty((4, n_tasks))
    for row in range(len(X)):
        x, share, length = X[row], weight[row], step[row]
        for stage in range(2):
            for r in range(rank):
                total = 0.0
                for j in range(n_features):
                    total += V[r, j] * x[j]
                h[r] = total
            for t in range(n_tasks):
                latent[t] = intercept[t]
                precision[t] = 1.0 / sigma[t]
            for r in range(rank):
                scale = h[r]
                for t in range(n_tasks):
                    latent[t] += Ut[r, t] * scale
            row_entries(edge[row], sign[row], latent, precision, z, entry)
            if closed:
                fill_closed(low[row], high[row], latent, precision, entry)
            if stage == 1:
                break
            loss = 0.0
            for t in range(n_tasks):
                exact = low[row, t] == high[row, t]
                loss += entry[0, t] + (math.log(sigma[t]) if exact else 0.0)
            out[0] += share * loss
            for r in range(rank):
                total = 0.0
                for t in range(n_tasks):
                    total += entry[1, t] * precision[t] * Ut[r, t]
                q[r] = share * total
            for r in range(rank):
                pull = q[r]
                for j in range(n_features):
                    V[r, j] -= length * (pull * x[j] + alpha * V[r, j])
        for t in range(n_tasks):
            intercept[t] -= learns_b * length * share * entry[1, t] * precision[t]
        for r in range(rank):
            scale = h[r]
            total = 0.0
            for t in range(n_tasks):
                move = length * (share * entry[1, t] * precision[t] * scale + alpha * Ut[r, t])
                total += move * move
                Ut[r, t] -= move
            out[1] += total
        fade = min(share * forget[row], 0.5)
        for t in range(n_tasks):
            change = -0.5 * fade * entry[3, t] / max(observed_share[t], 0.05)
            change = 0.2 if change > 0.2 else (-0.2 if change < -0.2 else change)
            sigma[t] *= 1.0 + learns_sigma * change
