r"""The likelihood in Olsen's coordinates u = η/σ and θ = 1/σ, where it is convex.

An observed entry has the negative log likelihood :math:`-\log f(\theta y - u) - \log\theta`, a
censored one :math:`-\log[F(\theta\,high - u) - F(\theta\,low - u)]`: jointly convex in (u, θ) for
every log-concave noise.
"""

from typing import NamedTuple

from deeptobit.arrays import FloatArray
from deeptobit.likelihood._evaluate import reference_evaluate
from deeptobit.likelihood._protocol import Derivatives, Noise


class OlsenDerivatives(NamedTuple):
    """Negative log likelihood of entries and its derivatives by u and by θ."""

    nll: FloatArray
    u: FloatArray
    theta: FloatArray
    u_u: FloatArray
    u_theta: FloatArray
    theta_theta: FloatArray


def evaluate_olsen(
    noise: Noise, low: FloatArray, high: FloatArray, u: FloatArray, theta: FloatArray
) -> OlsenDerivatives:
    """Entry-wise nll with first and second derivatives by u = η/σ and θ = 1/σ.

    Parameters
    ----------
    noise : Noise
    low, high, u : arrays of shape (N, T)
    theta : array of shape (T,) or (N, T)

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit.likelihood import Gaussian
    >>> y, u, theta = np.ones((1, 1)), np.zeros((1, 1)), np.full(1, 2.0)
    >>> at = evaluate_olsen(Gaussian(), y, y, u, theta)
    >>> at.u.round(6), at.theta.round(6)  # θy − u = 2, so −2 and 2y − 1/θ
    (array([[-2.]]), array([[1.5]]))
    """
    sigma = 1.0 / theta
    latent = u * sigma
    return _from_latent(reference_evaluate(noise, low, high, latent, sigma), latent, sigma)


def _from_latent(at: Derivatives, latent: FloatArray, sigma: FloatArray) -> OlsenDerivatives:
    """Chain rule from (η, log σ) to (u, θ), where η = u/θ and log σ = −log θ."""
    square = sigma**2
    pull = latent * at.latent
    bend = latent * at.latent_latent + at.latent_log_sigma
    stretch = latent * (bend + at.latent_log_sigma) + at.log_sigma_log_sigma
    return OlsenDerivatives(
        nll=at.nll,
        u=sigma * at.latent,
        theta=-sigma * (pull + at.log_sigma),
        u_u=square * at.latent_latent,
        u_theta=-square * (at.latent + bend),
        theta_theta=square * (2.0 * pull + at.log_sigma + stretch),
    )
