"""A noise family from six functions; the rest by quadrature until a closed form replaces it."""

from abc import ABC, abstractmethod

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood._observed import observed_entry
from deeptobit.likelihood._protocol import Derivatives
from deeptobit.likelihood._quadrature import LEGENDRE_NODES, LEGENDRE_WEIGHTS, over_half_line

_NARROWEST = 1e-150  # its square does not vanish


class StandardNoise(ABC):
    """Base of the noise families: implements :class:`Noise` from its six abstract functions.

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
        """−f'(z)/f(z)."""

    @abstractmethod
    def score_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the score."""

    @abstractmethod
    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z)."""

    @abstractmethod
    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z))."""

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
        """−log(F(b) − F(a)) and its derivatives, by whichever formula does not cancel."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        shape, a, b = a.shape, a.ravel(), b.ravel()
        out = Derivatives(*(np.empty(a.shape) for _ in Derivatives._fields))
        open_below, open_above = np.isneginf(a), np.isposinf(b)
        closed = ~open_below & ~open_above
        left, right = open_below & ~open_above, open_above & ~open_below
        short = closed.copy()
        short[closed] = self.is_short(a[closed], b[closed])
        wide = closed & ~short
        certain = Derivatives(*(np.zeros(1) for _ in Derivatives._fields))
        _fill(out, open_below & open_above, certain)
        _fill(out, left, self._left(b[left]))
        _fill(out, right, self._right(a[right]))
        _fill(out, short, self._short(a[short], b[short]))
        _fill(out, wide, self._wide(a[wide], b[wide]))
        return Derivatives(*(field.reshape(shape) for field in out))

    def is_short(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether the density varies so little over [a, b] that quadrature is exact.

        Differences of F would cancel there. A family with thin tails narrows this down.
        """
        return np.asarray(b - a <= np.maximum(1.0, 0.5 * np.abs(a + b)))

    def _left(self, b: FloatArray) -> Derivatives:
        """−log F(b)."""
        log_mass = self.log_cdf(b)
        ratio = np.exp(self.log_pdf(b) - log_mass)
        curvature = ratio * (ratio + self.score(b))
        return Derivatives(
            nll=-log_mass,
            latent=ratio,
            log_sigma=b * ratio,
            latent_latent=curvature,
            latent_log_sigma=b * curvature - ratio,
            log_sigma_log_sigma=b * (b * curvature - ratio),
        )

    def _right(self, a: FloatArray) -> Derivatives:
        """−log(1 − F(a))."""
        log_mass = self.log_sf(a)
        ratio = np.exp(self.log_pdf(a) - log_mass)
        curvature = ratio * (ratio - self.score(a))
        return Derivatives(
            nll=-log_mass,
            latent=-ratio,
            log_sigma=-a * ratio,
            latent_latent=curvature,
            latent_log_sigma=a * curvature + ratio,
            log_sigma_log_sigma=a * (a * curvature + ratio),
        )

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
        z = a[:, None] + half * (LEGENDRE_NODES + 1.0)
        log_f = self.log_pdf(z)
        top = log_f.max(axis=1, keepdims=True)
        weight = LEGENDRE_WEIGHTS * np.exp(log_f - top)
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

    def mean(self) -> float:
        """E[ε]."""
        zero = np.zeros(())
        return float(self._upper_tail(zero, 1) - self._lower_tail(zero, 1))

    def variance(self) -> float:
        """Var[ε]."""
        zero = np.zeros(())
        return float(self._upper_tail(zero, 2) + self._lower_tail(zero, 2)) - self.mean() ** 2

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊]."""
        up, down = np.maximum(z, 0.0), np.minimum(z, 0.0)
        below = self.mean() - down + self._lower_tail(down, 1)
        return np.where(z > 0.0, self._upper_tail(up, 1), below)

    def lower_mean(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊]."""
        up, down = np.maximum(z, 0.0), np.minimum(z, 0.0)
        above = up - self.mean() + self._upper_tail(up, 1)
        return np.where(z > 0.0, above, self._lower_tail(down, 1))

    def upper_square(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊²]."""
        up, down = np.maximum(z, 0.0), np.minimum(z, 0.0)
        below = self.variance() + (self.mean() - down) ** 2 - self._lower_tail(down, 2)
        return np.where(z > 0.0, self._upper_tail(up, 2), below)

    def lower_square(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊²]."""
        up, down = np.maximum(z, 0.0), np.minimum(z, 0.0)
        above = self.variance() + (up - self.mean()) ** 2 - self._upper_tail(up, 2)
        return np.where(z > 0.0, above, self._lower_tail(down, 2))

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z; below 0 from (1 − F)² = 1 − 2F + F²."""
        up, down, zero = np.maximum(z, 0.0), np.minimum(z, 0.0), np.zeros(())
        below = (
            self._upper_tail(zero, 0)
            - down
            - 2.0 * (self._lower_tail(zero, 1) - self._lower_tail(down, 1))
            + (self._lower_tail(zero, 0) - self._lower_tail(down, 0))
        )
        return np.where(z > 0.0, self._upper_tail(up, 0), below)

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Integral of F² below z; above 0 from F² = 1 − 2(1 − F) + (1 − F)²."""
        up, down, zero = np.maximum(z, 0.0), np.minimum(z, 0.0), np.zeros(())
        above = (
            self._lower_tail(zero, 0)
            + up
            - 2.0 * (self._upper_tail(zero, 1) - self._upper_tail(up, 1))
            + (self._upper_tail(zero, 0) - self._upper_tail(up, 0))
        )
        return np.where(z > 0.0, above, self._lower_tail(down, 0))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws of ε, by inversion."""
        return self.ppf(rng.uniform(size=shape))

    def _upper_tail(self, z: FloatArray, power: int) -> FloatArray:
        """E[(ε − z)₊^power] for power 1 and 2; the integral of (1 − F)² above z for power 0."""
        return over_half_line(lambda t: self.log_sf(z[..., None] + t), power)

    def _lower_tail(self, z: FloatArray, power: int) -> FloatArray:
        """Mirror image of ``_upper_tail``."""
        return over_half_line(lambda t: self.log_cdf(z[..., None] - t), power)


def width_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Width b − a, at least what separates neighbouring numbers.

    Far out both ends may round to one number, which is not to say that nothing lies between.
    """
    return np.maximum(b - a, np.maximum(np.spacing(np.abs(a)), _NARROWEST))


def _fill(out: Derivatives, where: BoolArray, part: Derivatives) -> None:
    for field, values in zip(out, part, strict=True):
        field[where] = values


class SymmetricNoise(StandardNoise):
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

    def lower_square(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊²]."""
        return self.upper_square(-np.asarray(z))

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z."""
        return self.lower_crps(-np.asarray(z))
