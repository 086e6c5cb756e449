"""The adaptive online step, one batch after the other, compiled."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import is_finite, jit_sums
from deeptobit.kernels._online_reference import REACH
from deeptobit.kernels._online_rows import move_towards
from deeptobit.kernels._online_sums import fill_scores
from deeptobit.kernels._online_types import Block, Iterate, RowPlan


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
