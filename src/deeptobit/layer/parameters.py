"""The parameters of one layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.features import RoundFeatures
from deeptobit.targets import CensoredTargets


class Layer(NamedTuple):
    """Parameters in standard units: U (T, R), Z (r, R) with V = (BZ)ᵀ, intercept and log σ (T,)."""

    U: FloatArray
    Z: FloatArray
    intercept: FloatArray
    log_sigma: FloatArray


# Targets in standard units, so that no tolerance depends on the unit of a score.


@dataclass(frozen=True)
class TargetScaling:
    """Location and scale per task, from the recorded values (a bound counts as its value).

    Parameters
    ----------
    location, scale : arrays of shape (T,)
    """

    location: FloatArray
    scale: FloatArray

    @classmethod
    def build(cls, targets: CensoredTargets, weight: FloatArray, *, center: bool) -> TargetScaling:
        """Weighted mean and standard deviation of the recorded values.

        Examples
        --------
        >>> targets = CensoredTargets.from_bounds([[0.0], [2.0], [np.nan]], lower=0)
        >>> TargetScaling.build(targets, np.full(3, 1 / 3), center=True).scale
        array([1.])
        """
        share = np.where(targets.missing, 0.0, weight[:, None])
        share /= share.sum(axis=0)
        values = np.where(targets.missing, 0.0, targets.values)
        mean = (share * values).sum(axis=0)
        variance = (share * np.square(values - mean)).sum(axis=0)
        return cls.of_moments(mean, variance, center=center)

    @classmethod
    def of_moments(cls, mean: FloatArray, variance: FloatArray, *, center: bool) -> TargetScaling:
        """From means and variances of the recorded values, each (T,)."""
        spread = np.sqrt(variance if center else variance + mean**2)
        # A constant score has no spread; its own size, or 1, is a unit as good as any.
        tiny = 64 * np.finfo(np.float64).eps * np.abs(mean)
        size = np.where(mean == 0.0, 1.0, np.abs(mean))
        scale = np.where(spread > tiny, spread, size)
        return cls(mean if center else np.zeros_like(mean), scale)

    def apply(self, ends: FloatArray, tasks: np.ndarray | slice = slice(None)) -> FloatArray:
        """Ends of intervals (n, A) of some tasks, in standard units."""
        scaled = ends - self.location[tasks]
        scaled /= self.scale[tasks]
        return scaled


# A layer in standard units and in the user's.

Factors = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def to_user(features: RoundFeatures, scaling: TargetScaling, layer: Layer, rank: int) -> Factors:
    """U (T, R), V (R, D), intercept and σ (T,), with empty components up to ``rank``."""
    V = (features.coefficients(layer.Z) / features.design.scale[:, None]).T
    U = layer.U * scaling.scale[:, None]
    unused = rank - layer.U.shape[1]  # features may span fewer directions than asked for
    U, V = np.pad(U, ((0, 0), (0, unused))), np.pad(V, ((0, unused), (0, 0)))
    shift = U @ (V @ features.design.mean)
    intercept = scaling.location + scaling.scale * layer.intercept - shift
    return U, V, intercept, scaling.scale * np.exp(layer.log_sigma)


def to_standard(
    features: RoundFeatures, scaling: TargetScaling, factors: Factors, rank: int
) -> Layer:
    """The inverse of :func:`to_user`: of a model's first ``rank`` components."""
    U, V, intercept, sigma = factors
    centred = intercept + U @ (V @ features.design.mean) - scaling.location
    return Layer(
        U=U[:, :rank] / scaling.scale[:, None],
        Z=features.coordinates((V[:rank] * features.design.scale).T),
        intercept=centred / scaling.scale,
        log_sigma=np.log(sigma / scaling.scale),
    )
