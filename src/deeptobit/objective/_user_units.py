"""A layer in standard units and in the user's."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._layer import Layer
from deeptobit.objective._scaling import TargetScaling

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
