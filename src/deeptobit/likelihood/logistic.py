"""Logistic noise: a little heavier in the tail than the Gaussian, and still log-concave."""

import numpy as np
from scipy.special import expit, log_expit, logit

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.noise import Derivatives, SymmetricNoise, width_between


class Logistic(SymmetricNoise):
    r"""Noise with F(z) = 1/(1 + e⁻ᶻ), variance π²/3.

    The mass of an interval factorises, :math:`F(b) - F(a) = F(b)\,F(-a)\,(1 - e^{a-b})`, so nothing
    ever cancels and every derivative has a closed form.

    Examples
    --------
    >>> Logistic().interval(-1.0, 1.0).nll.round(6)
    np.float64(0.771937)
    """

    name = "logistic"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log F(z) + log F(−z)."""
        return np.asarray(log_expit(z) + log_expit(-z))

    def score(self, z: FloatArray) -> FloatArray:
        """2F(z) − 1 = tanh(z/2)."""
        return np.tanh(0.5 * np.asarray(z))

    def score_slope(self, z: FloatArray) -> FloatArray:
        """2f(z)."""
        return 2.0 * _density(z)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """−log(1 + e⁻ᶻ)."""
        return np.asarray(log_expit(z))

    def ppf(self, q: FloatArray) -> FloatArray:
        """Log-odds of q."""
        return np.asarray(logit(q))

    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """−log F(b) − log F(−a) − log(1 − e^{−(b−a)}): only the last term knows both ends."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        closed = np.isfinite(a) & np.isfinite(b)
        width = width_between(np.where(closed, a, 0.0), np.where(closed, b, 1.0))
        join, slope = _join(width)
        above, below = expit(-b), expit(a)  # 1 − F(b), F(a): 0 at an open end
        a_end, b_end = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
        at_a, at_b = a_end * _density(a), b_end * _density(b)
        latent, stretch = above - below, a_end * (at_a + below) + b_end * (at_b - above)
        return Derivatives(
            nll=-log_expit(b) - log_expit(-a) - np.where(closed, np.log(-np.expm1(-width)), 0.0),
            latent=latent,
            log_sigma=b_end * above - a_end * below + np.where(closed, join, 0.0),
            latent_latent=_density(a) + _density(b),
            latent_log_sigma=at_a + at_b - latent,
            log_sigma_log_sigma=stretch - np.where(closed, width * slope, 0.0),
        )

    def variance(self) -> float:
        """π²/3."""
        return np.pi**2 / 3.0

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """Log(1 + e⁻ᶻ)."""
        return np.asarray(-log_expit(z))

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Log(1 + eᶻ) − F(z), an antiderivative of F²."""
        return np.asarray(-log_expit(-z) - expit(z))


def _density(z: FloatArray) -> FloatArray:
    return np.asarray(expit(z) * expit(-z))


def _join(width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """g(d) = d/(eᵈ − 1) and its derivative, the derivatives of log(1 − e⁻ᵈ) by log σ."""
    decay = np.exp(-width)
    gap = -np.expm1(-width)
    value = width * decay / gap
    # (e^d − 1 − d e^d)/(e^d − 1)², by its series where the numerator cancels
    exact = decay * (gap - width) / gap**2
    series = -0.5 + width / 6.0 - width**3 / 180.0
    return value, np.where(width < 1e-3, series, exact)
