"""The online solver's work on a block of rows, compiled where the noise has a kernel."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels import _online_reference as reference
from deeptobit.kernels._online_tasks import by_pieces, task_pieces
from deeptobit.kernels._online_types import Block, Iterate, PlainPlan, RowPlan, tasks_of
from deeptobit.likelihood import Gaussian, Noise

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
    from deeptobit.kernels._online_sums import standard_targets, standard_units

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
    from deeptobit.kernels import _online_sums

    values, known = np.empty(low.shape), np.empty(low.shape)
    _online_sums.fill_middles(low, high, values, known)
    return values, known


def add_squares(X: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Add ``weight @ X**2`` to ``out`` without the matrix of squares."""
    from deeptobit.kernels import _online_sums

    _online_sums.add_squares(X, weight, out)


def null_sums(
    noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Compiled twin of :func:`reference_null_sums`, (6, T)."""

    def work(piece: slice) -> FloatArray:
        if not isinstance(noise, Gaussian):
            some = tasks_of(block, piece)
            return reference.reference_null_sums(noise, some, mean[piece], sigma[piece])
        from deeptobit.kernels._online_sums import add_null

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
        from deeptobit.kernels._online_sums import add_evidence

        out = np.zeros((6, len(scale)))
        add_evidence(block, piece.start, linear, shift, scale, out)
        return out

    return by_pieces(len(sigma), n_threads, work)


def entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Compiled twin of :func:`reference_entries`, (n, 4, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_entries(noise, block.low, block.high, latent, sigma)
    from deeptobit.kernels._online_sums import fill_entries

    out = np.empty((len(latent), 4, len(sigma)))
    fill_entries(block, latent, sigma, out)
    return out


def scores(
    noise: Noise, block: Block, piece: slice, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_scores` for a piece of k tasks, (n, k) and (5, k)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_scores(noise, tasks_of(block, piece), latent, sigma)
    from deeptobit.kernels._online_sums import fill_scores

    score, sums = np.empty(latent.shape), np.zeros((5, len(sigma)))
    fill_scores(block, piece.start, latent, sigma, reference.REACH, score, sums)
    return score, sums


def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_whitening`."""
    from deeptobit.kernels import _online_turn

    return _online_turn.whitening(second_moments)


def turn(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Compiled twin of :func:`reference_turn`."""
    from deeptobit.kernels import _online_turn

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
    from deeptobit.kernels import _online_turn

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
    from deeptobit.kernels import _online_rows

    return _online_rows.learn_rows(block, plan, now, mean, moments, averaged, out)


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
    from deeptobit.kernels import _online_plain

    _online_plain.plain_rows(block, plan, now, observed_share, out)
