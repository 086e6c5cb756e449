"""Quadrature rules: on an interval, and of a tail function over a half-line."""

from collections.abc import Callable

import numpy as np

from deeptobit.arrays import FloatArray

LEGENDRE_NODES, LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(64)

# t = s³/(1 − s) carries (0, 1) onto the half-line; clustering nodes at 0 serves the kink of F(−|t|)
# that heavy tails show there, and the pole at 1 their slow decay.
_HALF_LINE_NODES, _HALF_LINE_WEIGHTS = np.polynomial.legendre.leggauss(200)
_S = 0.5 * (_HALF_LINE_NODES + 1.0)
_T = _S**3 / (1.0 - _S)
_JACOBIAN = 0.5 * _HALF_LINE_WEIGHTS * (3.0 * _S**2 * (1.0 - _S) + _S**3) / (1.0 - _S) ** 2


def over_half_line(log_tail: Callable[[FloatArray], FloatArray], power: int) -> FloatArray:
    r"""Integrate a tail function P(t) = exp(log_tail(t)) over t in (0, ∞).

    Power 1 gives :math:`\int P`, power 2 :math:`\int 2tP`, which are the first and second moments
    of the excess; power 0 gives :math:`\int P^2`.

    Examples
    --------
    >>> float(over_half_line(lambda t: -t, 2).round(12))
    2.0
    """
    tail = log_tail(_T)
    integrand = np.exp(2.0 * tail) if power == 0 else np.exp(tail) * (2.0 * _T) ** (power - 1)
    return np.asarray(integrand @ _JACOBIAN)
