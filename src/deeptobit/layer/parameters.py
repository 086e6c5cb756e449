"""The parameters of one layer, in standard units and in the user's."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.features import BasisFeatures
from deeptobit.targets import CensoredTargets

Factors = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""U (T, R), V (R, D), intercept and σ (T,) of a layer."""


class Layer(NamedTuple):
    """Parameters in standard units: U (T, R), Z (r, R) with V = (BZ)ᵀ, intercept and log σ (T,)."""

    U: FloatArray
    Z: FloatArray
    intercept: FloatArray
    log_sigma: FloatArray


class Units(NamedTuple):
    """Centre and scale of a layer's inputs (D,), location and spread of its outcomes (T,).

    Examples
    --------
    >>> units = Units(np.array([10.0]), np.array([2.0]), np.array([5.0]), np.array([4.0]))
    >>> one = np.ones((1, 1))
    >>> U, V, intercept, sigma = units.to_user((one, one, np.zeros(1), np.ones(1)))
    >>> (U @ V).item(), intercept.item(), sigma.item()
    (2.0, -15.0, 4.0)
    """

    mean: FloatArray
    scale: FloatArray
    location: FloatArray
    spread: FloatArray

    def to_user(self, factors: Factors) -> Factors:
        """The same layer for raw inputs and raw outcomes."""
        U, V, intercept, sigma = factors
        U, V = U * self.spread[:, None], V / self.scale
        shift = U @ (V @ self.mean)
        return U, V, self.location + self.spread * intercept - shift, self.spread * sigma

    def to_standard(self, factors: Factors) -> Factors:
        """The inverse of :meth:`to_user`."""
        U, V, intercept, sigma = factors
        centred = intercept + U @ (V @ self.mean) - self.location
        scaled = centred / self.spread
        return U / self.spread[:, None], V * self.scale, scaled, sigma / self.spread


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
    def build(cls, targets: CensoredTargets, weight: FloatArray, *, center: bool) -> Self:
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
    def of_moments(cls, mean: FloatArray, variance: FloatArray, *, center: bool) -> Self:
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


def to_user(features: BasisFeatures, scaling: TargetScaling, layer: Layer, rank: int) -> Factors:
    """U (T, R), V (R, D), intercept and σ (T,), with empty components up to ``rank``."""
    unused = rank - layer.U.shape[1]  # features may span fewer directions than asked for
    U = np.pad(layer.U, ((0, 0), (0, unused)))
    V = np.pad(features.coefficients(layer.Z).T, ((0, unused), (0, 0)))
    units = _units(features, scaling)
    return units.to_user((U, V, layer.intercept, np.exp(layer.log_sigma)))


def to_standard(
    features: BasisFeatures, scaling: TargetScaling, factors: Factors, rank: int
) -> Layer:
    """The inverse of :func:`to_user`: of a model's first ``rank`` components."""
    U, V, intercept, sigma = _units(features, scaling).to_standard(factors)
    return Layer(U[:, :rank], features.coordinates(V[:rank].T), intercept, np.log(sigma))


def _units(features: BasisFeatures, scaling: TargetScaling) -> Units:
    design = features.design
    return Units(design.mean, design.scale, scaling.location, scaling.scale)
