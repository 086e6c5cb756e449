"""Integrals outward from a point, of functions that take many points at once."""

from collections.abc import Callable

import numpy as np

from deeptobit.arrays import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def outward(
    function: Callable[[FloatArray], FloatArray], reach: float, *, bends: FloatArray | None = None
) -> FloatArray:
    """The integral over distances from 0 to ``reach``, along the last axis of what is returned.

    Gauss and Legendre's rule on panels of length 1/4 at most up to 40, and on panels that grow with
    the distance beyond; functions may bend at whole quarters and at ``bends``.
    """
    further = 40.0 * 1.4 ** np.arange(1.0, max(np.log(reach / 40.0) / np.log(1.4), 0.0) + 1.0)
    edges = np.concatenate([np.arange(0.0, 40.25, 0.25), further, () if bends is None else bends])
    edges = np.unique(np.append(edges[edges < reach], reach))
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    points = middle[:, None] + half[:, None] * _NODES
    weights = half[:, None] * _WEIGHTS
    return np.asarray(function(points.ravel()) @ weights.ravel())
