"""Features in their own basis, for penalties that tell one feature from another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._basis import BASIS_RIDGE, RoundFeatures
from deeptobit.objective._design import Design


@dataclass(frozen=True)
class AlignedFeatures(RoundFeatures):
    """The standardised features themselves, B = I, beside their round version.

    Parameters
    ----------
    rounded : RoundFeatures
        The same features in the basis in which problems without a choice of features are round.
    """

    rounded: RoundFeatures

    @cached_property
    def gram(self) -> FloatArray:
        """Weighted second moments of the features, (D, D)."""
        return replace(self.design, matrix=self._source).gram()

    @property
    def _source(self) -> object:
        return self.design.matrix if self.matrix is None else self.matrix


def round_features(features: RoundFeatures) -> RoundFeatures:
    """The features in their round basis, whatever basis they are in."""
    return features.rounded if isinstance(features, AlignedFeatures) else features


def subspace_features(design: Design, feature_sparsity: float = 0.0) -> RoundFeatures:
    """The features in the basis that suits the penalty of :class:`SubspaceProblem`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> design = Design.build(X, np.full(20, 1 / 20), center=True, standardize=True)
    >>> type(subspace_features(design)).__name__, type(subspace_features(design, 0.5)).__name__
    ('RoundFeatures', 'AlignedFeatures')
    """
    features = RoundFeatures.build(design, BASIS_RIDGE)
    if feature_sparsity == 0.0:
        return features
    n_features = len(design.scale)
    matrix = None if design.is_sparse else design.matrix
    return AlignedFeatures(
        features.design, np.ones(n_features), np.zeros(n_features), matrix, features
    )
