"""The likelihood by the fastest means at hand."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Gaussian, Noise, reference_evaluate


def evaluate(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    """Same as :func:`reference_evaluate`, compiled where a kernel exists.

    Parameters
    ----------
    noise : Noise
        The Gaussian has a kernel; any other family takes the NumPy path.
    low, high, latent : arrays of shape (N, T)
    sigma : array of shape (T,), or (N, T) without a kernel

    Examples
    --------
    >>> low, high = np.array([[1.0], [-np.inf]]), np.array([[1.0], [0.0]])
    >>> evaluate(Gaussian(), low, high, np.full((2, 1), 2.0), np.array([0.5])).nll.ravel().round(4)
    array([ 2.2258, 10.3601])
    """
    if not isinstance(noise, Gaussian) or np.ndim(sigma) > 1:
        return reference_evaluate(noise, low, high, latent, sigma)
    from deeptobit.kernels._gaussian import fill_latent  # numba loads on first use

    out = np.empty((6, *latent.shape))
    if fill_latent(low, high, latent, sigma, out):
        closed = closed_intervals(low, high)
        scale = np.broadcast_to(sigma, latent.shape)[closed]
        out[:, closed] = reference_evaluate(
            noise, low[closed], high[closed], latent[closed], scale
        )
    return Derivatives(*out)


def closed_intervals(low: FloatArray, high: FloatArray) -> BoolArray:
    """Intervals with two finite ends: rare, so the NumPy path serves them."""
    return np.isfinite(low) & np.isfinite(high) & (low < high)
