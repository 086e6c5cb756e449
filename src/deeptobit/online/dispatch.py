"""The online solver's work on a block of rows, compiled where the noise has a kernel.

Every function gives what the function of the same name in ``reference`` gives. Numba loads on first
use, so that importing the package stays quick.
"""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.online import reference
from deeptobit.online.rows import (
    Block,
    GradientPlan,
    Iterate,
    RowPlan,
    by_pieces,
    task_pieces,
    tasks_of,
)


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
    standard_units(X, *features, x)
    start, end, edge, sign = (np.empty(low.shape) for _ in range(4))

    def work(piece: slice) -> int:
        location, precision = (array[piece] for array in targets)
        out = start, end, edge, sign
        return standard_targets(low, high, piece.start, location, precision, out)

    with task_pieces(low.shape[1], n_threads) as pieces:
        return Block(x, start, end, edge, sign, weight, sum(pieces.map(work)))


def null_sums(
    noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Same as :func:`reference.null_sums`, (6, T)."""

    def work(piece: slice) -> FloatArray:
        if not isinstance(noise, Gaussian):
            some = tasks_of(block, piece)
            return reference.null_sums(noise, some, mean[piece], sigma[piece])
        from deeptobit.online.kernels import add_null

        out = np.zeros((6, piece.stop - piece.start))
        add_null(block, piece.start, mean[piece], sigma[piece], out)
        return out

    return by_pieces(len(sigma), n_threads, work)


def validation_sums(
    noise: Noise, block: Block, model: Iterate, sigma: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Same as :func:`reference.validation_sums` for U and V of a model, (6, T)."""
    H = block.X @ model.V.T

    def work(piece: slice) -> FloatArray:
        shift, scale = model.intercept[piece], sigma[piece]
        linear = H @ model.Ut[:, piece]
        if not isinstance(noise, Gaussian):
            return reference.validation_sums(noise, tasks_of(block, piece), linear, shift, scale)
        from deeptobit.online.kernels import add_validation

        out = np.zeros((6, len(scale)))
        add_validation(block, piece.start, linear, shift, scale, out)
        return out

    return by_pieces(len(sigma), n_threads, work)


def entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Same as :func:`reference.entries`, (n, 4, T)."""
    if not isinstance(noise, Gaussian):
        return reference.entries(noise, block.low, block.high, latent, sigma)
    from deeptobit.online.kernels import fill_entries

    out = np.empty((len(latent), 4, len(sigma)))
    fill_entries(block, latent, sigma, out)
    return out


def scores(
    noise: Noise, block: Block, piece: slice, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Same as :func:`reference.scores` for a piece of k tasks, (n, k) and (5, k)."""
    if not isinstance(noise, Gaussian):
        return reference.scores(noise, tasks_of(block, piece), latent, sigma)
    from deeptobit.online.kernels import fill_scores

    score, sums = np.empty(latent.shape), np.zeros((5, len(sigma)))
    fill_scores(block, piece.start, latent, sigma, reference.REACH, score, sums)
    return score, sums


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
    """Same as :func:`reference.learn_rows`."""
    if not isinstance(noise, Gaussian):
        return reference.learn_rows(noise, block, plan, now, mean, moments, averaged, out)
    from deeptobit.online import step

    return step.learn_rows(block, plan, now, mean, moments, averaged, out)


def gradient_rows(
    noise: Noise,
    block: Block,
    plan: GradientPlan,
    now: Iterate,
    observed_share: FloatArray,
    out: FloatArray,
) -> None:
    """Same as :func:`reference.gradient_rows`."""
    if not isinstance(noise, Gaussian):
        reference.gradient_rows(noise, block, plan, now, observed_share, out)
        return
    from deeptobit.online import step

    step.gradient_rows(block, plan, now, observed_share, out)
