"""The adaptive step for several rows at once, as matrix products."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dposv

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import scores
from deeptobit.kernels._online_types import Block, Iterate, RowPlan
from deeptobit.likelihood import Noise

Result = TypeVar("Result")

_TASKS = 512  # per piece of work; fixed, so that the number of threads changes nothing


def learn_batch(
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    moments: FloatArray,
    out: FloatArray,
    n_threads: int,
) -> None:
    r"""Implicit steps of V, then of (U, b) and σ, for all rows of the block together.

    With K = XPXᵀ and scores g (rows by tasks), the step of V solves the quadratic model of the
    whole batch,

    .. math:: V \leftarrow V - \left(\gamma(I+\gamma\rho\,\Omega K)^{-1}\Omega\,g\,U\,G^{-1}
        \right)^\top XP

    and that of :math:`(U_t, b_t)` solves :math:`(\bar w_t/\gamma + \tilde H^\top\Omega\tilde H)
    \delta = \tilde H^\top\Omega\,\sigma_t^2 g_t` with :math:`\tilde H = [XV^\top, 1]` after the
    step of V. For one row both are the steps of the row kernel.
    """
    pieces = [slice(first, first + _TASKS) for first in range(0, len(now.sigma), _TASKS)]
    gamma, forget = float(plan.step[0]), float(plan.forget[0])
    H = np.empty((len(block.X), len(now.V) + 1))
    H[:, -1] = plan.learns_intercept
    H[:, :-1] = block.X @ now.V.T
    score = np.empty(block.low.shape)
    sums = np.empty((5, len(now.sigma)))

    def evaluate(tasks: slice) -> FloatArray:
        latent = H[:, :-1] @ now.Ut[:, tasks]
        latent += now.intercept[tasks]
        score[:, tasks], sums[:, tasks] = scores(
            noise, _tasks_of(block, tasks), latent, now.sigma[tasks]
        )
        return score[:, tasks] @ now.Ut[:, tasks].T

    pull = sum(_run(evaluate, pieces, n_threads), np.zeros(()))
    out[0] += float(sums[0].sum())
    rows = float(block.weight.sum())
    _move_moments(moments, sums, rows, min(forget, 0.5))

    leverage = plan.Z @ block.X.T
    step = _damped(leverage, pull @ plan.inverse, block.weight, gamma, plan.spread)
    now.V[...] -= step.T @ plan.Z
    H[:, :-1] -= leverage @ step
    values, vectors = np.linalg.eigh((H * block.weight[:, None]).T @ H)
    turned = (H @ vectors).T

    def refine(tasks: slice) -> float:
        target = turned @ score[:, tasks]
        target *= np.square(now.sigma[tasks])
        target /= np.maximum(moments[0, tasks], 0.02) / gamma + values[:, None]
        move = vectors @ target
        now.Ut[:, tasks] -= move[:-1]
        now.intercept[tasks] -= plan.learns_intercept * move[-1]
        return float(np.vdot(move[:-1], move[:-1]))

    out[1] += sum(_run(refine, pieces, n_threads))
    if plan.learns_sigma:
        change = (-0.5 * forget) * sums[2] / np.maximum(moments[1], 0.05)
        now.sigma[...] *= 1.0 + np.minimum(np.maximum(change, -0.2), 0.2)
        np.minimum(np.maximum(now.sigma, plan.lowest), plan.highest, out=now.sigma)


def _tasks_of(block: Block, tasks: slice) -> Block:
    """Some tasks, in memory of their own: kernels are compiled for contiguous rows only."""
    X, low, high, edge, sign, weight, closed = block
    low, high = np.ascontiguousarray(low[:, tasks]), np.ascontiguousarray(high[:, tasks])
    edge, sign = np.ascontiguousarray(edge[:, tasks]), np.ascontiguousarray(sign[:, tasks])
    return Block(X, low, high, edge, sign, weight, closed)


def _move_moments(moments: FloatArray, sums: FloatArray, rows: float, forget: float) -> None:
    """Move the running means by as much as that many rows would."""
    _, curvature, _, known, exact = sums
    count = np.maximum(known, 1e-300)
    fade = 1.0 - (1.0 - forget) ** known
    moments[0] += fade * (curvature / count - moments[0])
    moments[1] += fade * (exact / count - moments[1])
    fade_rows = 1.0 - (1.0 - forget) ** rows
    moments[2] += fade_rows * (known / max(rows, 1e-300) - moments[2])


def _damped(
    leverage: FloatArray, pull: FloatArray, weight: FloatArray, gamma: float, spread: float
) -> FloatArray:
    """γ(I + γρΩK)⁻¹ pull, by Cholesky in the symmetric form with Ω^{1/2} on both sides."""
    root = np.sqrt(weight)
    system = (gamma * spread * root[:, None]) * leverage * root
    system.flat[:: len(root) + 1] += 1.0
    scaled = pull / np.where(root > 0.0, root, 1.0)[:, None]
    _, solution, failed = dposv(system.T, scaled, overwrite_a=True)
    if failed:  # rounding of a nearly singular metric: treat rows as if they were orthogonal
        alone = 1.0 + gamma * spread * weight * np.maximum(np.diagonal(leverage), 0.0)
        solution = scaled / alone[:, None]
    return np.asarray(gamma * root[:, None] * solution)


def _run(work: Callable[[slice], Result], pieces: list[slice], n_threads: int) -> list[Result]:
    if n_threads == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        return list(pool.map(work, pieces))
