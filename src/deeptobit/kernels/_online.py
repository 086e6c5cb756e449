"""The online solver's work on a block of rows, compiled where the noise has a kernel."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels import _online_reference as reference
from deeptobit.kernels._online_types import Block, Iterate, PlainPlan, RowPlan
from deeptobit.likelihood import Gaussian, Noise

# Numba loads on first use, so that importing the package stays quick.


def standard_block(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    weight: FloatArray,
    features: tuple[FloatArray, FloatArray],
    targets: tuple[FloatArray, FloatArray],
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
    from deeptobit.kernels._online_entry import split_entries
    from deeptobit.kernels._online_sums import standard_units

    x, start, end = np.empty(X.shape), np.empty(low.shape), np.empty(low.shape)
    edge, sign = np.empty(low.shape), np.empty(low.shape)
    standard_units(X, *features, x)
    standard_units(low, *targets, start)
    standard_units(high, *targets, end)
    closed = split_entries(start, end, edge, sign)
    return Block(x, start, end, edge, sign, weight, closed)


def null_sums(noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray) -> FloatArray:
    """Compiled twin of :func:`reference_null_sums`, (6, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_null_sums(noise, block, mean, sigma)
    from deeptobit.kernels._online_sums import add_null

    out = np.zeros((6, len(sigma)))
    add_null(block, mean, sigma, out)
    return out


def evidence(
    noise: Noise, block: Block, linear: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> FloatArray:
    """Compiled twin of :func:`reference_evidence`, (6, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_evidence(noise, block, linear, intercept, sigma)
    from deeptobit.kernels._online_sums import add_evidence

    out = np.zeros((6, len(sigma)))
    add_evidence(block, linear, intercept, sigma, out)
    return out


def entries(noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Compiled twin of :func:`reference_entries`, (n, 4, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_entries(noise, block.low, block.high, latent, sigma)
    from deeptobit.kernels._online_sums import fill_entries

    out = np.empty((len(latent), 4, len(sigma)))
    fill_entries(block, latent, sigma, out)
    return out


def scores(
    noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of :func:`reference_scores`, (n, T) and (5, T)."""
    if not isinstance(noise, Gaussian):
        return reference.reference_scores(noise, block, latent, sigma)
    from deeptobit.kernels._online_sums import fill_scores

    score, sums = np.empty(latent.shape), np.zeros((5, len(sigma)))
    fill_scores(block, latent, sigma, reference.REACH, score, sums)
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
