r"""The predictive distribution of a recorded outcome, on the grid of possible scores.

Most scales have whole scores. The latent z = η + σε is continuous; with steps h between the scores
of a task, and scores lower and upper at its ends,

.. math::
    y = \mathrm{round}(\mathrm{clip}(z,\, lower + h,\, upper - h))
        - h\, 1[z \le lower] + h\, 1[z \ge upper].

What lies between two scores counts for the nearer one, but none of it for a bound, whose
probability is that of the latent beyond it as in every Tobit model. Where outcomes are continuous,
h = 0 and y = clip(z, lower, upper).

Sums over scores are integrals by the midpoint rule, and differ from those of the continuous
distribution by the first term of the Euler–Maclaurin formula, h²/24 times the slopes at the ends of
what is summed. The next term is below 5e-4 σ if h ≤ σ, and falls with h⁴. An error model has steps
only where that is so. Entries whose own σ is smaller, as their spread changes with the score, keep
the term of h = 1.5 σ: their mean may be off by part of a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.evaluate import reference_evaluate
from deeptobit.likelihood.noise import Noise
from deeptobit.likelihood.spread import ScoreGrid
from deeptobit.likelihood.tasks import at_scores, beyond, grid_of
from deeptobit.targets import OFF_GRID

# The distribution of a censored outcome y = clip(η + σε, lower, upper), given η and σ.


@dataclass(frozen=True)
class Clipped:
    """Distributions of continuous outcomes, one per entry.

    Its fields are those of :class:`Predictive`, which also knows the grid of possible scores.

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

    def density(self, z: FloatArray) -> FloatArray:
        """Density of the standardised noise, 0 at an open side."""
        return at_ends(lambda z: np.exp(self.noise.log_pdf(z)), z)

    def uncensored(self) -> FloatArray:
        """P(lower < y < upper)."""
        return np.exp(-self.noise.interval(self.a, self.b).nll)

    def mean_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of E[y] by the latent, P(a < ε < b), and by σ, E[ε 1(a < ε < b)]."""
        by_sigma = self._noise_above(self.a) - self._noise_above(self.b)
        return 1.0 - self.at_lower() - self.at_upper(), by_sigma

    def _noise_above(self, z: FloatArray) -> FloatArray:
        """E[ε 1(ε > z)]."""
        above = at_ends(lambda z: self.noise.upper_mean(z) + z * np.exp(self.noise.log_sf(z)), z)
        return np.where(np.isneginf(z), self.noise.mean(), above)

    def mean(self) -> FloatArray:
        """E[y], within the bounds."""
        a, b = self.a, self.b
        no_ceiling = np.isposinf(self.upper).all()
        ends = at_ends(lambda z: beyond(self.noise, z), np.array([a] if no_ceiling else [a, b]))
        below, above = (ends[0], 0.0) if no_ceiling else ends
        # Measured from whatever is nearest, the latent score or a bound, nothing large cancels.
        inside = self.latent + self.sigma * self.noise.mean()
        nearest = np.where(a > 0.0, self.lower, np.where(b <= 0.0, self.upper, inside))
        mean = nearest + self.sigma * (below - above)
        return np.asarray(np.minimum(np.maximum(mean, self.lower), self.upper))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The q-quantile of y, for scalar q of shape (N, T), for a vector (Q, N, T)."""
        try:
            q = np.asarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"quantiles must lie between 0 and 1; got {q!r}") from None
        if not np.all((q >= 0.0) & (q <= 1.0)):
            raise ValueError(f"quantiles must lie between 0 and 1; got {q}")
        steps = self.noise.ppf(q[..., None, None])
        return np.clip(self.latent + self.sigma * steps, self.lower, self.upper)

    def interval(self, coverage: float) -> FloatArray:
        """Ends of the central interval that holds y with this probability, (2, N, T)."""
        tail = 0.5 * (1.0 - coverage)
        return self.quantile([tail, 1.0 - tail])

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
        below, above = at_ends(self.noise.lower_crps, a), at_ends(self.noise.upper_crps, b)
        total = self.noise.lower_crps(z) - below + self.noise.upper_crps(z) - above
        return np.where(known, self.sigma * np.maximum(total, 0.0), np.nan)

    def sample(self, rng: np.random.Generator, n_samples: int) -> FloatArray:
        """Draws of y, of shape (N, T, n_samples)."""
        noise = self.noise.sample(rng, (n_samples, *np.shape(self.latent)))
        draws = np.clip(self.latent + self.sigma * noise, self.lower, self.upper)
        return np.moveaxis(draws, 0, -1)


def at_ends(function: Callable[[FloatArray], FloatArray], z: FloatArray) -> FloatArray:
    """A function of standardised bounds, 0 where they are open."""
    finite = np.isfinite(z)
    if finite.all():
        return function(z)
    return np.where(finite, function(finite_end(z)), 0.0) if finite.any() else np.zeros(z.shape)


