"""The negative log likelihood of every kind of entry, at the latent score and the noise scale."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood._observed import observed_entry
from deeptobit.likelihood._of_tasks import at_entries, at_scores
from deeptobit.likelihood._protocol import Derivatives, Noise


def reference_evaluate(
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
        The family of f and F. Where its spread changes with the score, derivatives are those at
        the σ of each entry, held.
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
    >>> at = reference_evaluate(Gaussian(), low, high, np.full((3, 1), 2.0), np.array([0.5]))
    >>> at.nll.ravel().round(4)
    array([ 2.2258, 10.3601,  0.    ])
    >>> at.latent.ravel().round(4)
    array([4.    , 8.4512, 0.    ])
    """
    noise, sigma = at_scores(noise, latent, sigma)
    low, high, latent, sigma = np.broadcast_arrays(low, high, latent, sigma)
    out = Derivatives(*(np.zeros(latent.shape) for _ in Derivatives._fields))
    exact = low == high
    narrow = _is_narrow(low, high, latent, sigma) & ~exact
    wide = ~exact & ~narrow & ~np.isnan(low)

    def place(where: BoolArray, entries: Derivatives, shift: FloatArray | float) -> None:
        scale = sigma[where]
        out.nll[where] = entries.nll + shift
        out.latent[where] = entries.latent / scale
        out.log_sigma[where] = entries.log_sigma
        out.latent_latent[where] = entries.latent_latent / scale / scale  # a square may overflow
        out.latent_log_sigma[where] = entries.latent_log_sigma / scale
        out.log_sigma_log_sigma[where] = entries.log_sigma_log_sigma

    z = (low[exact] - latent[exact]) / sigma[exact]
    place(exact, observed_entry(at_entries(noise, exact), z), np.log(sigma[exact]))
    width = high[narrow] - low[narrow]
    middle = (low[narrow] + 0.5 * width - latent[narrow]) / sigma[narrow]
    density = observed_entry(at_entries(noise, narrow), middle)
    place(narrow, density, np.log(sigma[narrow]) - np.log(width))
    a, b = ((end[wide] - latent[wide]) / sigma[wide] for end in (low, high))
    place(wide, at_entries(noise, wide).interval(a, b), 0.0)
    return out


def _is_narrow(
    low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> BoolArray:
    """Intervals over which the density is constant to 1e-11: the mass is density times width.

    Further out the standardised ends round towards the same number, and a density that changes by
    a factor of up to e over the interval is the better approximation.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite product is not narrow
        distance = np.maximum(np.abs(low - latent) / sigma, 1.0)
        width = (high - low) / sigma
        merged = (width <= 1e-9 * distance) & (width * distance <= 1.0)
        return np.asarray((width * distance <= 1e-5) | merged)
