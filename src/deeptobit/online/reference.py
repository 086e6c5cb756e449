"""A block of rows, and the step of one row on U and V, in NumPy.

``sketch`` and ``refine`` are the two halves of the paper's Algorithm 1, ``learn_rows`` is its loop
over rows. Gaussian noise has compiled twins in ``kernels``, which are called from here; numba loads
on first use, so that importing the package stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Noise, has_kernels, reference_evaluate

REACH = 10.0  # largest score, in units of 1/σ, that a step may follow: one outlier is not a trend
LEAST_CURVATURE = 0.02


class Block(NamedTuple):
    """Some rows in standard units.

    Parameters
    ----------
    X : array of shape (n, D)
    low, high : arrays of shape (n, T)
        Ends of the interval that holds each entry, as for :meth:`OnlineSolver.learn`; not both are
        infinite.
    weight : array of shape (n,)
    """

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray


class Iterate(NamedTuple):
    """Parameters, changed in place: V (R, D), Ut (R, T), intercept (T,), sigma (T,)."""

    V: FloatArray
    Ut: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    def copy(self) -> Iterate:
        """The same numbers in other memory, row by row."""
        return Iterate(*(part.copy(order="C") for part in self))


class RowPlan(NamedTuple):
    """Steps for the rows of one block.

    Parameters
    ----------
    Z : array of shape (n, D)
        Rows times the feature preconditioner.
    step, forget : arrays of shape (n,) or (number of batches,)
        γ of the parameters and f of the running moments.
    inverse : array of shape (R, R)
        G⁻¹, the preconditioner of the sketch.
    spread : float
        ρ ≥ 1, how far the curvature of a row may exceed its mean.
    lowest, highest : arrays of shape (T,)
        Limits of σ, the same where it is fixed.
    learns_intercept : float
        1 or 0.
    every : int
        Rows between two moves of the averages; the size of a batch.
    averaged : int
        How often the averages have moved.
    """

    Z: FloatArray
    step: FloatArray
    forget: FloatArray
    inverse: FloatArray
    spread: float
    lowest: FloatArray
    highest: FloatArray
    learns_intercept: float
    every: int
    averaged: int


def rows_of(block: Block, rows: slice) -> Block:
    """Some rows of a block."""
    return Block(*(part[rows] for part in block))


def tasks_of(block: Block, tasks: slice) -> Block:
    """Some tasks of a block."""
    return block._replace(low=block.low[:, tasks], high=block.high[:, tasks])


def count_entries(block: Block) -> FloatArray:
    """Weight of the known, of the bounded (observed or an interval) and of the observed entries.

    Each by task, (3, T).
    """
    return _weighted(block, (*_kinds(block), block.low == block.high))


def sketch(
    now: Iterate, plan: RowPlan, row: int, x: FloatArray, gamma: float, score: FloatArray
) -> FloatArray:
    r"""Step on V, given U, for one row: problem (P:V) of the paper; returns :math:`h = V^+x`.

    .. math::
        V^+ = V - \frac{\gamma}{1+\gamma\rho\ell}\,
            G^{-1}\textstyle\sum_t g_t U_t\,(Px)^\top, \qquad \ell = x^\top Px

    The paper's Algorithm 2 has a given step η in place of the preconditioners G⁻¹ and P. The
    step is implicit, for a curvature at least that of the row, so it cannot overshoot.

    Parameters
    ----------
    row : int
        Row of ``plan`` that belongs to x.
    x : array of shape (D,)
    gamma : float
        γ, times the weight of the row.
    score : array of shape (T,)
        g, derivatives of the nll by the latent scores.
    """
    z = plan.Z[row]
    leverage = max(float(x @ z), 0.0)
    direction = plan.inverse @ (now.Ut @ score)
    direction *= gamma / (1.0 + gamma * leverage * plan.spread)
    h = now.V @ x - leverage * direction
    now.V[...] -= np.outer(direction, z)
    return np.asarray(h)


def refine(
    now: Iterate,
    plan: RowPlan,
    h: FloatArray,
    gamma: float,
    fade: float,
    entry: FloatArray,
    kind: tuple[BoolArray, BoolArray],
    moments: FloatArray,
) -> float:
    r"""Step on each U_t, given V, for one row: problem (P:U) of the paper, "subspace refinement".

    .. math::
        (U_t^+, b_t^+) = (U_t, b_t) - \frac{\gamma\sigma_t^2 g_t}
            {\bar w_t + \gamma(1+\|h\|^2)}\,(h, 1), \qquad h = V^+x

    Tasks are decoupled, as in step 2 of Algorithm 1. The intercept b_t follows U_t, and σ_t the
    derivative by log σ_t. Returns :math:`\sum_t\|U_t^+ - U_t\|^2`.

    Parameters
    ----------
    h : array of shape (R,)
    gamma, fade : float
        γ, times the weight of the row, and the share by which the running means move.
    entry : array of shape (4, T)
        nll, score g by the latent, derivative by log σ and curvature.
    kind : pair of bool arrays of shape (T,)
        Known entries, and those that are bounded on both sides (observed, or an interval).
    moments : array of shape (3, T)
        Running means of the curvature w̄ and of the share of bounded entries among the known
        ones, and of the share of known entries.
    """
    _, score, by_log_sigma, curvature = entry
    known, bounded = kind
    moments[0] += fade * known * (curvature - moments[0])
    moments[1] += fade * known * (bounded - moments[1])
    moments[2] += fade * (known - moments[2])
    square = float(h @ h)
    move = gamma * np.square(now.sigma) * score
    move /= np.maximum(moments[0], LEAST_CURVATURE) + gamma * (1.0 + square)
    now.Ut[...] -= np.outer(h, move)
    now.intercept[...] -= plan.learns_intercept * move
    now.sigma[...] *= sigma_factor(fade, by_log_sigma, moments[1])
    np.clip(now.sigma, plan.lowest, plan.highest, out=now.sigma)
    return float(move @ move) * square


def sigma_factor(fade: float, by_log_sigma: FloatArray, bounded: FloatArray) -> FloatArray:
    """Factor on σ: a step down the derivative by log σ, 2 per bounded entry being its curvature."""
    return 1.0 + np.clip(-0.5 * fade * by_log_sigma / np.maximum(bounded, 0.05), -0.2, 0.2)


def move_towards(mean: Iterate, now: Iterate, averaged: int) -> None:
    """The k-th move of the average, a share 4/(k + 3) of its distance to the iterate."""
    for middle, last in zip(mean, now, strict=True):
        middle += 4.0 / (averaged + 3.0) * (last - middle)


def learn_rows(
    noise: Noise, block: Block, plan: RowPlan, now: Iterate, mean: Iterate, moments: FloatArray
) -> tuple[float, float]:
    """Sketch and refine for each row in turn: Algorithm 1 with steps of our own.

    Returns the weighted nll, each row by the iterate before its step, infinite if numbers
    overflowed, and the squared lengths of the steps of U.
    """
    if has_kernels(noise):
        from deeptobit.online import kernels

        return kernels.learn_rows(block, plan, now, mean, moments)
    known, bounded = _kinds(block)
    loss = squares = 0.0
    for row, x in enumerate(block.X):
        weight = float(block.weight[row])
        gamma, fade = weight * plan.step[row], min(weight * plan.forget[row], 0.5)
        latent = now.intercept + (now.V @ x) @ now.Ut
        here = rows_of(block, slice(row, row + 1))
        entry = _entries(noise, here, latent, now.sigma)[:, 0]
        loss += weight * float(entry[0].sum())
        entry[1] = np.clip(entry[1], -REACH, REACH) / now.sigma
        h = sketch(now, plan, row, x, gamma, entry[1])
        squares += refine(now, plan, h, gamma, fade, entry, (known[row], bounded[row]), moments)
        if (row + 1) % plan.every == 0:
            move_towards(mean, now, plan.averaged + (row + 1) // plan.every)
    return loss, squares


# The same step for several rows at once, as matrix products.


def learn_batches(
    noise: Noise, block: Block, plan: RowPlan, now: Iterate, mean: Iterate, moments: FloatArray
) -> tuple[float, float]:
    r"""Sketch and refine for all rows of a batch together: one step of problems (P:V) and (P:U).

    With K = XPXᵀ and scores g (rows by tasks), the step of V solves the quadratic model of the
    whole batch,

    .. math:: V \leftarrow V - \left(\gamma(I+\gamma\rho\,\Omega K)^{-1}\Omega\,g\,U\,G^{-1}
        \right)^\top XP

    and that of :math:`(U_t, b_t)` solves :math:`(\bar w_t/\gamma + \tilde H^\top\Omega\tilde H)
    \delta = \tilde H^\top\Omega\,\sigma_t^2 g_t` with :math:`\tilde H = [XV^\top, 1]` after the
    step of V. For one row both are the steps of :func:`learn_rows`, which returns the same. The
    average moves after each batch.
    """
    loss = squares = 0.0
    for index, first in enumerate(range(0, len(block.X), plan.every)):
        rows = slice(first, first + plan.every)
        batch, Z = rows_of(block, rows), plan.Z[rows]
        weight, gamma, forget = batch.weight, float(plan.step[index]), float(plan.forget[index])
        H = batch.X @ now.V.T
        score, sums = evaluate(noise, batch, slice(0, len(now.sigma)), H @ now.Ut, now)
        loss += float(sums[0].sum())

        K = Z @ batch.X.T
        system = np.eye(len(H)) + gamma * plan.spread * weight[:, None] * K
        move = gamma * np.linalg.solve(system, score @ now.Ut.T @ plan.inverse)
        now.V[...] -= move.T @ Z
        H -= K @ move
        wide = np.column_stack([H, np.full(len(H), plan.learns_intercept)])
        gram = (wide * weight[:, None]).T @ wide
        if not np.isfinite(gram).all():
            return np.inf, 0.0  # the step is then repeated with half its length
        values, vectors = np.linalg.eigh(gram)
        move_moments(moments, sums, float(weight.sum()), min(forget, 0.5))
        curvature = np.maximum(moments[0], LEAST_CURVATURE)
        target = (wide @ vectors).T @ score
        target *= np.square(now.sigma) / (curvature / gamma + values[:, None])
        step = vectors @ target
        now.Ut[...] -= step[:-1]
        now.intercept[...] -= plan.learns_intercept * step[-1]
        now.sigma[...] *= sigma_factor(forget, sums[2], moments[1])
        np.clip(now.sigma, plan.lowest, plan.highest, out=now.sigma)
        squares += float(np.vdot(step[:-1], step[:-1]))
        move_towards(mean, now, plan.averaged + index + 1)
    return loss, squares


def move_moments(moments: FloatArray, sums: FloatArray, rows: float, forget: float) -> None:
    """Move the running means by as much as that many rows would."""
    known = sums[3]
    count = np.maximum(known, 1e-300)
    fade = 1.0 - (1.0 - forget) ** known
    moments[0] += fade * (sums[1] / count - moments[0])
    moments[1] += fade * (sums[4] / count - moments[1])
    moments[2] += (1.0 - (1.0 - forget) ** rows) * (known / max(rows, 1e-300) - moments[2])


# The likelihood of a block, and sums over its rows.


def _kinds(block: Block) -> tuple[BoolArray, BoolArray]:
    """Known entries, and those that are bounded on both sides, both (n, T)."""
    return ~np.isnan(block.low), np.isfinite(block.low) & np.isfinite(block.high)


def _entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Negative log likelihood, score, derivative by log σ and curvature at σ = 1, (4, n, T).

    The log σ of observed entries is left out, and curvature is taken between 0 and 1.
    """
    at = _at_unit_scale(noise, block, latent, sigma)
    return np.stack([at.nll, at.latent, at.log_sigma, np.clip(at.latent_latent, 0.0, 1.0)])


