"""The online solver's work on a block of rows, compiled where the noise has a kernel."""

import numpy as np
from scipy.linalg.lapack import dposv

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.online import reference as reference
from deeptobit.online.rows import (
    PIECE,
    Block,
    Iterate,
    PlainPlan,
    RowPlan,
    TaskPieces,
    by_pieces,
    rows_of,
    task_pieces,
    tasks_of,
)

# Numba loads on first use, so that importing the package stays quick.


def standard_block(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    weight: FloatArray,
    features: tuple[FloatArray, FloatArray],
    targets: tuple[FloatArray, FloatArray],
    n_threads: int = 1,
) -> Block:
    """Rows in standard units, (value − location) · precision with these two per column.

    Examples
    --------
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> X, low, high = np.ones((2, 1)), np.array([[4.0], [-np.inf]]), np.array([[4.0], [2.0]])
    >>> block = standard_block(X, low, high, np.ones(2), (zero, one), (2 * one, one))
    >>> block.edge.ravel(), block.sign.ravel()
    (array([2., 0.]), array([0., 1.]))
    """
    from deeptobit.online.kernels import standard_targets, standard_units

    x = np.empty(X.shape)
    start, end, edge, sign = (np.empty(low.shape) for _ in range(4))
    standard_units(X, *features, x)

    def work(piece: slice) -> int:
        location, precision = (array[piece] for array in targets)
        out = start, end, edge, sign
        return standard_targets(low, high, piece.start, location, precision, out)

    with task_pieces(low.shape[1], n_threads) as pieces:
        return Block(x, start, end, edge, sign, weight, sum(pieces.map(work)))


