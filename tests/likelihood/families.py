"""The noise families under test: the shipped ones, and two that exercise the defaults."""

import numpy as np
from scipy.special import log_ndtr, ndtri

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StandardNoise, StudentT

SHIPPED: list[Noise] = [Gaussian(), Logistic(), StudentT(df=4.0), StudentT(df=2.5)]


class PlainGaussian(StandardNoise):
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


class Gumbel(StandardNoise):
    """A skewed family, F(z) = exp(−exp(−z))."""

    name = "gumbel"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(-z - np.exp(-z))

    def score(self, z: FloatArray) -> FloatArray:
        return np.asarray(1.0 - np.exp(-z))

    def score_slope(self, z: FloatArray) -> FloatArray:
        return np.exp(-z)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        return -np.exp(-np.asarray(z))

    def log_sf(self, z: FloatArray) -> FloatArray:
        return np.log(-np.expm1(-np.exp(-np.asarray(z))))

    def ppf(self, q: FloatArray) -> FloatArray:
        return np.asarray(-np.log(-np.log(q)))


ALL: list[Noise] = [*SHIPPED, PlainGaussian(), Gumbel()]
