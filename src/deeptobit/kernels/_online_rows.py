"""The adaptive online step, one row after the other, compiled."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit_sums
from deeptobit.kernels._online_entry import fill_closed, row_entries
from deeptobit.kernels._online_reference import REACH
from deeptobit.kernels._online_types import Block, Iterate, RowPlan


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
