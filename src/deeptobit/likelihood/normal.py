"""The normal tail: log Φ and the inverse Mills ratio φ/Φ.

A Tobit likelihood needs these far out in the tail, where a censored entry is badly predicted
and its gradient is largest. There the quotient φ(z)/Φ(z) is 0/0 in floating point, so everything
below goes through erfcx(x) = exp(x²) erfc(x), which never underflows on that side.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import erfc, erfcx

from deeptobit.arrays import BoolArray, FloatArray

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_SQRT_2 = np.sqrt(2.0)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)

# Below this the excess λ(z) + z cancels as a difference and is taken from a continued fraction.
# With 24 terms its truncation error there is below 1e-14 (tests compare it with mpmath).
_FAR_TAIL = -6.0
_FRACTION_TERMS = 24
_FEW = 16  # numbers whose fractions take longer as an array than one by one


Formula: TypeAlias = Callable[[FloatArray], FloatArray]


def piecewise(z: FloatArray, chosen: BoolArray, yes: Formula, no: Formula) -> FloatArray:
    """One formula where it is chosen, another elsewhere; each is computed only for its entries.

    Examples
    --------
    >>> z = np.array([-4.0, 4.0])
    >>> piecewise(z, z > 0.0, np.sqrt, np.square)
    array([16.,  2.])
    """
    count = np.count_nonzero(chosen)
    if count in (0, np.size(chosen)):
        return np.asarray(yes(z) if count else no(z))
    z, result = z.ravel(), np.empty(z.shape)
    for where, formula in ((chosen, yes), (~chosen, no)):
        (places,) = where.ravel().nonzero()
        result.put(places, formula(z[places]))
    return result


def normal_log_pdf(z: FloatArray) -> FloatArray:
    r"""Log density of the standard normal, :math:`-z^2/2 - \log\sqrt{2\pi}`.

    Examples
    --------
    >>> float(normal_log_pdf(0.0).round(6))
    -0.918939
    """
    with np.errstate(over="ignore"):  # −inf is the right answer beyond |z| = 1e154
        return np.asarray(-0.5 * np.square(z) - _LOG_SQRT_2PI)


def log_ndtr(z: FloatArray) -> FloatArray:
    r"""Log of the standard normal distribution function, :math:`\log\Phi(z)`.

    In the far tail it is −z²/2 plus a correction, rounded as the log density is, so that their
    difference is the log of the Mills ratio there too; SciPy's differs in the last digits of z².

    Parameters
    ----------
    z : array
        Any shape; infinite values are allowed.

    Returns
    -------
    array
        Same shape, at most 0, relative error below 1e-12 for \|z\| ≤ 40.

    Examples
    --------
    >>> log_ndtr([-40.0, 0.0, 8.0])
    array([-8.04608442e+02, -6.93147181e-01, -6.22096057e-16])
    """
    z = np.asarray(z, dtype=np.float64)
    # Each branch sees only arguments that suit it: log(erfcx) on the left, log1p on the right.
    left = np.minimum(z, -1.0)
    right = np.maximum(z, -1.0)
    with np.errstate(over="ignore", divide="ignore"):  # −inf beyond z = −1e154
        in_left = np.log(0.5 * erfcx(-left / _SQRT_2)) - 0.5 * np.square(left)
    in_right = np.log1p(-0.5 * erfc(right / _SQRT_2))
    return np.asarray(np.where(z < -1.0, in_left, in_right))


def mills(z: FloatArray) -> FloatArray:
    r"""Inverse Mills ratio :math:`\lambda(z) = \varphi(z)/\Phi(z) = \frac{d}{dz}\log\Phi(z)`.

    The paper writes it φ(z)/(1 − Q(z)). It behaves like −z for z → −∞ and like φ(z) for z → ∞.

    Examples
    --------
    >>> mills([-40.0, 0.0, 8.0])
    array([4.00249688e+01, 7.97884561e-01, 5.05227108e-15])
    """
    with np.errstate(divide="ignore", over="ignore"):  # erfcx is 0 at −inf, and inf beyond z = 37
        return np.asarray(_SQRT_2_OVER_PI / erfcx(-np.asarray(z, dtype=np.float64) / _SQRT_2))


def mills_excess(z: FloatArray) -> FloatArray:
    r"""The excess :math:`\lambda(z) + z`, positive everywhere and :math:`\sim -1/z` in the tail.

    It is the mean distance of a normal variable from its upper truncation point z. With
    x = −z it satisfies :math:`\lambda + z = \cfrac{1}{x + \cfrac{2}{x + \cfrac{3}{x + \dots}}}`,
    which has no cancellation.

    Examples
    --------
    >>> mills_excess([-1e8, -40.0, 0.0])
    array([1.00000000e-08, 2.49688472e-02, 7.97884561e-01])
    """
    z = np.asarray(z, dtype=np.float64)
    return piecewise(z, z < _FAR_TAIL, _excess_far_out, lambda z: mills(z) + z)


def _excess_far_out(z: FloatArray) -> FloatArray:
    if z.size > _FEW:
        return np.asarray(_fraction(z))
    return np.array([_fraction(each) for each in z.ravel().tolist()]).reshape(z.shape)


def _fraction(z: Any) -> Any:
    fraction = 0.0
    for term in range(_FRACTION_TERMS, 0, -1):
        fraction = term / (fraction - z)
    return fraction
