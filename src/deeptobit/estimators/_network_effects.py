"""How a network is explained: by its mean slopes, and layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.estimators._explain import LayerEffects, feature_scale
from deeptobit.estimators._inputs import feature_names
from deeptobit.estimators._low_rank import LowRankRegressor
from deeptobit.estimators._settings import read_layer
from deeptobit.network import NetworkLayer, latents, mean_slopes


class ExplainedNetwork(LowRankRegressor):
    """Explanations of a network; they depend on where one looks, so that they need X."""

    layers_: tuple[NetworkLayer, ...]

    def _effects_per_deviation(self, X: Any) -> FloatArray:
        """Mean effect of one standard deviation of each feature on the last score, (T, D)."""
        matrix = self._read_rows_to_explain(X)
        slopes = mean_slopes(self.layers_, matrix, self.lower_, self.upper_)
        return slopes * feature_scale(matrix)

    def _layer_effects(self, layer: int, X: Any) -> LayerEffects:
        """Effects of a layer's inputs: the outputs below, which have the targets' names, and x."""
        matrix = self._read_rows_to_explain(X)
        depth = read_layer(layer, len(self.layers_))
        chosen, below = self.layers_[depth], self._below(matrix, depth)
        names, scale = [], np.zeros(0)
        if below is not None:
            names = [f"{name} (layer {depth})" for name in self.target_names_]
            scale = below.std(axis=0)
        if chosen.V.shape[1] > len(scale):
            names = names + feature_names(self)
            scale = np.append(scale, feature_scale(matrix))
        return LayerEffects(tuple(names), chosen.coef * scale / chosen.sigma[:, None])

    def _below(self, matrix: Any, depth: int) -> FloatArray | None:
        """What the layer at a depth sees beside x: the outputs of the one below, (N, T)."""
        below = None
        for latent in latents(self.layers_[:depth], matrix, self.lower_, self.upper_):
            below = np.clip(latent, self.lower_, self.upper_)
        return below

    def _read_rows_to_explain(self, X: Any) -> Any:
        if X is None:
            raise ValueError(
                "the effects of features in a network depend on where one looks; pass X, for "
                "example the rows it was fitted to"
            )
        return self._read_features(X)
