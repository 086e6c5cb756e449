"""Student t noise: heavy tails, robust to outliers."""

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.noise import SymmetricNoise

_FAR_TAIL = 1e7  # beyond this F(−x) = f(x)·x/df to machine precision


class StudentT(SymmetricNoise):
    r"""Noise with density proportional to :math:`(1 + z^2/\nu)^{-(\nu+1)/2}`; σ is its scale.

    The likelihood is not log-concave, so an optimum need not be unique.

    Parameters
    ----------
    df : float
        Degrees of freedom ν > 2, so that the variance exists.

    Examples
    --------
    >>> StudentT(df=4).interval(-np.inf, -10.0).nll.round(6)
    np.float64(8.177149)
    """

    name = "student_t"

    def __init__(self, df: float = 4.0) -> None:
        if not df > 2.0:
            raise ValueError(f"df must exceed 2, so that the noise has a variance; got {df}")
        self.df = float(df)
        self._log_norm = _log_norm(self.df)

    def __repr__(self) -> str:
        """Name the family and its degrees of freedom."""
        return f"StudentT(df={self.df:g})"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density; z² is never formed, so it stays finite for every finite z."""
        with np.errstate(divide="ignore"):
            log_square = 2.0 * np.log(np.abs(z)) - np.log(self.df)
        return np.asarray(self._log_norm - 0.5 * (self.df + 1.0) * np.logaddexp(0.0, log_square))

    def score(self, z: FloatArray) -> FloatArray:
        """(ν + 1)z/(ν + z²)."""
        return (self.df + 1.0) * z * self._shrink(z) / self.df

    def score_slope(self, z: FloatArray) -> FloatArray:
        """(ν + 1)(ν − z²)/(ν + z²)²."""
        shrink = self._shrink(z)
        return (self.df + 1.0) / self.df * shrink * (2.0 * shrink - 1.0)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z), in the far lower tail from F(−x) ≈ f(x)·x/ν."""
        far = np.clip(z, -np.finfo(np.float64).max, -_FAR_TAIL)
        near = np.maximum(z, -_FAR_TAIL)
        in_far = self.log_pdf(far) + np.log(-far) - np.log(self.df)
        in_upper = np.log1p(-stdtr(self.df, -np.maximum(near, 0.0)))
        in_lower = np.log(stdtr(self.df, np.minimum(near, 0.0)))
        tails = np.where(z < -_FAR_TAIL, in_far, np.where(z > 0.0, in_upper, in_lower))
        return np.where(np.isneginf(z), -np.inf, tails)

    def ppf(self, q: FloatArray) -> FloatArray:
        """Quantile function."""
        inside = stdtrit(self.df, np.where((q > 0.0) & (q < 1.0), q, 0.5))
        return np.where(q <= 0.0, -np.inf, np.where(q >= 1.0, np.inf, inside))

    def variance(self) -> float:
        """ν/(ν − 2)."""
        return self.df / (self.df - 2.0)

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """q(z) − z(1 − F(z)) with q(z) = f(z)(ν + z²)/(ν − 1), the integral of tf(t) above z."""
        tail = self._partial_mean(z) - np.abs(z) * stdtr(self.df, -np.abs(z))
        return np.where(z > 0.0, tail, tail - z)

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """zF² + 2qF − 2∫qf, where qf is proportional to a t density with 2ν − 1 degrees."""
        df, cdf = self.df, stdtr(self.df, z)
        wider = 2.0 * df - 1.0
        share = np.sqrt(df / wider) * df / (df - 1.0)
        log_share = 2.0 * self._log_norm - _log_norm(wider)
        overlap = share * np.exp(log_share) * stdtr(wider, z * np.sqrt(wider / df))
        return np.asarray(cdf * (z * cdf + 2.0 * self._partial_mean(z)) - 2.0 * overlap)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent Student t draws."""
        return rng.standard_t(self.df, shape)

    def _shrink(self, z: FloatArray) -> FloatArray:
        """ν/(ν + z²)."""
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.square(z) / self.df))

    def _partial_mean(self, z: FloatArray) -> FloatArray:
        """q(z) = f(z)(ν + z²)/(ν − 1)."""
        with np.errstate(divide="ignore"):
            log_sum = np.logaddexp(np.log(self.df), 2.0 * np.log(np.abs(z)))
        return np.exp(self.log_pdf(z) + log_sum) / (self.df - 1.0)


def _log_norm(df: float) -> float:
    """Log of the normalising constant of the t density."""
    return float(gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(df * np.pi))
