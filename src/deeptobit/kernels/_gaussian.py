"""The Gaussian Tobit likelihood, one fused pass over the entries."""

import math

import numpy as np

from deeptobit.arrays import FloatArray, SingleArray
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
def fill_moments(
    low: FloatArray, high: FloatArray, latent: FloatArray, mean: FloatArray, variance: FloatArray
) -> int:
    """Write mean and variance of the noise given its interval; count the closed ones, left as is.

    Parameters
    ----------
    low, high, latent, mean, variance : arrays of shape (N, T)
        In units of the noise.
    """
    closed = 0
    for row in range(latent.shape[0]):
        for task in range(latent.shape[1]):
            start, end, eta = low[row, task], high[row, task], latent[row, task]
            if start == end:
                mean[row, task], variance[row, task] = start - eta, 0.0
            elif math.isnan(start):
                mean[row, task], variance[row, task] = 0.0, 1.0
            elif math.isinf(start) or math.isinf(end):
                sign = 1.0 if math.isinf(start) else -1.0
                z = end - eta if math.isinf(start) else eta - start
                _, mills, excess = log_ndtr_mills_excess(z)
                mean[row, task] = -sign * mills
                variance[row, task] = max(1.0 - mills * excess, 0.0)
            else:
                closed += 1
    return closed


@jit
def add_olsen(
    low: FloatArray,
    high: FloatArray,
    u: FloatArray,
    theta: FloatArray,
    weight: FloatArray,
    pull: FloatArray,
    u_u: SingleArray,
    u_tau: SingleArray,
    sums: FloatArray,
) -> int:
    """Gaussian twin of ``reference_olsen``; counts the closed intervals, which it leaves at 0.

    An entry with one end e depends on (u, θ) through z = θe − u alone, and moving log θ at a fixed
    regression line stretches z.
    """
    closed = 0
    log_theta = np.log(theta)
    for row in range(u.shape[0]):
        share = weight[row]
        for task in range(u.shape[1]):
            start, end = low[row, task], high[row, task]
            if start == end:
                z = theta[task] * end - u[row, task]
                nll = 0.5 * z * z + _LOG_SQRT_2PI - log_theta[task]
                by_u, by_u_u, by_log_theta = -z, 1.0, 1.0
            elif math.isinf(start) or math.isinf(end):
                sign = 1.0 if math.isinf(start) else -1.0
                edge = end if math.isinf(start) else start
                z = theta[task] * edge - u[row, task]
                log_cdf, mills, excess = log_ndtr_mills_excess(sign * z)
                nll, by_u, by_u_u, by_log_theta = -log_cdf, sign * mills, mills * excess, 0.0
            else:
                pull[row, task] = u_u[row, task] = u_tau[row, task] = 0.0
                closed += 0 if math.isnan(start) else 1
                continue
            pull[row, task] = share * by_u
            u_u[row, task] = share * by_u_u
            u_tau[row, task] = -share * by_u_u * z
            sums[0, task] += share * nll
            sums[1, task] += share * (-z * by_u - by_log_theta)
            sums[2, task] += share * (by_u_u * z * z + by_log_theta)
    return closed
