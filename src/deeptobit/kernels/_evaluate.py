"""The likelihood by the fastest means at hand."""

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Gaussian, Noise, OlsenDerivatives


def evaluate(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    """Same as :func:`deeptobit.likelihood.evaluate`, compiled where a kernel exists.

    Parameters
    ----------
    noise : Noise
        The Gaussian has a kernel; any other family takes the NumPy path.
    low, high, latent : arrays of shape (N, T)
    sigma : array of shape (T,)

    Examples
    --------
    >>> low, high = np.array([[1.0], [-np.inf]]), np.array([[1.0], [0.0]])
    >>> evaluate(Gaussian(), low, high, np.full((2, 1), 2.0), np.array([0.5])).nll.ravel().round(4)
    array([ 2.2258, 10.3601])
    """
    if not isinstance(noise, Gaussian):
        return likelihood.evaluate(noise, low, high, latent, sigma)
    from deeptobit.kernels._gaussian import fill_latent  # numba loads on first use

    out = np.empty((6, *latent.shape))
    if fill_latent(low, high, latent, sigma, out):
        closed = _closed(low, high)
        scale = np.broadcast_to(sigma, latent.shape)[closed]
        out[:, closed] = likelihood.evaluate(
            noise, low[closed], high[closed], latent[closed], scale
        )
    return Derivatives(*out)


def evaluate_olsen(
    noise: Noise, low: FloatArray, high: FloatArray, u: FloatArray, theta: FloatArray
) -> OlsenDerivatives:
    """Same as :func:`deeptobit.likelihood.evaluate_olsen`, compiled where a kernel exists.

    Parameters
    ----------
    noise : Noise
    low, high, u : arrays of shape (N, T)
    theta : array of shape (T,)

    Examples
    --------
    >>> low, high = np.array([[1.0], [-np.inf]]), np.array([[1.0], [0.0]])
    >>> at = evaluate_olsen(Gaussian(), low, high, np.full((2, 1), 4.0), np.array([2.0]))
    >>> at.u.ravel().round(4)
    array([2.    , 4.2256])
    """
    if not isinstance(noise, Gaussian):
        return likelihood.evaluate_olsen(noise, low, high, u, theta)
    from deeptobit.kernels._gaussian import fill_olsen

    out = np.empty((6, *u.shape))
    if fill_olsen(low, high, u, theta, out):
        closed = _closed(low, high)
        scale = np.broadcast_to(theta, u.shape)[closed]
        out[:, closed] = likelihood.evaluate_olsen(
            noise, low[closed], high[closed], u[closed], scale
        )
    return OlsenDerivatives(*out)


def _closed(low: FloatArray, high: FloatArray) -> BoolArray:
    """Intervals with two finite ends: rare, so the NumPy path serves them."""
    return np.isfinite(low) & np.isfinite(high) & (low < high)
