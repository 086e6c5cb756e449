r"""The distribution of a censored outcome y = clip(η + σε, lower, upper), given η and σ.

Everything is expressed at the standardised bounds a = (lower − η)/σ and b = (upper − η)/σ; an open
side is ∓inf. All arrays broadcast to (N, T).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.likelihood._evaluate import reference_evaluate
from deeptobit.likelihood._of_tasks import at_scores
from deeptobit.likelihood._protocol import Noise


@dataclass(frozen=True)
class Clipped:
    """Distributions of continuous outcomes, one per entry.

    Its fields are those of :class:`Predictive`, which knows the scores that there are.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> y = Clipped(Gaussian(), np.array([[0.0], [29.0]]), np.array([2.0]), 0.0, 30.0)
    >>> y.mean().ravel().round(4), y.at_upper().ravel().round(4)
    (array([ 0.7979, 28.6044]), array([0.    , 0.3085]))
    """

    noise: Noise
    latent: FloatArray
    sigma: FloatArray
    lower: FloatArray | float = -np.inf
    upper: FloatArray | float = np.inf

    def __post_init__(self) -> None:
        """Give every entry the scale of its score."""
        noise, sigma = at_scores(self.noise, self.latent, self.sigma)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "sigma", sigma)

    @property
    def a(self) -> FloatArray:
        """Standardised lower bound."""
        return np.asarray((self.lower - self.latent) / self.sigma)

    @property
    def b(self) -> FloatArray:
        """Standardised upper bound."""
        return np.asarray((self.upper - self.latent) / self.sigma)

    def at_lower(self) -> FloatArray:
        """P(y = lower)."""
        return np.exp(self.noise.log_cdf(self.a))

    def at_upper(self) -> FloatArray:
        """P(y = upper)."""
        return np.exp(self.noise.log_sf(self.b))

    def uncensored(self) -> FloatArray:
        """P(lower < y < upper)."""
        return np.exp(-self.noise.interval(self.a, self.b).nll)

    def mean_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of E[y] by the latent, P(a < ε < b), and by σ, E[ε 1(a < ε < b)]."""
        by_sigma = self._noise_above(self.a) - self._noise_above(self.b)
        return 1.0 - self.at_lower() - self.at_upper(), by_sigma

    def _noise_above(self, z: FloatArray) -> FloatArray:
        """E[ε 1(ε > z)]."""
        end = finite_end(z)
        inside = self.noise.upper_mean(end) + end * np.exp(self.noise.log_sf(end))
        return np.where(np.isfinite(z), inside, np.where(z < 0.0, self.noise.mean(), 0.0))

    def mean(self) -> FloatArray:
        """E[y], within the bounds."""
        a, b = self.a, self.b
        a_end, b_end = finite_end(a), finite_end(b)
        below = np.where(np.isfinite(a), self.noise.lower_mean(a_end), 0.0)
        above = np.where(np.isfinite(b), self.noise.upper_mean(b_end), 0.0)
        # Measured from whatever is nearest, the latent score or a bound, nothing large cancels.
        inside = self.latent + self.sigma * (self.noise.mean() + below - above)
        from_lower = self.lower + self.sigma * (self.noise.upper_mean(a_end) - above)
        from_upper = self.upper - self.sigma * (self.noise.lower_mean(b_end) - below)
        mean = np.where(a > 0.0, from_lower, np.where(b < 0.0, from_upper, inside))
        return np.clip(mean, self.lower, self.upper)

    def variance(self) -> FloatArray:
        """Var[y], at least 0."""
        a, b, noise = self.a, self.b, self.noise
        centre = np.clip(0.0, a, b)  # of the bulk: squares about it are small, so none cancel
        a_end, b_end = finite_end(a), finite_end(b)
        low_mean = np.where(np.isfinite(a), noise.lower_mean(a_end), 0.0)
        low_square = np.where(np.isfinite(a), noise.lower_square(a_end), 0.0)
        high_mean = np.where(np.isfinite(b), noise.upper_mean(b_end), 0.0)
        high_square = np.where(np.isfinite(b), noise.upper_square(b_end), 0.0)
        cut_above = high_square + 2.0 * (b_end - centre) * high_mean
        cut_below = low_square + 2.0 * (centre - a_end) * low_mean
        whole = np.where(
            a > 0.0,
            noise.upper_square(np.maximum(a_end, 0.0)) - cut_above,
            np.where(
                b < 0.0,
                noise.lower_square(np.minimum(b_end, 0.0)) - cut_below,
                noise.variance() + noise.mean() ** 2 - cut_above - cut_below,
            ),
        )
        shift = (self.mean() - self.latent) / self.sigma - centre
        return np.asarray(np.square(self.sigma) * np.maximum(whole - shift**2, 0.0))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The q-quantile of y, for scalar q of shape (N, T), for a vector (Q, N, T)."""
        try:
            q = np.asarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"quantiles must lie between 0 and 1; got {q!r}") from None
        if np.any((q < 0.0) | (q > 1.0) | np.isnan(q)):
            raise ValueError(f"quantiles must lie between 0 and 1; got {q}")
        steps = self.noise.ppf(q[..., None, None])
        return np.clip(self.latent + self.sigma * steps, self.lower, self.upper)

    def log_density(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log density of observed entries, log mass of censored ones, 0 where missing."""
        return -reference_evaluate(self.noise, low, high, self.latent, self.sigma).nll

    def cdf(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(Y < y) and P(Y ≤ y); they differ where y is at a bound, and are NaN where y is."""
        known = ~np.isnan(y)
        z = np.where(known, (y - self.latent) / self.sigma, 0.0)
        at_or_below = np.where(known, np.exp(self.noise.log_cdf(z)), np.nan)
        below = np.where(y <= self.lower, 0.0, at_or_below)
        return below, np.where(y >= self.upper, 1.0, at_or_below)

    def crps(self, y: FloatArray) -> FloatArray:
        r"""Continuous ranked probability score :math:`\int (F_Y(x) - 1[x \ge y])^2 dx`.

        In units of y, lower is better, NaN where y is.
        """
        a, b = self.a, self.b
        known = ~np.isnan(y)
        z = np.where(known, (y - self.latent) / self.sigma, 0.0)
        below = np.where(np.isfinite(a), self.noise.lower_crps(finite_end(a)), 0.0)
        above = np.where(np.isfinite(b), self.noise.upper_crps(finite_end(b)), 0.0)
        total = self.noise.lower_crps(z) - below + self.noise.upper_crps(z) - above
        return np.where(known, self.sigma * np.maximum(total, 0.0), np.nan)

    def sample(self, rng: np.random.Generator, n_samples: int) -> FloatArray:
        """Draws of y, of shape (N, T, n_samples)."""
        noise = self.noise.sample(rng, (n_samples, *np.shape(self.latent)))
        draws = np.clip(self.latent + self.sigma * noise, self.lower, self.upper)
        return np.moveaxis(draws, 0, -1)


def finite_end(z: FloatArray) -> FloatArray:
    """Open ends replaced by 0; what is computed there is not used."""
    return np.where(np.isfinite(z), z, 0.0)