def finite_end(z: FloatArray) -> FloatArray:
    """Open ends replaced by 0; what is computed there is not used."""
    return np.where(np.isfinite(z), z, 0.0)


_ROUNDING = 1e-10  # of a step
_WIDEST = 1.5  # steps in units of σ beyond which the formula would add more error than it takes


@dataclass(frozen=True)
class Predictive(Clipped):
    """Predictive distributions, one per entry, on the score grid of the noise if it has one.

    Parameters
    ----------
    noise : Noise
        Its ``grid``, if it has one, holds the possible scores. Entries whose bounds are not on
        the grid are continuous.
    latent : array of shape (N, T)
        Scores before censoring.
    sigma : array of shape (T,) or (N, T)
        Noise scales. Where the spread of the noise changes with the score, those of the entries
        (N, T) take their place, and the standardised noise that of ``noise``.
    lower, upper : arrays of shape (T,) or (N, T)
        Bounds, ∓inf where open.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, NoiseByTask
    >>> latent, sigma = np.array([[0.0], [29.0]]), np.array([2.0])
    >>> y = Predictive(Gaussian(), latent, sigma, 0.0, 30.0)
    >>> y.mean().ravel().round(4), y.quantile(0.3).ravel().round(4)
    (array([ 0.7979, 28.6044]), array([ 0.    , 27.9512]))
    >>> whole = NoiseByTask([Gaussian()], grid=ScoreGrid(np.ones(1), np.zeros(1)))
    >>> y = Predictive(whole, latent, sigma, 0.0, 30.0)
    >>> y.mean().ravel().round(4), y.quantile(0.3).ravel()
    (array([ 0.8883, 28.519 ]), array([ 0., 28.]))
    """

    @cached_property
    def step(self) -> FloatArray:
        """Distance between neighbouring scores, 0 where outcomes are continuous."""
        grid = grid_of(self.noise)
        return np.zeros(1) if grid is None else grid.within(self.lower, self.upper)

    @property
    def _grid(self) -> ScoreGrid | None:
        """The score grid; None if all outcomes are continuous."""
        grid = grid_of(self.noise)
        return grid if grid is not None and self.step.any() else None

    @cached_property
    def _between(self) -> Clipped:
        """The scores between the bounds, before they are rounded."""
        first = self.lower + self.step
        # With a single score between the bounds, rounding may put the last below the first.
        last = np.maximum(self.upper - self.step, first)
        return Clipped(self.noise, self.latent, self.sigma, first, last)

    def mean(self) -> FloatArray:
        """E[y], within the bounds."""
        if self._grid is None:
            return super().mean()
        between = self._between
        ends = self.step * (self.at_upper() - self.at_lower())
        rounded = self._rounding / 24.0 * (self.density(between.b) - self.density(between.a))
        return np.clip(between.mean() + ends + rounded, self.lower, self.upper)

    def mean_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of E[y] by the latent and by σ."""
        if self._grid is None:
            return super().mean_slopes()
        between = self._between
        by_latent, by_sigma = between.mean_slopes()
        for inner, outer, sign in ((between.a, self.a, -1.0), (between.b, self.b, 1.0)):
            jump = self.step * self.density(outer) / self.sigma
            density = self._rounding / 24.0 * sign * self.density(inner) / self.sigma
            end = finite_end(inner)
            bent = density * self.noise.score(end)
            by_latent = by_latent + jump + bent
            grows = np.where(self.step < _WIDEST * self.sigma, -density, density)
            by_sigma = by_sigma + jump * finite_end(outer) + bent * end + grows
        return by_latent, by_sigma

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The q-quantile of y, for scalar q of shape (N, T), for a vector (Q, N, T)."""
        return self.recorded(super().quantile(q))

    def interval(self, coverage: float) -> FloatArray:
        r"""Ends of the central interval that holds y with this probability, (2, N, T).

        Scores are too coarse for exact tails. An interval of them holds those whose mid-p value

        .. math:: P(Y < k) + P(Y = k)/2

        lies between the tails, so that the mass left out on either side is as near to that of a
        tail as scores allow, and the median.
        """
        if self._grid is None:
            return super().interval(coverage)
        tail = 0.5 * (1.0 - coverage)
        low, middle, high = self.quantile([tail, 0.5, 1.0 - tail])
        half = 0.5 * self.step
        above, below = self.cell(low)[1] + half, self.cell(high)[0] - half
        low = np.where(sum(self.cdf(low)) < 2.0 * tail, self.recorded(above), low)
        high = np.where(sum(self.cdf(high)) > 2.0 * (1.0 - tail), self.recorded(below), high)
        return self.holding(np.minimum(low, middle), np.maximum(high, middle))

    def holding(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Ends widened by rounding errors, so that outcomes equal to them are inside, (2, N, T)."""
        ends, outwards = np.stack([low, high]), np.array([-1.0, 1.0])[:, None, None]
        inexact = np.where(ends == np.round(ends), 0.0, _ROUNDING * self.step)
        return np.asarray(np.clip(ends + outwards * inexact, self.lower, self.upper))

    def sample(self, rng: np.random.Generator, n_samples: int) -> FloatArray:
        """Draws of y, of shape (N, T, n_samples)."""
        draws = np.moveaxis(super().sample(rng, n_samples), -1, 0)
        return np.moveaxis(self.recorded(draws), 0, -1)

    def recorded(self, latent: FloatArray) -> FloatArray:
        """What latents of shape (..., N, T) are recorded as: scores within the bounds."""
        clipped = np.clip(latent, self.lower, self.upper)
        if self._grid is None:
            return clipped
        inside = np.clip(clipped, self._between.lower, self._between.upper)
        score = self._grid.nearest(inside, self.step)
        is_bound = (clipped <= self.lower) | (clipped >= self.upper)
        return np.where(is_bound, clipped, np.clip(score, self.lower, self.upper))

    def cell(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the latents that are recorded as y, or as the score nearest to it.

        Both are y where outcomes are continuous, and NaN where y is.
        """
        if self._grid is None:
            return y, y
        score = self._grid.nearest(y, self.step)
        whole = self.step > 0.0
        low = np.where(whole, self._edge(score - self.step), y)
        return low, np.where(whole, self._edge(score), y)

    def _edge(self, score: FloatArray) -> FloatArray:
        """The largest latent that is recorded as the score or below it."""
        h = self.step
        edge = np.where(score > self.upper - 1.5 * h, self.upper, score + 0.5 * h)
        edge = np.where(score < self.lower + 0.5 * h, self.lower, edge)
        edge = np.where(score > self.upper - 0.5 * h, np.inf, edge)
        return np.where(score < self.lower - 0.5 * h, -np.inf, edge)

    def log_density(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log density of observed entries, log mass of censored ones, 0 where missing.

        The density of a score is its probability over the step. The interval of a censored entry
        is one of the latent, whatever score that would be recorded as.
        """
        if self._grid is None:
            return super().log_density(low, high)
        is_score = (low == high) & (self.step > 0.0)
        start, end = self.cell(np.clip(low, self._between.lower, self._between.upper))
        width = np.where(is_score, self.step, 1.0)
        low, high = np.where(is_score, start, low), np.where(is_score, end, high)
        return np.asarray(super().log_density(low, high) - np.log(width))

    def cdf(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(Y < y) and P(Y ≤ y); they differ where y is a score or at a bound, NaN where y is."""
        below, at_or_below = super().cdf(y)
        if self._grid is None:
            return below, at_or_below
        grid, step, whole = self._grid, self.step, self.step > 0.0
        below = np.where(whole, self._up_to(grid.below(y, step)), below)
        return below, np.where(whole, self._up_to(grid.at_or_below(y, step)), at_or_below)

    def _up_to(self, score: FloatArray) -> FloatArray:
        """P(Y ≤ a score)."""
        z = (self._edge(score) - self.latent) / self.sigma
        inside = np.exp(self.noise.log_cdf(finite_end(z)))
        return np.where(np.isfinite(z), inside, np.where(np.isnan(z), np.nan, z > 0.0))

    def crps(self, y: FloatArray) -> FloatArray:
        r"""Ranked probability score :math:`\int (F_Y(x) - 1[x \ge y])^2 dx`.

        In units of y, lower is better, NaN where y is.
        """
        if self._grid is None:
            return super().crps(y)
        score = self._grid.at_or_below(y, self.step)
        at_score = self._crps_at(score)
        share = np.clip((y - score) / np.where(self.step > 0.0, self.step, 1.0), 0.0, 1.0)
        if not (share > OFF_GRID).any():
            return at_score
        # Between two scores F is constant, and the ranked probability score a line.
        return np.asarray((1.0 - share) * at_score + share * self._crps_at(score + self.step))

    def _crps_at(self, score: FloatArray) -> FloatArray:
        """The same, at scores of the grid."""
        between, h = self._between, self.step
        inside = np.clip(score, between.lower, between.upper)
        at_lower = score < self.lower + 0.5 * h
        at_upper = score > self.upper - 0.5 * h
        ends = np.square(self.at_lower() - at_lower) + np.square(self.at_upper() - at_upper)
        slopes = self.density((inside - self.latent) / self.sigma)
        slopes = slopes - between.at_lower() * self.density(between.a)
        slopes = slopes - between.at_upper() * self.density(between.b)
        total = between.crps(inside) + h * ends - self._rounding / 12.0 * slopes
        return np.asarray(np.maximum(total, 0.0))

    @property
    def _rounding(self) -> FloatArray:
        """The factor h²/σ."""
        step = np.minimum(self.step, _WIDEST * self.sigma)
        return np.asarray(step * (step / self.sigma))  # a square may overflow
