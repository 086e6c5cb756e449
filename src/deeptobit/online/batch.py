"""The adaptive step for several rows at once, as matrix products by pieces of tasks."""

import numpy as np
from scipy.linalg.lapack import dposv

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, has_kernels
from deeptobit.online import reference
from deeptobit.online.reference import LEAST_CURVATURE, PIECE, Block, Iterate, RowPlan, TaskPieces


def learn_batches(
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
    n_threads: int,
) -> int:
    r"""Sketch and refine for all rows of a batch together: one step of problems (P:V) and (P:U).

    With K = XPXᵀ and scores g (rows by tasks), the step of V solves the quadratic model of the
    whole batch,

    .. math:: V \leftarrow V - \left(\gamma(I+\gamma\rho\,\Omega K)^{-1}\Omega\,g\,U\,G^{-1}
        \right)^\top XP

    and that of :math:`(U_t, b_t)` solves :math:`(\bar w_t/\gamma + \tilde H^\top\Omega\tilde H)
    \delta = \tilde H^\top\Omega\,\sigma_t^2 g_t` with :math:`\tilde H = [XV^\top, 1]` after the
    step of V. For one row both are the steps of :func:`reference.learn_rows`, whose parameters
    these are. The average moves after each batch. Gaussian noise has a compiled twin for tasks that
    are a single piece.
    """
    if has_kernels(noise) and len(now.sigma) <= PIECE:
        from deeptobit.online import step

        return step.learn_batches(block, plan, now, mean, moments, averaged, out)
    with reference.task_pieces(len(now.sigma), n_threads) as tasks:
        for batch, first in enumerate(range(0, len(block.X), plan.every)):
            rows = slice(first, first + plan.every)
            at = slice(batch, batch + 1)
            here = plan._replace(Z=plan.Z[rows], step=plan.step[at], forget=plan.forget[at])
            _learn_batch(noise, reference.rows_of(block, rows), here, now, moments, out, tasks)
            averaged += 1
            reference.move_towards(mean, now, averaged)
    return averaged


def _learn_batch(
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    moments: FloatArray,
    out: FloatArray,
    tasks: TaskPieces,
) -> None:
    gamma, forget = float(plan.step[0]), float(plan.forget[0])
    H = block.X @ now.V.T

    def evaluate(piece: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        latent = H @ now.Ut[:, piece]
        latent += now.intercept[piece]
        score, sums = reference.scores(noise, block, piece, latent, now.sigma[piece])
        return score, sums, score @ now.Ut[:, piece].T

    evaluated = tasks.map(evaluate)
    out[0] += sum(float(sums[0].sum()) for _, sums, _ in evaluated)
    pull = sum((pull for _, _, pull in evaluated), np.zeros(()))

    leverage = plan.Z @ block.X.T
    move = _sketch(leverage, pull @ plan.inverse, block.weight, gamma, plan.spread)
    now.V[...] -= move.T @ plan.Z
    H -= leverage @ move
    wide = np.column_stack([H, np.full(len(H), plan.learns_intercept)])
    gram = (wide * block.weight[:, None]).T @ wide
    if not np.isfinite(gram).all():  # the step is then repeated with half its length
        now.V[...] = np.nan
        return
    values, vectors = np.linalg.eigh(gram)
    turned = (wide @ vectors).T
    rows = float(block.weight.sum())

    def refine(piece: slice) -> float:
        score, sums, _ = evaluated[piece.start // PIECE]
        mine, sigma = moments[:, piece], now.sigma[piece]
        move_moments(mine, sums, rows, min(forget, 0.5))
        target = turned @ score
        curvature = np.maximum(mine[0], LEAST_CURVATURE)
        target *= np.square(sigma) / (curvature / gamma + values[:, None])
        move = vectors @ target
        now.Ut[:, piece] -= move[:-1]
        now.intercept[piece] -= plan.learns_intercept * move[-1]
        if plan.learns_sigma:
            sigma *= reference.sigma_factor(forget, sums[2], mine[1])
            np.clip(sigma, plan.lowest[piece], plan.highest[piece], out=sigma)
        return float(np.vdot(move[:-1], move[:-1]))

    out[1] += sum(tasks.map(refine))


def move_moments(moments: FloatArray, sums: FloatArray, rows: float, forget: float) -> None:
    """Move the running means by as much as that many rows would."""
    known = sums[3]
    count = np.maximum(known, 1e-300)
    fade = 1.0 - (1.0 - forget) ** known
    moments[0] += fade * (sums[1] / count - moments[0])
    moments[1] += fade * (sums[4] / count - moments[1])
    moments[2] += (1.0 - (1.0 - forget) ** rows) * (known / max(rows, 1e-300) - moments[2])


def _sketch(
    leverage: FloatArray, pull: FloatArray, weight: FloatArray, gamma: float, spread: float
) -> FloatArray:
    """γ(I + γρΩK)⁻¹ pull, by Cholesky with Ω^{1/2} on both sides."""
    root = np.sqrt(weight)
    system = (gamma * spread * root[:, None]) * leverage * root
    system.flat[:: len(root) + 1] += 1.0
    scaled = pull / np.where(root > 0.0, root, 1.0)[:, None]
    _, solution, failed = dposv(system.T, scaled, overwrite_a=True)
    if failed:  # rounding of a nearly singular metric: treat rows as if they were orthogonal
        alone = 1.0 + gamma * spread * weight * np.maximum(np.diagonal(leverage), 0.0)
        solution = scaled / alone[:, None]
    return np.asarray(gamma * root[:, None] * solution)
