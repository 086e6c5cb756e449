"""Gaussian noise, that of the Tobit model, and the families that may replace it, by name."""

import numpy as np
from scipy.special import ndtr, ndtri

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import normal
from deeptobit.likelihood.logistic import Logistic
from deeptobit.likelihood.noise import Derivatives, Noise, SymmetricNoise, with_one_end
from deeptobit.likelihood.skewed import TwoPiece
from deeptobit.likelihood.student import StudentT

_NEGLIGIBLE = 40.0  # exp(−40) = 4e-18
_INV_SQRT_PI = 1.0 / np.sqrt(np.pi)


class Gaussian(SymmetricNoise):
    r"""Standard normal noise, with closed forms for every tail.

    Examples
    --------
    >>> Gaussian().interval(-np.inf, -40.0).latent.round(6)
    np.float64(40.024969)
    """

    name = "gaussian"

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """−z²/2 − log √(2π)."""
        return normal.normal_log_pdf(z)

    def score(self, z: FloatArray) -> FloatArray:
        """The identity."""
        return np.asarray(z, dtype=np.float64)

    def score_slope(self, z: FloatArray) -> FloatArray:
        """Constant 1."""
        return np.ones_like(z, dtype=np.float64)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log Φ(z)."""
        return normal.log_ndtr(z)

    def ppf(self, q: FloatArray) -> FloatArray:
        """Φ⁻¹(q)."""
        return np.asarray(ndtri(q))

    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """−log(Φ(b) − Φ(a)); an end whose density is negligible beside the other's is opened."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            fall = 0.5 * (b - a) * (b + a)  # of the log density from a to b
        a = np.where(fall < -_NEGLIGIBLE, -np.inf, a)
        b = np.where(fall > _NEGLIGIBLE, np.inf, b)
        return super().interval(a, b)

    def is_short(self, a: FloatArray, b: FloatArray) -> BoolArray:
        """Whether it is not around the score, and then at most ten standard deviations wide.

        The 64 nodes are exact there. Around the score −log mass is the sum of two small tails:
        quadrature, which adds up to about 1, would lose the digits of an entry that is almost
        certain.
        """
        return np.asarray((a >= -1.0) | (b <= 1.0))

    def _one_sided(self, end: FloatArray, sign: float) -> Derivatives:
        z = sign * end
        ratio = normal.mills(z)
        return with_one_end(end, -normal.log_ndtr(z), sign * ratio, ratio * normal.mills_excess(z))

    def variance(self) -> float:
        """Constant 1."""
        return 1.0

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """φ(z) − z(1 − Φ(z)), which is 1 − Φ(z) times the excess of the Mills ratio."""
        return np.asarray(ndtr(-z) * normal.mills_excess(-z))

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """zΦ(z)² + 2φ(z)Φ(z) − Φ(√2 z)/√π, an antiderivative of Φ²."""
        cdf = ndtr(z)
        density = np.exp(normal.normal_log_pdf(z))
        return np.asarray(cdf * (z * cdf + 2.0 * density) - ndtr(np.sqrt(2.0) * z) * _INV_SQRT_PI)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent standard normal draws."""
        return rng.standard_normal(shape)


# Families that ship: what `noise=` names and what a model file holds. A new family is a file with a
# class whose constructor arguments are attributes of the same name, and its line here.

FAMILIES: dict[str, type[Noise]] = {
    "gaussian": Gaussian,
    "logistic": Logistic,
    "student_t": StudentT,
    "two_piece": TwoPiece,
}
NAMED_FAMILIES = [name for name in FAMILIES if name != "two_piece"]  # which needs its skew


def one_family(noise: str | Noise) -> Noise:
    """The noise family that a model is fitted with, the same for all tasks.

    Examples
    --------
    >>> one_family("logistic")
    Logistic()
    """
    if hasattr(noise, "families"):  # a NoiseByTask
        raise ValueError(
            "models are fitted with one noise family for all tasks; noise is a NoiseByTask, which "
            "serves predictions: pass noise='gaussian' or another family"
        )
    return resolve_noise(noise)


def resolve_noise(noise: str | Noise) -> Noise:
    """A noise family from its name, or the object itself.

    Examples
    --------
    >>> resolve_noise("student_t")
    StudentT(df=4)
    """
    if isinstance(noise, str) and noise in NAMED_FAMILIES:
        return FAMILIES[noise]()
    if isinstance(noise, Noise):
        return noise
    raise ValueError(
        f"noise must be one of {', '.join(map(repr, NAMED_FAMILIES))} or of a class derived from "
        f"deeptobit.likelihood.Noise; got {noise!r}"
    )
