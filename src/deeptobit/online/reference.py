"""A block of rows, and the step of one row on U and V, in NumPy.

``sketch`` and ``refine`` are the two halves of the paper's Algorithm 1, ``learn_rows`` is its loop
over rows. Gaussian noise has compiled twins, in ``step`` and ``kernels``, which are called from
here; numba loads on first use, so that importing the package stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Noise, has_kernels, reference_evaluate

REACH = 10.0  # largest score, in units of 1/σ, that a step may follow: one outlier is not a trend
LEAST_CURVATURE = 0.02


class Block(NamedTuple):
    """Some rows in standard units, with their entries sorted by kind.

    Parameters
    ----------
    X : array of shape (n, D)
    low, high : arrays of shape (n, T)
    edge, sign : arrays of shape (n, T)
        y and 0 where observed, the finite end and ±1 where censored on one side, else NaN and 0.
    weight : array of shape (n,)
    closed : int
        Number of entries with two different finite ends.
    """

    X: FloatArray
    low: FloatArray
    high: FloatArray
    edge: FloatArray
    sign: FloatArray
    weight: FloatArray
    closed: int


class Iterate(NamedTuple):
    """Parameters, changed in place: V (R, D), Ut (R, T), intercept (T,), sigma (T,)."""

    V: FloatArray
    Ut: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    def copy(self) -> Iterate:
        """The same numbers in other memory, row by row."""
        return Iterate(*(part.copy(order="C") for part in self))

    def set_to(self, other: Iterate) -> None:
        """Take over the numbers of another iterate."""
        for mine, theirs in zip(self, other, strict=True):
            mine[...] = theirs

    def is_finite(self) -> bool:
        """Whether every number is."""
        return all(bool(np.isfinite(part.sum())) for part in self)  # NaN and infinity spread


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
        Limits of σ.
    learns_intercept, learns_sigma : float
        1 or 0.
    every : int
        Rows between two moves of the averages; the size of a batch.
    """

    Z: FloatArray
    step: FloatArray
    forget: FloatArray
    inverse: FloatArray
    spread: float
    lowest: FloatArray
    highest: FloatArray
    learns_intercept: float
    learns_sigma: float
    every: int


def rows_of(block: Block, rows: slice) -> Block:
    """Some rows of a block."""
    X, low, high, edge, sign, weight, closed = block
    return Block(X[rows], low[rows], high[rows], edge[rows], sign[rows], weight[rows], closed)


def tasks_of(block: Block, tasks: slice) -> Block:
    """Some tasks of a block."""
    X, low, high, edge, sign, weight, closed = block
    low, high, edge, sign = (array[:, tasks] for array in (low, high, edge, sign))
    return Block(X, low, high, edge, sign, weight, closed)


