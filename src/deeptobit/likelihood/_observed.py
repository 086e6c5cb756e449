"""The likelihood of an entry that is known exactly."""

from typing import Protocol

from deeptobit.arrays import FloatArray
from deeptobit.likelihood._protocol import Derivatives


class Density(Protocol):
    """The three functions of a noise family that an exact observation needs."""

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density log f(z)."""
        ...

    def score(self, z: FloatArray) -> FloatArray:
        """−f'(z)/f(z)."""
        ...

    def score_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the score."""
        ...


def observed_entry(noise: Density, z: FloatArray) -> Derivatives:
    """−log f(z) for z = (y − η)/σ at σ = 1, and its derivatives by η and log σ."""
    score, slope = noise.score(z), noise.score_slope(z)
    return Derivatives(
        nll=-noise.log_pdf(z),
        latent=-score,
        log_sigma=1.0 - z * score,
        latent_latent=slope,
        latent_log_sigma=score + z * slope,
        log_sigma_log_sigma=z * (score + z * slope),
    )
