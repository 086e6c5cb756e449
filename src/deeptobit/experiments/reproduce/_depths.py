"""Networks of several depths from one growth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.experiments.reproduce._method import Reading


@dataclass(eq=False)
class GrownDepths:
    """What a network predicts when it may grow to each of several depths.

    Growth does not look ahead, and layers that do not pay are undone: a network whose paying depth
    is p is the network of every depth from p on, and only shallower ones are grown anew.

    Parameters
    ----------
    network : SubspaceNetworkRegressor
        Without joint tuning; its own depth does not matter.
    depths : tuple of int
    """

    network: SubspaceNetworkRegressor
    depths: tuple[int, ...]

    def fit(self, X: FloatArray, y: Any) -> GrownDepths:
        """Grow the deepest network, and shallower ones as far as they differ."""
        self.networks_: dict[int, SubspaceNetworkRegressor] = {}
        network = None
        for depth in sorted(self.depths, reverse=True):
            if network is None or network.history_["paying_depth"] > depth:
                network = clone(self.network).set_params(n_layers=depth).fit(X, y)
            self.networks_[depth] = network
        return self


def depth(number: int) -> Reading:
    """The clipped score of the network that may have this many layers."""
    return partial(_predict_depth, number=number)


def _predict_depth(model: GrownDepths, X: FloatArray, number: int) -> FloatArray:
    return np.asarray(model.networks_[number].predict(X, kind="clip"))
