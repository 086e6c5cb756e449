"""Networks in the user's units and in standard ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network._layer import NetworkLayer


@dataclass(frozen=True)
class Units:
    """Features standardised by mean and scale (D,), outcomes by location and spread (T,).

    Outputs of a layer are outcomes, so they are standardised as outcomes are, whatever the layer
    makes of them: the meaning of a penalty on V does not change while a network is trained.
    """

    mean: FloatArray
    scale: FloatArray
    location: FloatArray
    spread: FloatArray

    def to_user(self, layers: Sequence[NetworkLayer]) -> tuple[NetworkLayer, ...]:
        """The same network for raw features and outcomes."""
        return tuple(self._layer_to_user(layer, depth) for depth, layer in enumerate(layers))

    def to_standard(self, layers: Sequence[NetworkLayer]) -> tuple[NetworkLayer, ...]:
        """The inverse of ``to_user``."""
        return tuple(self._layer_to_standard(layer, depth) for depth, layer in enumerate(layers))

    def outcome(self, value: FloatArray) -> FloatArray:
        """Bounds of outcomes in standard units."""
        return np.asarray((value - self.location) / self.spread)

    def _layer_to_user(self, layer: NetworkLayer, depth: int) -> NetworkLayer:
        centre, unit = self._inputs(layer, depth)
        U, V = layer.U * self.spread[:, None], layer.V / unit
        intercept = self.location + self.spread * layer.intercept - U @ (V @ centre)
        return NetworkLayer(U, V, intercept, layer.sigma * self.spread)

    def _layer_to_standard(self, layer: NetworkLayer, depth: int) -> NetworkLayer:
        centre, unit = self._inputs(layer, depth)
        intercept = (layer.intercept + layer.coef @ centre - self.location) / self.spread
        U, V = layer.U / self.spread[:, None], layer.V * unit
        return NetworkLayer(U, V, intercept, layer.sigma / self.spread)

    def _inputs(self, layer: NetworkLayer, depth: int) -> tuple[FloatArray, FloatArray]:
        """Centre and unit of each input of a layer, (D_k,)."""
        if depth == 0:
            return self.mean, self.scale
        if layer.V.shape[1] == len(self.spread):
            return self.location, self.spread
        return np.append(self.location, self.mean), np.append(self.spread, self.scale)
