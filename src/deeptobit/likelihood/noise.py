"""Noise families: base classes that implement most of what a family offers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray


class Derivatives(NamedTuple):
    r"""Negative log likelihood of entries and its derivatives by the latent η and by log σ.

    All fields have the shape of the entries. A family computes them at σ = 1 (then η enters only
    through the distances of the interval's ends from it); :func:`evaluate` brings in σ.
    """

    nll: FloatArray
    latent: FloatArray
    log_sigma: FloatArray
    latent_latent: FloatArray
    latent_log_sigma: FloatArray
    log_sigma_log_sigma: FloatArray


Places = NDArray[np.intp]


def fill(out: Derivatives, where: Places, entries: Derivatives) -> None:
    """Write the derivatives of some entries by index, which is faster than by mask."""
    for field, values in zip(out, entries, strict=True):
        field[where] = values


# The likelihood of an entry with one end, at distance z = (end − η)/σ from the score, at σ = 1.


def with_one_end(
    z: FloatArray, nll: FloatArray, slope: FloatArray, curvature: FloatArray, observed: float = 0.0
) -> Derivatives:
    """Derivatives by η and log σ from those by η, as σ stretches z; 1 if ``observed``, else 0."""
    bend = z * curvature - slope
    return Derivatives(nll, slope, observed + z * slope, curvature, bend, z * bend)


def observed_entry(noise: "Noise", z: FloatArray) -> Derivatives:
    """−log f(z) and its derivatives: the entry is known exactly."""
    return with_one_end(z, -noise.log_pdf(z), -noise.score(z), noise.score_slope(z), 1.0)


# Quadrature of a tail function over a half-line.

# t = s³/(1 − s) carries (0, 1) onto the half-line; clustering nodes at 0 serves the kink of F(−|t|)
# that heavy tails show there, and the pole at 1 their slow decay.
_HALF_LINE_NODES, _HALF_LINE_WEIGHTS = np.polynomial.legendre.leggauss(200)
_S = 0.5 * (_HALF_LINE_NODES + 1.0)
_T = _S**3 / (1.0 - _S)
_JACOBIAN = 0.5 * _HALF_LINE_WEIGHTS * (3.0 * _S**2 * (1.0 - _S) + _S**3) / (1.0 - _S) ** 2


def over_half_line(function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Integrate a function of t over (0, ∞); its last axis is that of t.

    Examples
    --------
    >>> float(over_half_line(lambda t: np.exp(-t)).round(12))
    1.0
    """
    return np.asarray(function(_T) @ _JACOBIAN)


# A noise family from six functions; the rest by quadrature until a closed form replaces it.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_NARROWEST = 1e-150  # its square does not vanish


class Noise(ABC):
    r"""A distribution of the standardised noise ε in y = clip(η + σε, lower, upper).

    A family writes the six functions without a default (log density, its score and slope, log
    distribution function on both sides, quantile function) and gets everything else by quadrature;
    it overrides what has a closed form. Every function works on arrays of any shape.

    The moments by quadrature are good to ten digits for tails like those of the Gaussian or the
    logistic; for tails as heavy as a Student t with 2.5 degrees of freedom second moments are 1 %
    off, and a closed form should replace them.
    """

    name: str

    @abstractmethod
    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density log f(z)."""

    @abstractmethod
    def score(self, z: FloatArray) -> FloatArray:
        """−f'(z)/f(z); z itself for the Gaussian."""

    @abstractmethod
    def score_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the score; non-negative everywhere if and only if f is log-concave."""

    @abstractmethod
    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z), accurate in the lower tail."""

    @abstractmethod
    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z)), accurate in the upper tail."""

    @abstractmethod
    def ppf(self, q: FloatArray) -> FloatArray:
        """Quantile function F⁻¹(q)."""

    def __repr__(self) -> str:
        """Name the family."""
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        """Whether it is the same family with the same parameters."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """By the family."""
        return hash(type(self))

    # The likelihood of an interval -----------------------------------------------------------

    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """−log(F(b) − F(a)) and its derivatives; ``a`` may be −inf, ``b`` may be +inf.

        Whichever formula does not cancel is taken.
        """
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        shape, a, b = a.shape, a.ravel(), b.ravel()
        # An interval without ends is certain: it keeps the zeros.
        out = Derivatives(*np.zeros((len(Derivatives._fields), len(a))))
        open_below, open_above = np.isneginf(a), np.isposinf(b)
        left, right = map(np.flatnonzero, (open_below & ~open_above, open_above & ~open_below))
        closed = np.flatnonzero(~open_below & ~open_above)
        is_short = self.is_short(a[closed], b[closed])
        short, wide = closed[is_short], closed[~is_short]
        fill(out, left, self._one_sided(b[left], 1.0))
        fill(out, right, self._one_sided(a[right], -1.0))
        fill(out, short, self._short(a[short], b[short]))
        fill(out, wide, self._wide(a[wide], b[wide]))
        return Derivatives(*(field.reshape(shape) for field in out))

    def is_short(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether the density varies so little over [a, b] that quadrature is exact.

        Differences of F would cancel there. A family with thin tails narrows this down.
        """
        return np.asarray(b - a <= np.maximum(1.0, 0.5 * np.abs(a + b)))

    def _one_sided(self, end: FloatArray, sign: float) -> Derivatives:
        """−log F(end) for sign 1, −log(1 − F(end)) for sign −1."""
        log_mass = self.log_cdf(end) if sign > 0.0 else self.log_sf(end)
        ratio = sign * np.exp(self.log_pdf(end) - log_mass)
        return with_one_end(end, -log_mass, ratio, ratio * (ratio + self.score(end)))

    def _wide(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """Chain rule on L(a, b) = −log(F(b) − F(a)), whose gradient is (f(a), −f(b))/mass."""
        log_mass = self._log_mass(a, b)
        at_a = np.exp(self.log_pdf(a) - log_mass)
        at_b = np.exp(self.log_pdf(b) - log_mass)
        aa = at_a * (at_a - self.score(a))
        bb = at_b * (at_b + self.score(b))
        ab = -at_a * at_b
        latent = at_b - at_a
        along_scale = a * (aa + ab) + b * (ab + bb)
        return Derivatives(
            nll=-log_mass,
            latent=latent,
            log_sigma=b * at_b - a * at_a,
            latent_latent=aa + 2.0 * ab + bb,
            latent_log_sigma=along_scale - latent,
            log_sigma_log_sigma=a * a * aa + 2.0 * a * b * ab + b * b * bb + a * at_a - b * at_b,
        )

    def _log_mass(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Log(F(b) − F(a)) as a difference on the side where the two terms are small."""
        upper = a + b > 0.0
        large = np.where(upper, self.log_sf(a), self.log_cdf(b))
        small = np.where(upper, self.log_sf(b), self.log_cdf(a))
        return np.asarray(large + np.log1p(-np.exp(small - large)))

    def _short(self, a: FloatArray, b: FloatArray) -> Derivatives:
        r"""Louis' identity: average the derivatives of −log f over the interval.

        With ℓ(z) the negative log density of the unknown exact value, the gradient of −log mass is
        E[ℓ'] and its Hessian E[ℓ''] − Cov[ℓ'], over f restricted to the interval.
        """
        half = 0.5 * width_between(a, b)[:, None]
        z = a[:, None] + half * (_NODES + 1.0)
        log_f = self.log_pdf(z)
        top = log_f.max(axis=1, keepdims=True)
        weight = _WEIGHTS * np.exp(log_f - top)
        relative_mass = weight.sum(axis=1, keepdims=True)
        weight /= relative_mass

        exact = observed_entry(self, z)

        def average(values: FloatArray) -> FloatArray:
            return np.asarray((weight * values).sum(axis=1))

        latent, log_sigma = average(exact.latent), average(exact.log_sigma)
        by_latent = exact.latent - latent[:, None]
        by_scale = exact.log_sigma - log_sigma[:, None]
        return Derivatives(
            nll=-(top + np.log(half * relative_mass))[:, 0],
            latent=latent,
            log_sigma=log_sigma,
            latent_latent=average(exact.latent_latent - by_latent**2),
            latent_log_sigma=average(exact.latent_log_sigma - by_latent * by_scale),
            log_sigma_log_sigma=average(exact.log_sigma_log_sigma - by_scale**2),
        )

    # Moments of the censored distribution ----------------------------------------------------

    def mean(self) -> Any:
        """E[ε]; of every task, (T,), where tasks differ."""
        zero = np.zeros(())
        return float(self._tail(zero, 1, 1.0) - self._tail(zero, 1, -1.0))

    def variance(self) -> Any:
        """Var[ε], likewise."""

        def both_tails(t: FloatArray) -> FloatArray:
            return np.exp(self.log_sf(t)) + np.exp(self.log_cdf(-t))

        return float(over_half_line(lambda t: 2.0 * t * both_tails(t))) - self.mean() ** 2

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊], the integral of 1 − F above z."""
        return self._mean_above(z, 1.0)

    def lower_mean(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊], the integral of F below z."""
        return self._mean_above(-np.asarray(z), -1.0)

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z."""
        return self._crps_above(z, 1.0)

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Integral of F² below z."""
        return self._crps_above(-np.asarray(z), -1.0)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws of ε, by inversion."""
        return self.ppf(rng.uniform(size=shape))

    # Both sides: for sign 1 they are those of ε, for sign −1 those of −ε.

    def _mean_above(self, z: FloatArray, sign: float) -> FloatArray:
        """E[(±ε − z)₊]; below 0 what the other tail leaves of E[±ε − z]."""
        if np.all(np.asarray(z) > 0.0):
            return self._tail(np.asarray(z), 1, sign)
        up, down = np.maximum(z, 0.0), np.minimum(z, 0.0)
        below = sign * self.mean() - down + self._tail(-down, 1, -sign)
        return np.where(z > 0.0, self._tail(up, 1, sign), below)

    def _crps_above(self, z: FloatArray, sign: float) -> FloatArray:
        """Integral of S² above z, S = P(±ε > t); below 0 from S² = 1 − 2(1 − S) + (1 − S)²."""
        up, down, zero = np.maximum(z, 0.0), np.minimum(z, 0.0), np.zeros(())
        F2, F = (self._tail(zero, n, -sign) - self._tail(-down, n, -sign) for n in (2, 1))
        below = self._tail(zero, 2, sign) - down - 2.0 * F + F2
        return np.where(z > 0.0, self._tail(up, 2, sign), below)

    def _tail(self, z: FloatArray, power: int, sign: float) -> FloatArray:
        """Integral of S^power above z ≥ 0, S = P(±ε > t)."""
        log_tail = self.log_sf if sign > 0.0 else self.log_cdf
        return over_half_line(lambda t: np.exp(power * log_tail(sign * (z[..., None] + t))))


def width_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Width b − a, at least what separates neighbouring numbers.

    Far out both ends may round to one number, which is not to say that nothing lies between.
    """
    return np.maximum(b - a, np.maximum(np.spacing(np.abs(a)), _NARROWEST))


class SymmetricNoise(Noise):
    """A family with f(−z) = f(z): the upper tail is the lower tail mirrored, and the mean is 0."""

    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z)) = log F(−z)."""
        return self.log_cdf(-np.asarray(z))

    def mean(self) -> float:
        """E[ε] = 0."""
        return 0.0

    def lower_mean(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊]."""
        return self.upper_mean(-np.asarray(z))

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z."""
        return self.lower_crps(-np.asarray(z))
