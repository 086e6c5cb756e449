r"""The normal mass of an interval, log(Φ(b) − Φ(a)), without cancellation.

Three regimes, told apart after mirroring so that the interval's centre is not negative:

* most of the mass is inside: 1 minus two small tails;
* the far end adds nothing (exp(−(b² − a²)/2) < 1e-17): one tail;
* otherwise the interval is short where it matters: Gauss–Legendre quadrature, a sum of positive
  terms, exact to rounding for an entire integrand of this size.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import erfc

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.special._normal import log_ndtr, mills, normal_log_pdf

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_NEGLIGIBLE = 40.0  # exp(−40) = 4e-18: relative weight of the far end
_SQRT_2 = np.sqrt(2.0)


class _Mirrored(NamedTuple):
    """An interval with a non-negative centre; ``flipped`` says where it was mirrored."""

    near: FloatArray
    far: FloatArray
    flipped: BoolArray


def log_diff_ndtr(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Log mass of an interval, :math:`\log(\Phi(b) - \Phi(a))` for a < b.

    Parameters
    ----------
    a, b : array
        Ends, broadcast against each other; ``a`` may be −inf and ``b`` +inf.

    Examples
    --------
    >>> log_diff_ndtr([-1.0, 2.0], [1.0, 2.0 + 1e-9])
    array([ -0.38171515, -23.64220429])
    """
    interval = _mirror(a, b)
    log_mass, _ = _log_mass_and_near_ratio(interval)
    return log_mass


def interval_mills(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Densities at the ends over the mass, φ(a)/(Φ(b) − Φ(a)) and φ(b)/(Φ(b) − Φ(a)).

    These are the derivatives of :func:`log_diff_ndtr`: −(first) by a, +(second) by b.

    Examples
    --------
    >>> at_a, at_b = interval_mills([-np.inf, 40.0], [0.0, np.inf])
    >>> at_a, at_b
    (array([ 0.        , 40.02496885]), array([0.79788456, 0.        ]))
    """
    interval = _mirror(a, b)
    _, near_ratio = _log_mass_and_near_ratio(interval)
    with np.errstate(over="ignore"):
        far_ratio = near_ratio * np.exp(-_drop(interval))
    at_a = np.where(interval.flipped, far_ratio, near_ratio)
    at_b = np.where(interval.flipped, near_ratio, far_ratio)
    return at_a, at_b


def _mirror(a: FloatArray, b: FloatArray) -> _Mirrored:
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    if not np.all(a < b):
        raise ValueError("an interval needs its lower end below its upper end (a < b)")
    flipped = -a > b
    return _Mirrored(np.where(flipped, -b, a), np.where(flipped, -a, b), flipped)


def _drop(interval: _Mirrored) -> FloatArray:
    """(far² − near²)/2, the fall of the log density from the near to the far end."""
    with np.errstate(over="ignore", invalid="ignore"):
        drop = 0.5 * (interval.far - interval.near) * (interval.far + interval.near)
    # Both ends infinite: neither end has any density, and the near ratio is 0 by itself.
    return np.where(np.isneginf(interval.near), 0.0, drop)


def _log_mass_and_near_ratio(interval: _Mirrored) -> tuple[FloatArray, FloatArray]:
    near, far, _ = interval
    outside = 0.5 * (erfc(-near / _SQRT_2) + erfc(far / _SQRT_2))
    wide = outside < 0.5
    one_tail = ~wide & (_drop(interval) > _NEGLIGIBLE)
    short = ~wide & ~one_tail

    log_mass = np.array(np.log1p(-np.where(wide, outside, 0.0)))
    ratio = np.array(np.exp(normal_log_pdf(near) - log_mass))
    log_mass[one_tail] = log_ndtr(-near[one_tail])
    ratio[one_tail] = mills(-near[one_tail])
    if short.any():
        relative = _relative_mass(near[short], far[short])
        log_mass[short] = normal_log_pdf(near[short]) + np.log(relative)
        ratio[short] = 1.0 / relative
    return log_mass, ratio


def _relative_mass(near: FloatArray, far: FloatArray) -> FloatArray:
    """(Φ(far) − Φ(near))/φ(near) by quadrature."""
    half = 0.5 * (far - near)
    step = half[..., None] * (_NODES + 1.0)
    fall = 0.5 * step * (2.0 * near[..., None] + step)
    return np.asarray(half * (np.exp(-fall) @ _WEIGHTS))