def middles(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_middles`, both (n, T)."""
    from deeptobit.online import kernels as _online_sums

    values, known = np.empty(low.shape), np.empty(low.shape)
    _online_sums.fill_middles(low, high, values, known)
    return values, known


def add_squares(X: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Add ``weight @ X**2`` to ``out`` without the matrix of squares."""
    from deeptobit.online import kernels as _online_sums

    _online_sums.add_squares(X, weight, out)


def null_sums(
    noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Compiled twin of :func:`reference_null_sums`, (6, T)."""

    def work(piece: slice) -> FloatArray:
        if not isinstance(noise, Gaussian):
            some = tasks_of(block, piece)
            return reference.reference_null_sums(noise, some, mean[piece], sigma[piece])
        from deeptobit.online.kernels import add_null

        out = np.zeros((6, piece.stop - piece.start))
        add_null(block, piece.start, mean[piece], sigma[piece], out)
        return out

    return by_pieces(len(sigma), n_threads, work)


def evidence(
    noise: Noise, block: Block, model: Iterate, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Compiled twin of :func:`reference_evidence` for U and V of a model, (6, T)."""
    H = block.X @ model.V.T

    def work(piece: slice) -> FloatArray:
        shift, scale = model.intercept[piece], sigma[piece]
        linear = H @ model.Ut[:, piece]
        if not isinstance(noise, Gaussian):
            return reference.reference_evidence(noise, tasks_of(block, piece), linear, shift, scale)
        from deeptobit.online.kernels import add_evidence

        out = np.zeros((6, len(scale)))
        add_evidence(block, piece.start, linear, shift, scale, out)
        return out

    return by_pieces(len(sigma), n_threads, work)


def entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Compiled twin of :func:`reference_entries`, (n, 4, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_entries(noise, block.low, block.high, latent, sigma)
    from deeptobit.online.kernels import fill_entries

    out = np.empty((len(latent), 4, len(sigma)))
    fill_entries(block, latent, sigma, out)
    return out


def scores(
    noise: Noise, block: Block, piece: slice, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_scores` for a piece of k tasks, (n, k) and (5, k)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_scores(noise, tasks_of(block, piece), latent, sigma)
    from deeptobit.online.kernels import fill_scores

    score, sums = np.empty(latent.shape), np.zeros((5, len(sigma)))
    fill_scores(block, piece.start, latent, sigma, reference.REACH, score, sums)
    return score, sums


def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_whitening`."""
    from deeptobit.online import kernels as _online_turn

    return _online_turn.whitening(second_moments)


def turn(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Compiled twin of :func:`reference_turn`."""
    from deeptobit.online import kernels as _online_turn

    return _online_turn.turn(both, now, mean, curvature, damping)


def settle(
    both: FloatArray,
    now: Iterate,
    mean: Iterate,
    most: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> bool:
    """Compiled twin of :func:`reference_settle`."""
    from deeptobit.online import kernels as _online_turn

    return _online_turn.settle(both, now, mean, most, lowest, highest)


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
    """Compiled twin of :func:`reference_learn_rows`."""
    if not isinstance(noise, Gaussian):
        return reference.reference_learn_rows(noise, block, plan, now, mean, moments, averaged, out)
    from deeptobit.online import step as _onregression_rows

    return _onregression_rows.learn_rows(block, plan, now, mean, moments, averaged, out)


def plain_rows(
    noise: Noise,
    block: Block,
    plan: PlainPlan,
    now: Iterate,
    observed_share: FloatArray,
    out: FloatArray,
) -> None:
    """Compiled twin of :func:`reference_plain_rows`."""
    if not isinstance(noise, Gaussian):
        reference.reference_plain_rows(noise, block, plan, now, observed_share, out)
        return
    from deeptobit.online import step as _online_plain

    _online_plain.plain_rows(block, plan, now, observed_share, out)


# The adaptive step for several rows at once, as matrix products by pieces of tasks.


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
    """All batches of a block: compiled if one piece holds all tasks, else piece by piece."""
    if not isinstance(noise, Gaussian) or len(now.sigma) > PIECE:
        return batches_by_pieces(noise, block, plan, now, mean, moments, averaged, out, n_threads)
    from deeptobit.online import step as _online_batch

    return _online_batch.learn_batches(block, plan, now, mean, moments, averaged, out)


def batches_by_pieces(
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
    r"""Implicit steps of V, then of (U, b) and σ, for all rows of a batch together.

    With K = XPXᵀ and scores g (rows by tasks), the step of V solves the quadratic model of the
    whole batch,

    .. math:: V \leftarrow V - \left(\gamma(I+\gamma\rho\,\Omega K)^{-1}\Omega\,g\,U\,G^{-1}
        \right)^\top XP

    and that of :math:`(U_t, b_t)` solves :math:`(\bar w_t/\gamma + \tilde H^\top\Omega\tilde H)
    \delta = \tilde H^\top\Omega\,\sigma_t^2 g_t` with :math:`\tilde H = [XV^\top, 1]` after the
    step of V. For one row both are the steps of the row kernel. Parameters are those of
    ``reference_learn_rows``; the averages move after each batch.
    """
    with task_pieces(len(now.sigma), n_threads) as tasks:
        for batch, first in enumerate(range(0, len(block.X), plan.every)):
            rows = slice(first, first + plan.every)
            at = slice(batch, batch + 1)
            here = plan._replace(Z=plan.Z[rows], step=plan.step[at], forget=plan.forget[at])
            _learn_batch(noise, rows_of(block, rows), here, now, moments, out, tasks)
            averaged += 1
            for middle, last in zip(mean, now, strict=True):
                middle += 4.0 / (averaged + 3.0) * (last - middle)
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
        score, sums = scores(noise, block, piece, latent, now.sigma[piece])
        return score, sums, score @ now.Ut[:, piece].T

    evaluated = tasks.map(evaluate)
    out[0] += sum(float(sums[0].sum()) for _, sums, _ in evaluated)
    pull = sum((pull for _, _, pull in evaluated), np.zeros(()))

    leverage = plan.Z @ block.X.T
    step = _damped(leverage, pull @ plan.inverse, block.weight, gamma, plan.spread)
    now.V[...] -= step.T @ plan.Z
    H -= leverage @ step
    wide = np.column_stack([H, np.full(len(H), plan.learns_intercept)])
    gram = (wide * block.weight[:, None]).T @ wide
    if not np.isfinite(gram).all():  # the guard sees it
        now.V[...] = np.nan
        return
    values, vectors = np.linalg.eigh(gram)
    turned = (wide @ vectors).T
    rows = float(block.weight.sum())

    def refine(piece: slice) -> float:
        score, sums, _ = evaluated[piece.start // PIECE]
        mine, sigma = moments[:, piece], now.sigma[piece]
        _move_moments(mine, sums, rows, min(forget, 0.5))
        target = turned @ score
        target *= np.square(sigma) / (np.maximum(mine[0], 0.02) / gamma + values[:, None])
        move = vectors @ target
        now.Ut[:, piece] -= move[:-1]
        now.intercept[piece] -= plan.learns_intercept * move[-1]
        if plan.learns_sigma:
            change = np.clip((-0.5 * forget) * sums[2] / np.maximum(mine[1], 0.05), -0.2, 0.2)
            sigma *= 1.0 + change
            np.clip(sigma, plan.lowest[piece], plan.highest[piece], out=sigma)
        return float(np.vdot(move[:-1], move[:-1]))

    out[1] += sum(tasks.map(refine))


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
