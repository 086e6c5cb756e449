"""Accelerated proximal gradients: a smooth convex function and a norm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deeptobit.arrays import FloatArray

_CHECK_EVERY = 5


def descend(
    gradient: Callable[[FloatArray], FloatArray],
    shrink: Callable[[FloatArray], FloatArray],
    step: float,
    start: FloatArray,
    done: Callable[[FloatArray], bool],
    max_iter: int,
) -> FloatArray:
    r"""Minimise f + Ω from ``start`` on, until it is ``done``.

    .. math::
        W_{k+1} = \mathrm{shrink}(Z_k - s\,\nabla f(Z_k)),\qquad
        Z_{k+1} = W_{k+1} + \frac{t_k - 1}{t_{k+1}}(W_{k+1} - W_k)

    (Beck and Teboulle 2009), with momentum dropped whenever it points uphill (O'Donoghue and Candès
    2015), which makes convergence linear where f is strongly convex.

    Parameters
    ----------
    gradient, shrink : callables
        ∇f, and the proximal operator of s·Ω.
    step : float
        s, at most the inverse of the Lipschitz constant of ∇f.
    start : array
    done : callable
        Whether a point is good enough; asked at first and at every fifth step.
    max_iter : int

    Examples
    --------
    >>> centre = np.array([3.0, 0.5])
    >>> soft = lambda W: np.sign(W) * np.maximum(np.abs(W) - 0.5, 0.0)
    >>> descend(lambda W: W - centre, lambda W: soft(W), 0.5, np.zeros(2),
    ...         lambda W: False, 50).round(6)
    array([2., 0.])
    """
    W = ahead = start
    momentum = 1.0
    for count in range(max_iter):
        if count % _CHECK_EVERY == 0 and done(W):
            break
        new = shrink(ahead - step * gradient(ahead))
        if np.vdot(ahead - new, new - W) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - W)
        W, momentum = new, following
    return W


def squared_norm(matrix: FloatArray) -> float:
    """The square of the largest singular value, from the smaller of AᵀA and AAᵀ.

    Examples
    --------
    >>> round(squared_norm(np.array([[3.0, 4.0]])), 6)
    25.0
    """
    smaller = matrix if matrix.shape[0] < matrix.shape[1] else matrix.T
    return float(np.linalg.eigvalsh(smaller @ smaller.T).max(initial=0.0))
