"""What a layer sees of raw features, given the layers below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network import NetworkLayer, latents, layer_inputs


@dataclass(frozen=True)
class LayerInputs:
    """x, [f; x] or f: computed for some rows at a time, because all of them would not fit.

    Parameters
    ----------
    lower, upper : arrays of shape (T,)
        Bounds at which the outputs of layers are censored.
    layers : tuple of NetworkLayer
        Those below, in the user's units; none below the first.
    skip_connection : bool
    """

    lower: FloatArray
    upper: FloatArray
    layers: tuple[NetworkLayer, ...] = ()
    skip_connection: bool = True

    @property
    def n_outputs(self) -> int:
        """How many inputs are outputs of the layer below: they come first, in units of outcomes."""
        return len(self.lower) if self.layers else 0

    def __call__(self, X: FloatArray) -> FloatArray:
        """Inputs of the rows of X, (n, D_k)."""
        below = None
        for latent in latents(self.layers, X, self.lower, self.upper):
            below = np.clip(latent, self.lower, self.upper)
        return np.asarray(layer_inputs(X, below, skip_connection=self.skip_connection))
