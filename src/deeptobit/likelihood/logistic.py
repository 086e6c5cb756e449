"""Logistic noise: a little heavier in the tail than the Gaussian, and still log-concave."""

import numpy as np
from scipy.special import expit, log_expit, logit, spence

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood.noise import Derivatives, SymmetricNoise, with_one_end


class Logistic(SymmetricNoise):
    r"""Noise with F(z) = 1/(1 + e⁻ᶻ), variance π²/3.

    Every tail has a closed form.

    Examples
    --------
    >>> Logistic().interval(-1.0, 1.0).nll.round(6)
    np.float64(0.771937)
    """

    name = "logistic"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log F(z) + log F(−z)."""
        z = np.asarray(z, dtype=np.float64)
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

    def is_short(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Up to 30 the 64 nodes are exact; beyond, and around the score, nothing cancels."""
        around_the_score = (a < -1.0) & (b > 1.0)
        return np.asarray((b - a <= 30.0) & ~around_the_score)

    def _one_sided(self, end: FloatArray, sign: float) -> Derivatives:
        return with_one_end(end, -log_expit(sign * end), sign * expit(-sign * end), _density(end))

    def variance(self) -> float:
        """π²/3."""
        return np.pi**2 / 3.0

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """Log(1 + e⁻ᶻ)."""
        return np.asarray(-log_expit(z))

    def upper_square(self, z: FloatArray) -> FloatArray:
        """−2 Li₂(−e⁻ᶻ), with the inversion formula below 0."""
        z = np.asarray(z, dtype=np.float64)
        tail = -2.0 * spence(1.0 + np.exp(-np.abs(z)))
        return np.where(z > 0.0, tail, self.variance() + z * z - tail)

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Log(1 + eᶻ) − F(z), an antiderivative of F²."""
        z = np.asarray(z, dtype=np.float64)
        return np.asarray(-log_expit(-z) - expit(z))


def _density(z: FloatArray) -> FloatArray:
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(expit(z) * expit(-z))
