"""The negative log likelihood of every kind of entry, at the latent score and the noise scale."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood._observed import observed_entry
from deeptobit.likelihood._protocol import Derivatives, Noise


def evaluate(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    r"""Entry-wise nll with first and second derivatives by the latent η and by log σ.

    .. math::
        \mathrm{nll} = \begin{cases}
            -\log f\left(\frac{y-\eta}{\sigma}\right) + \log\sigma & \text{observed} \\
            -\log\left[F\left(\frac{high-\eta}{\sigma}\right)
                       - F\left(\frac{low-\eta}{\sigma}\right)\right] & \text{censored} \\
            0 & \text{missing}
        \end{cases}

    Parameters
    ----------
    noise : Noise
        The family of f and F.
    low, high : arrays of shape (N, T)
        Ends of the intervals: equal where observed, ∓inf where open, NaN where missing.
    latent : array of shape (N, T)
    sigma : array of shape (T,) or (N, T)

    Returns
    -------
    Derivatives
        Fields of shape (N, T), all finite wherever the inputs are.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> low, high = np.array([[1.0], [-np.inf], [np.nan]]), np.array([[1.0], [0.0], [np.nan]])
    >>> at = evaluate(Gaussian(), low, high, np.full((3, 1), 2.0), np.array([0.5]))
    >>> at.nll.ravel().round(4)
    array([ 2.2258, 10.3601,  0.    ])
    >>> at.latent.ravel().round(4)
    array([4.    , 8.4512, 0.    ])
    """
    low, high, latent, sigma = np.broadcast_arrays(low, high, latent, sigma)
    out = Derivatives(*(np.zeros(latent.shape) for _ in Derivatives._fields))
    observed = low == high
    censored = ~observed & ~np.isnan(low)
    for where in (observed, censored):
        if not where.any():
            continue
        eta, scale = latent[where], sigma[where]
        a, b = (low[where] - eta) / scale, (high[where] - eta) / scale
        entries = observed_entry(noise, a) if where is observed else noise.interval(a, b)
        log_scale = np.log(scale) if where is observed else 0.0
        out.nll[where] = entries.nll + log_scale
        out.latent[where] = entries.latent / scale
        out.log_sigma[where] = entries.log_sigma
        out.latent_latent[where] = entries.latent_latent / scale**2
        out.latent_log_sigma[where] = entries.latent_log_sigma / scale
        out.log_sigma_log_sigma[where] = entries.log_sigma_log_sigma
    return out
