"""The Gaussian Tobit likelihood, one fused pass over the entries."""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_FAR_TAIL = -5.0
_FRACTION_TERMS = 30
_CERTAIN = 39.0  # φ(z) and 1 − Φ(z) are 0 in double precision


@jit
def log_ndtr_mills_excess(z: float) -> tuple[float, float, float]:
    """Log Φ(z), λ(z) = φ(z)/Φ(z) and λ(z) + z for one number.

    In the far tail λ + z is a continued fraction, and log Φ = log φ − log λ follows from it.
    """
    log_pdf = -0.5 * z * z - _LOG_SQRT_2PI
    if z < _FAR_TAIL:
        excess = 0.0
        for term in range(_FRACTION_TERMS, 0, -1):
            excess = term / (excess - z)
        mills = excess - z
        return log_pdf - math.log(mills), mills, excess
    if z > _CERTAIN:
        return 0.0, 0.0, z
    tail = 0.5 * math.erfc(abs(z) * _SQRT_HALF)
    cdf = tail if z < 0.0 else 1.0 - tail
    log_cdf = math.log(tail) if z < 0.0 else math.log1p(-tail)
    mills = math.exp(log_pdf) / cdf
    return log_cdf, mills, mills + z


@jit
def fill_latent(
    low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray, out: FloatArray
) -> int:
    """Write nll and its derivatives by η and log σ; count the closed intervals, left at 0.

    Parameters
    ----------
    low, high, latent : arrays of shape (N, T)
    sigma : array of shape (T,)
    out : array of shape (6, N, T)
        In the order of ``Derivatives``.
    """
    closed = 0
    log_sigma = np.log(sigma)
    for row in range(latent.shape[0]):
        for task in range(latent.shape[1]):
            start, end, eta = low[row, task], high[row, task], latent[row, task]
            precision = 1.0 / sigma[task]
            out[:, row, task] = 0.0
            if start == end:
                z = (start - eta) * precision
                out[0, row, task] = 0.5 * z * z + _LOG_SQRT_2PI + log_sigma[task]
                out[1, row, task] = -z * precision
                out[2, row, task] = 1.0 - z * z
                out[3, row, task] = precision * precision
                out[4, row, task] = 2.0 * z * precision
                out[5, row, task] = 2.0 * z * z
            elif math.isinf(start) or math.isinf(end):
                sign = 1.0 if math.isinf(start) else -1.0
                z = (end - eta) * precision if math.isinf(start) else (eta - start) * precision
                log_cdf, mills, excess = log_ndtr_mills_excess(z)
                bend = mills * (1.0 - z * excess)
                out[0, row, task] = -log_cdf
                out[1, row, task] = sign * mills * precision
                out[2, row, task] = z * mills
                out[3, row, task] = mills * excess * precision * precision
                out[4, row, task] = -sign * bend * precision
                out[5, row, task] = -z * bend
            elif not math.isnan(start):
                closed += 1
    return closed


@jit
def fill_olsen(
    low: FloatArray, high: FloatArray, u: FloatArray, theta: FloatArray, out: FloatArray
) -> int:
    """Write nll and its derivatives by u and θ (Olsen's coordinates); count closed intervals.

    An entry with one end e depends on (u, θ) through z = θe − u alone.

    Parameters
    ----------
    low, high, u : arrays of shape (N, T)
    theta : array of shape (T,)
    out : array of shape (6, N, T)
        In the order of ``OlsenDerivatives``.
    """
    closed = 0
    log_theta = np.log(theta)
    for row in range(u.shape[0]):
        for task in range(u.shape[1]):
            start, end = low[row, task], high[row, task]
            if start == end:
                z = theta[task] * end - u[row, task]
                out[0, row, task] = 0.5 * z * z + _LOG_SQRT_2PI - log_theta[task]
                out[1, row, task] = -z
                out[2, row, task] = z * end - 1.0 / theta[task]
                out[3, row, task] = 1.0
                out[4, row, task] = -end
                out[5, row, task] = end * end + 1.0 / (theta[task] * theta[task])
            elif math.isinf(start) or math.isinf(end):
                sign = 1.0 if math.isinf(start) else -1.0
                edge = end if math.isinf(start) else start
                log_cdf, mills, excess = log_ndtr_mills_excess(
                    sign * (theta[task] * edge - u[row, task])
                )
                bend = mills * excess
                out[0, row, task] = -log_cdf
                out[1, row, task] = sign * mills
                out[2, row, task] = -sign * mills * edge
                out[3, row, task] = bend
                out[4, row, task] = -bend * edge
                out[5, row, task] = bend * edge * edge
            else:
                out[:, row, task] = 0.0
                closed += 0 if math.isnan(start) else 1
    return closed
