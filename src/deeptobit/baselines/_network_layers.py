"""Layers of a plain feed-forward network, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import numpy as np

from deeptobit.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class DenseLayer:
    r"""The map :math:`h \mapsto F_1 F_2 \cdots h + b`, in front of its non-linearity.

    Parameters
    ----------
    factors : tuple of arrays
        One weight matrix (M, D), or two factors U (M, R) and V (R, D) with a linear bottleneck of
        R units between them.
    bias : array of shape (M,)
    """

    factors: tuple[FloatArray, ...]
    bias: FloatArray

    @property
    def weight(self) -> FloatArray:
        """The product of the factors, (M, D)."""
        return reduce(np.matmul, self.factors)

    def forward(self, below: FloatArray) -> FloatArray:
        """Inputs (N, D) to scores (N, M)."""
        return reduce(lambda rows, factor: rows @ factor.T, self.factors[::-1], below) + self.bias


def draw_layers(sizes: Sequence[int], rng: np.random.Generator) -> list[DenseLayer]:
    """Random layers between consecutive sizes: Gaussian weights of variance 2/D (He), no bias.

    Examples
    --------
    >>> layers = draw_layers([5, 3, 3], np.random.default_rng(0))
    >>> [layer.weight.shape for layer in layers]
    [(3, 5), (3, 3)]
    """
    return [
        DenseLayer((rng.normal(0.0, np.sqrt(2.0 / below), (above, below)),), np.zeros(above))
        for below, above in pairwise(sizes)
    ]


def forward(layers: Sequence[DenseLayer], X: FloatArray) -> FloatArray:
    """Scores of the last layer (N, T); every layer below passes on the positive part of its own."""
    for layer in layers[:-1]:
        X = np.maximum(layer.forward(X), 0.0)
    return layers[-1].forward(X)


def factorise(layer: DenseLayer, rank: int) -> DenseLayer:
    r"""The layer with its weights replaced by the nearest ones of a rank, as factors U and V.

    .. math:: W \approx P S Q^\top = (P S^{1/2})(S^{1/2} Q^\top) = UV

    with the R largest singular values of W, or all of them where there are fewer.

    Examples
    --------
    >>> layer = factorise(DenseLayer((np.diag([4.0, 1.0]),), np.zeros(2)), rank=1)
    >>> np.abs(layer.factors[0].round(6)), layer.weight.round(6)
    (array([[2.], [0.]]), array([[4., 0.], [0., 0.]]))
    """
    left, sizes, right = np.linalg.svd(layer.weight, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    return replace(layer, factors=(left[:, :rank] * root, root[:, None] * right[:rank]))
