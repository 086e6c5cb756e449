"""Skewed noise: a symmetric family, wider on one side than on the other."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood.noise import Noise, SymmetricNoise

_MOST = 5.0  # one half is then 20,000 times as wide as the other


class TwoPiece(Noise):
    r"""A symmetric family f₀ with its upper half stretched and its lower half compressed.

    .. math::
        f(z) = \frac{2}{g + 1/g} \begin{cases}
            f_0(z g) & z < 0 \\ f_0(z / g) & z \ge 0 \end{cases}, \qquad g = e^s

    (Fernández and Steel, 1998). A skew s > 0 draws out the upper tail, s < 0 the lower one. Every
    value stays possible, so that no outcome has a likelihood of 0, and everything follows from
    the closed forms of the symmetric family.

    Parameters
    ----------
    base : SymmetricNoise
    skew : float
        s; the halves are e²ˢ times as wide as each other.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> noise = TwoPiece(Gaussian(), skew=0.35)
    >>> noise.ppf(np.array([0.05, 0.5, 0.95])).round(3)
    array([-1.013,  0.455,  2.528])
    >>> round(noise.mean(), 3)
    0.57
    """

    def __init__(self, base: SymmetricNoise, skew: float) -> None:
        if not isinstance(base, SymmetricNoise):
            raise TypeError(f"base must be a symmetric family such as Gaussian(); got {base!r}")
        if not -_MOST <= skew <= _MOST:
            raise ValueError(f"skew must lie between -{_MOST:g} and {_MOST:g}; got {skew}")
        self.base, self.skew = base, float(skew)
        self.name = f"two_piece_{base.name}"
        self._upper_width, self._lower_width = float(np.exp(self.skew)), float(np.exp(-self.skew))
        self._upper_share = self._upper_width / (self._upper_width + self._lower_width)
        self._lower_share = self._lower_width / (self._upper_width + self._lower_width)

    def __repr__(self) -> str:
        """Name the family and its skew."""
        return f"TwoPiece({self.base!r}, skew={self.skew:g})"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density; both pieces have the same height at 0."""
        height = np.log(2.0 / (self._upper_width + self._lower_width))
        return np.asarray(height + self.base.log_pdf(z / self._width(z)))

    def score(self, z: FloatArray) -> FloatArray:
        """Score of the piece, 0 at 0 as that of the symmetric family."""
        width = self._width(z)
        return np.asarray(self.base.score(z / width) / width)

    def score_slope(self, z: FloatArray) -> FloatArray:
        """Slope of the score, which jumps at 0; there it is the mean of both sides."""
        width = self._width(z)
        slope = self.base.score_slope(z / width) / width**2
        seam = 0.5 * (self._upper_width**2 + self._lower_width**2)  # 1/width² of the other side
        return np.asarray(np.where(np.asarray(z) == 0.0, slope * width**2 * seam, slope))

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z)."""
        down, up = np.minimum(z, 0.0) / self._lower_width, np.maximum(z, 0.0) / self._upper_width
        below = np.log(2.0 * self._lower_share) + self.base.log_cdf(down)
        above = np.log1p(-2.0 * self._upper_share * np.exp(self.base.log_sf(up)))
        return np.asarray(np.where(np.asarray(z) < 0.0, below, above))

    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z))."""
        return self.mirrored().log_cdf(-np.asarray(z))

    def ppf(self, q: FloatArray) -> FloatArray:
        """Quantile of the piece that holds it."""
        down = self.base.ppf(np.minimum(0.5 * q / self._lower_share, 0.5))
        up = -self.base.ppf(np.minimum(0.5 * (1.0 - q) / self._upper_share, 0.5))
        lower = q < self._lower_share
        return np.asarray(np.where(lower, self._lower_width * down, self._upper_width * up))

    def is_short(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether quadrature is exact; it is not across 0, where the pieces meet."""
        return super().is_short(a, b) & ((a >= 0.0) | (b <= 0.0))

    def variance(self) -> float:
        """Var[ε], from the second moments of both halves."""
        upper = self._upper_share * self._upper_width**2
        lower = self._lower_share * self._lower_width**2
        return float((upper + lower) * self.base.variance() - self.mean() ** 2)

    def mirrored(self) -> "TwoPiece":
        """The distribution of −ε."""
        return TwoPiece(self.base, -self.skew)

    def _width(self, z: FloatArray) -> FloatArray:
        return np.where(np.asarray(z) < 0.0, self._lower_width, self._upper_width)

    def _tail(self, z: FloatArray, power: int, sign: float) -> FloatArray:
        """Integrals above z ≥ 0, from those of the symmetric family."""
        if sign < 0.0:
            return self.mirrored()._tail(z, power, 1.0)
        integral = self.base.upper_mean if power == 1 else self.base.upper_crps
        at_base = integral(z / self._upper_width)
        return np.asarray((2.0 * self._upper_share) ** power * self._upper_width * at_base)
