"""The noise families under test: the shipped ones, and two that exercise the defaults."""

import numpy as np
from scipy.special import log_ndtr, ndtri

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, TwoPiece

SHIPPED: list[Noise] = [
    Gaussian(),
    Logistic(),
    StudentT(df=4.0),
    StudentT(df=2.5),
    TwoPiece(Gaussian(), skew=0.35),
    TwoPiece(Logistic(), skew=-0.7),
    TwoPiece(StudentT(df=2.5), skew=0.7),
]


class PlainGaussian(Noise):
    """The normal distribution from the six abstract functions alone."""

    name = "plain gaussian"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.square(z) - 0.5 * np.log(2 * np.pi))

    def score(self, z: FloatArray) -> FloatArray:
        return np.asarray(z)

    def score_slope(self, z: FloatArray) -> FloatArray:
        return np.ones_like(z)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(log_ndtr(z))

    def log_sf(self, z: FloatArray) -> FloatArray:
        return np.asarray(log_ndtr(-np.asarray(z)))

    def ppf(self, q: FloatArray) -> FloatArray:
        return np.asarray(ndtri(q))


class Gumbel(Noise):
    """A skewed family, F(z) = exp(−exp(−z)); its lower tail leaves the doubles near z = −700."""

    name = "gumbel"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(-z - np.exp(-z))

    def score(self, z: FloatArray) -> FloatArray:
        return np.asarray(1.0 - np.exp(-z))

    def score_slope(self, z: FloatArray) -> FloatArray:
        return np.exp(-z)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return -np.exp(-np.asarray(z))

    def log_sf(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            return np.log(-np.expm1(-np.exp(-np.asarray(z))))

    def ppf(self, q: FloatArray) -> FloatArray:
        return np.asarray(-np.log(-np.log(q)))


ALL: list[Noise] = [*SHIPPED, PlainGaussian(), Gumbel()]
LOG_CONCAVE: list[Noise] = [Gaussian(), Logistic()]


def reach(noise: Noise) -> tuple[float, float]:
    """Where a family's formulas are meant to be exact: the shipped ones far out in both tails."""
    if isinstance(noise, PlainGaussian):
        return -6.0, 6.0
    return (-2.5, 20.0) if isinstance(noise, Gumbel) else (-30.0, 30.0)