def first_half(block: Block) -> Block:
    """The first half of the rows, at least one."""
    return rows_of(block, slice(0, max(1, len(block.X) // 2)))


def count_entries(block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weight of the known, of the bounded (observed or an interval) and of the observed entries.

    Each by task, (T,).
    """
    known, bounded = _weighted(block, _kinds(block))
    if not block.closed:
        return known, bounded, bounded
    return known, bounded, _weighted(block, (block.low == block.high,))[0]


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
        nll, score g by the latent, curvature and derivative by log σ.
    kind : pair of bool arrays of shape (T,)
        Known entries, and those that are bounded on both sides (observed, or an interval).
    moments : array of shape (3, T)
        Running means of the curvature w̄ and of the share of bounded entries among the known
        ones, and of the share of known entries.
    """
    _, score, curvature, by_log_sigma = entry
    known, bounded = kind
    moments[0] += fade * known * (curvature - moments[0])
    moments[1] += fade * known * (bounded - moments[1])
    moments[2] += fade * (known - moments[2])
    square = float(h @ h)
    move = gamma * np.square(now.sigma) * score
    move /= np.maximum(moments[0], LEAST_CURVATURE) + gamma * (1.0 + square)
    now.Ut[...] -= np.outer(h, move)
    now.intercept[...] -= plan.learns_intercept * move
    if plan.learns_sigma:
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
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
) -> int:
    """Sketch and refine for each row in turn: Algorithm 1 with steps of our own.

    Parameters
    ----------
    averaged : int
        How often the average has moved.
    out : array of shape (2,)
        Gains the weighted nll before each step, and the squared lengths of the steps of U.

    Returns
    -------
    int
        The new count of moves of the average.
    """
    if has_kernels(noise):
        from deeptobit.online import step

        return step.learn_rows(block, plan, now, mean, moments, averaged, out)
    kind = _kinds(block)
    for row, x in enumerate(block.X):
        weight, fade = block.weight[row], min(block.weight[row] * plan.forget[row], 0.5)
        entry = _row_entry(noise, block, row, now)
        out[0] += weight * entry[0].sum()
        entry[1] = np.clip(entry[1], -REACH, REACH) / now.sigma
        gamma = weight * plan.step[row]
        h = sketch(now, plan, row, x, gamma, entry[1])
        out[1] += refine(now, plan, h, gamma, fade, entry, (kind[0][row], kind[1][row]), moments)
        if (row + 1) % plan.every == 0:
            averaged += 1
            move_towards(mean, now, averaged)
    return averaged


def _row_entry(noise: Noise, block: Block, row: int, now: Iterate) -> FloatArray:
    """What :func:`entries` gives for one row, (4, T)."""
    latent = now.intercept + (now.V @ block.X[row]) @ now.Ut
    one = rows_of(block, slice(row, row + 1))
    return np.asarray(entries(noise, one, latent[None], now.sigma)[0])


def _kinds(block: Block) -> tuple[BoolArray, BoolArray]:
    """Known entries, and those that are bounded on both sides, both (n, T)."""
    known = ~np.isnan(block.low)
    return known, known & (block.sign == 0.0)


def entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Negative log likelihood, score, curvature and derivative by log σ at σ = 1, (n, 4, T).

    The log σ of observed entries is left out, and curvature is taken between 0 and 1.
    """
    if has_kernels(noise):
        from deeptobit.online import kernels

        return kernels.entries(block, latent, sigma)
    at = _at_unit_scale(noise, block, latent, sigma)
    curvature = np.clip(at.latent_latent, 0.0, 1.0)
    return np.stack([at.nll, at.latent, curvature, at.log_sigma], axis=1)


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


def validation_sums(
    noise: Noise, block: Block, model: Iterate, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    r"""Weighted sums over a block that a model has not learned from, (6, T).

    They are of nll, of the derivatives :math:`g\ell` and :math:`w\ell^2` by the length of the
    linear part ℓ, of the derivative by log σ, of known and of observed entries.
    """
    H = block.X @ model.V.T

    def work(piece: slice) -> FloatArray:
        shift, scale = model.intercept[piece], sigma[piece]
        linear = H @ model.Ut[:, piece]
        if has_kernels(noise):
            from deeptobit.online import kernels

            return kernels.validation_sums(block, piece.start, linear, shift, scale)
        some = tasks_of(block, piece)
        entry, lift = entries(noise, some, linear + shift, scale), linear / scale
        nll, score, curvature, by_log_sigma = entry.swapaxes(0, 1)
        known, exact = ~np.isnan(some.low), some.low == some.high
        fields = nll, score * lift, curvature * lift**2, by_log_sigma, known, exact
        return _weighted(block, fields)

    return by_pieces(len(sigma), n_threads, work)


def scores(
    noise: Noise, block: Block, piece: slice, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted scores by the latent within reach, (n, k), for a piece of k tasks, and sums, (5, k).

    The sums are of nll, curvature and derivative by log σ, and of known and of bounded entries.
    """
    if has_kernels(noise):
        from deeptobit.online import kernels

        return kernels.scores(block, piece.start, latent, sigma)
    some = tasks_of(block, piece)
    nll, score, curvature, by_log_sigma = entries(noise, some, latent, sigma).swapaxes(0, 1)
    sums = _weighted(block, (nll, curvature, by_log_sigma, *_kinds(some)))
    return block.weight[:, None] * np.clip(score, -REACH, REACH) / sigma, sums


def _weighted(block: Block, fields: tuple[NDArray[Any], ...]) -> FloatArray:
    """Weighted sums over the rows, one row of sums for each field."""
    return np.stack([block.weight @ field.astype(np.float64) for field in fields])


def _at_unit_scale(
    noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    start, end = (block.low - latent) / sigma, (block.high - latent) / sigma
    return reference_evaluate(noise, start, end, np.zeros(start.shape), np.ones(1))


# Work that is decoupled by task, in pieces that are shared among threads.

Result = TypeVar("Result")

PIECE = 512  # tasks; fixed, so that results do not depend on the number of threads


@dataclass(frozen=True)
class TaskPieces:
    """Slices of tasks, and threads to share them, if any."""

    pieces: list[slice]
    pool: ThreadPoolExecutor | None

    def map(self, work: Callable[[slice], Result]) -> list[Result]:
        """Results of the pieces, in their order."""
        if self.pool is None:
            return [work(piece) for piece in self.pieces]
        # Each with the caller's context: how NumPy treats an overflow is part of it.
        waiting = [self.pool.submit(copy_context().run, work, piece) for piece in self.pieces]
        return [future.result() for future in waiting]


def by_pieces(n_tasks: int, n_threads: int, work: Callable[[slice], FloatArray]) -> FloatArray:
    """Results of all pieces side by side.

    Examples
    --------
    >>> by_pieces(3, 1, lambda piece: np.ones((2, piece.stop - piece.start))).shape
    (2, 3)
    """
    if n_tasks <= PIECE:
        return work(slice(0, n_tasks))
    with task_pieces(n_tasks, n_threads) as tasks:
        return np.hstack(tasks.map(work))


@contextmanager
def task_pieces(n_tasks: int, n_threads: int) -> Iterator[TaskPieces]:
    """The pieces of so many tasks, with threads while the context lasts.

    Examples
    --------
    >>> with task_pieces(1000, n_threads=2) as tasks:
    ...     tasks.map(lambda piece: (piece.start, piece.stop))
    [(0, 512), (512, 1000)]
    """
    pieces = [slice(at, min(at + PIECE, n_tasks)) for at in range(0, n_tasks, PIECE)]
    if n_threads == 1 or len(pieces) == 1:
        yield TaskPieces(pieces, None)
        return
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        yield TaskPieces(pieces, pool)
