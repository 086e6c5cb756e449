"""What a noise family must offer: the contract between the likelihood and everything above it."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from deeptobit.arrays import FloatArray


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


@runtime_checkable
class Noise(Protocol):
    r"""A distribution of the standardised noise ε in y = clip(η + σε, lower, upper).

    Inherit from :class:`StandardNoise` and write the six functions without a default (log density,
    its score and slope, log distribution function on both sides, quantile function) to get
    everything else by quadrature; override what has a closed form.

    Every function works on arrays of any shape.
    """

    name: str

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density log f(z)."""
        ...

    def score(self, z: FloatArray) -> FloatArray:
        """−f'(z)/f(z); z itself for the Gaussian."""
        ...

    def score_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the score; non-negative everywhere if and only if f is log-concave."""
        ...

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z), accurate in the lower tail."""
        ...

    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z)), accurate in the upper tail."""
        ...

    def ppf(self, q: FloatArray) -> FloatArray:
        """Quantile function F⁻¹(q)."""
        ...

    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """−log(F(b) − F(a)) and its derivatives; ``a`` may be −inf, ``b`` may be +inf."""
        ...

    def mean(self) -> float | FloatArray:
        """E[ε]; of every task, (T,), where tasks differ."""
        ...

    def variance(self) -> float | FloatArray:
        """Var[ε], likewise."""
        ...

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊], the integral of 1 − F above z."""
        ...

    def lower_mean(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊], the integral of F below z."""
        ...

    def upper_square(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊²]."""
        ...

    def lower_square(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊²]."""
        ...

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z."""
        ...

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Integral of F² below z."""
        ...

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws of ε."""
        ...