def _at_unit_scale(
    noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    start, end = (block.low - latent) / sigma, (block.high - latent) / sigma
    return reference_evaluate(noise, start, end, np.zeros(start.shape), np.ones(1))


def _weighted(block: Block, fields: tuple[NDArray[Any], ...]) -> FloatArray:
    """Weighted sums over the rows, one row of sums for each field."""
    return np.stack([block.weight @ field.astype(np.float64) for field in fields])


def evaluate(
    noise: Noise, block: Block, piece: slice, linear: FloatArray, model: Iterate
) -> tuple[FloatArray, FloatArray]:
    r"""Weighted scores within reach, (n, k), for a piece of k tasks, and sums over rows, (8, k).

    The sums are of nll, curvature and derivative by log σ; of known, bounded and observed entries;
    and of the derivatives :math:`g\ell` and :math:`w\ell^2` by the length of the linear part ℓ
    (n, k) of the latent score. The log σ of observed entries is left out of the nll.
    """
    intercept, sigma = model.intercept[piece], model.sigma[piece]
    if has_kernels(noise):
        from deeptobit.online import kernels

        return kernels.evaluate(block, piece.start, linear, intercept, sigma)
    some, lift = tasks_of(block, piece), linear / sigma
    nll, score, by_log_sigma, curvature = _entries(noise, some, linear + intercept, sigma)
    kinds = *_kinds(some), some.low == some.high
    by_length = score * lift, curvature * lift**2
    sums = _weighted(block, (nll, curvature, by_log_sigma, *kinds, *by_length))
    return block.weight[:, None] * np.clip(score, -REACH, REACH) / sigma, sums


def validation_sums(noise: Noise, block: Block, model: Iterate, n_threads: int = 1) -> FloatArray:
    """The sums of :func:`evaluate` over a block that a model has not learned from, (8, T)."""
    H = block.X @ model.V.T

    def work(piece: slice) -> FloatArray:
        return evaluate(noise, block, piece, H @ model.Ut[:, piece], model)[1]

    return by_pieces(len(model.sigma), n_threads, work)


def null_sums(
    noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Fields of ``Derivatives`` at σ = 1 around a constant score, weighted sums, (6, T)."""

    def work(piece: slice) -> FloatArray:
        if has_kernels(noise):
            from deeptobit.online import kernels

            return kernels.null_sums(block, piece.start, mean[piece], sigma[piece])
        at = _at_unit_scale(noise, tasks_of(block, piece), mean[piece], sigma[piece])
        return _weighted(block, at)

    return by_pieces(len(sigma), n_threads, work)


# Sums that are decoupled by task, in pieces that are shared among threads.

PIECE = 512  # tasks; fixed, so that results do not depend on the number of threads


def by_pieces(n_tasks: int, n_threads: int, work: Callable[[slice], FloatArray]) -> FloatArray:
    """What ``work`` gives for each piece of so many tasks, side by side.

    Examples
    --------
    >>> by_pieces(1000, 2, lambda piece: np.ones((2, piece.stop - piece.start))).shape
    (2, 1000)
    """
    pieces = [slice(at, min(at + PIECE, n_tasks)) for at in range(0, n_tasks, PIECE)]
    if n_threads == 1 or len(pieces) == 1:
        return np.hstack([work(piece) for piece in pieces])
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        # Each with the caller's context: how NumPy treats an overflow is part of it.
        waiting = [pool.submit(copy_context().run, work, piece) for piece in pieces]
        return np.hstack([future.result() for future in waiting])
