"""Algorithms 1 and 2 of the paper with a given step, one row after the other, compiled."""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit_sums
from deeptobit.kernels._online_entry import fill_closed, row_entries
from deeptobit.kernels._online_types import Block, Iterate, PlainPlan


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
