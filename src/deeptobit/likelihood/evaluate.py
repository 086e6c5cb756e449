"""The negative log likelihood of every kind of entry, at the latent score and the noise scale."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood.gaussian import Gaussian
from deeptobit.likelihood.noise import Derivatives, Noise, Places, fill, observed_entry
from deeptobit.likelihood.tasks import NoiseByTask, at_scores


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
    entries = np.broadcast_arrays(low, high, latent, sigma)
    shape = entries[0].shape
    low, high, latent, sigma = (part.ravel() for part in entries)
    is_exact = low == high
    is_narrow = _is_narrow(low, high, latent, sigma) & ~is_exact
    is_wide = ~is_exact & ~is_narrow & ~np.isnan(low)
    exact, narrow, wide = map(np.flatnonzero, (is_exact, is_narrow, is_wide))
    width = high[narrow] - low[narrow]
    middle = low[narrow] + 0.5 * width

    def standard(where: Places, value: FloatArray) -> FloatArray:
        return np.asarray((value - latent[where]) / sigma[where])

    def noise_at(where: Places) -> Noise:
        return noise.at(where % shape[-1]) if isinstance(noise, NoiseByTask) else noise

    at = Derivatives(*np.zeros((len(Derivatives._fields), latent.size)))
    fill(at, exact, observed_entry(noise_at(exact), standard(exact, low[exact])))
    fill(at, narrow, observed_entry(noise_at(narrow), standard(narrow, middle)))
    ends = standard(wide, low[wide]), standard(wide, high[wide])
    fill(at, wide, noise_at(wide).interval(*ends))
    at.nll[exact] += np.log(sigma[exact])
    at.nll[narrow] += np.log(sigma[narrow]) - np.log(width)
    for field in (at.latent, at.latent_latent, at.latent_latent, at.latent_log_sigma):
        field /= sigma  # twice by σ, as its square may overflow
    return Derivatives(*(field.reshape(shape) for field in at))


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


# The likelihood, compiled where the noise has a kernel.


def has_kernels(noise: Noise) -> bool:
    """Whether compiled code takes the place of NumPy: for exactly the Gaussian.

    A subclass may have another density.

    Examples
    --------
    >>> from deeptobit.likelihood import StudentT
    >>> has_kernels(Gaussian()), has_kernels(StudentT())
    (True, False)
    """
    return type(noise) is Gaussian


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
    if not has_kernels(noise) or np.ndim(latent) != 2 or np.ndim(sigma) != 1:
        return reference_evaluate(noise, low, high, latent, sigma)
    from deeptobit.likelihood.kernels import fill_latent

    out = np.empty((6, *latent.shape))
    if fill_latent(low, high, latent, sigma, out):
        closed = np.isfinite(low) & np.isfinite(high) & (low < high)  # rare
        scale = np.broadcast_to(sigma, latent.shape)[closed]
        out[:, closed] = reference_evaluate(noise, low[closed], high[closed], latent[closed], scale)
    return Derivatives(*out)


# The expected noise of missing entries, given that of the other outcomes of the row.


def missing_noise(noise: FloatArray, missing: BoolArray, correlation: FloatArray) -> FloatArray:
    r"""The noise of every row, with its expectation where it is missing, (N, T).

    .. math:: E[\varepsilon_m \mid \varepsilon_k] = -P_{mm}^{-1} P_{mk} \varepsilon_k,\qquad
        P = R^{-1}

    Parameters
    ----------
    noise : array of shape (N, T)
        0 where it is missing.
    missing : bool array of shape (N, T)
    correlation : array of shape (T, T)
        R, positive definite.

    Examples
    --------
    >>> missing = np.array([[False, True]])
    >>> missing_noise(np.array([[2.0, 0.0]]), missing, np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([[2., 1.]])
    """
    from deeptobit.likelihood.kernels import fill_missing

    filled = noise.copy()
    fill_missing(filled, missing, np.asarray(np.linalg.inv(correlation), dtype=np.float64))
    return filled
