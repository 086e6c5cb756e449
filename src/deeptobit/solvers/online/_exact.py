"""Problem P:V of one row, solved exactly."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import entries
from deeptobit.kernels._online_types import Block, Iterate
from deeptobit.likelihood import Noise

_MAX_ITER, _TOLERANCE = 50, 1e-10


def exact_sketch(noise: Noise, row: Block, now: Iterate, alpha: float) -> FloatArray:
    r"""The V that minimises :math:`\omega\sum_t nll_t(U_t^\top Vx + b_t) + (\alpha/2)\|V\|_F^2`.

    The likelihood sees V only through h = Vx, and of all V with Vx = h the smallest is
    :math:`hx^\top/\|x\|^2`. So the problem is one in R unknowns,

    .. math:: \min_h\; \omega\textstyle\sum_t nll_t(U_t^\top h + b_t)
        + \frac{\alpha}{2\|x\|^2}\|h\|^2,

    convex, and solved by Newton's method. The solution has rank one and does not depend on the
    V before it: what is carried from row to row is U alone.

    Parameters
    ----------
    noise : Noise
    row : Block
        One row.
    now : Iterate
        Its U, intercept and sigma are used.
    alpha : float
        Positive.

    Returns
    -------
    array of shape (R, D)
    """
    x = row.X[0]
    square = float(x @ x)
    if square == 0.0:
        return np.zeros_like(now.V)
    ridge, share = alpha / square, float(row.weight[0])
    scaled = now.Ut / now.sigma

    def value(h: FloatArray) -> tuple[float, FloatArray]:
        entry = entries(noise, row, (h @ now.Ut + now.intercept)[None], now.sigma)[0]
        return share * float(entry[0].sum()) + 0.5 * ridge * float(h @ h), entry

    h = np.zeros(len(now.V))
    here, entry = value(h)
    for _ in range(_MAX_ITER):
        gradient = share * (scaled @ entry[1]) + ridge * h
        hessian = share * (scaled * entry[2]) @ scaled.T
        hessian.flat[:: len(h) + 1] += ridge
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease <= _TOLERANCE**2 * (1.0 + abs(here)):
            break
        length = 1.0
        there, entry_there = value(h - step)
        while not there <= here - 1e-4 * length * decrease and length > 1e-8:
            length *= 0.5
            there, entry_there = value(h - length * step)
        h, here, entry = h - length * step, there, entry_there
    return np.outer(h, x) / square
