"""Subspace Networks as the paper learns them and as we do, by depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from paper.arrays import FloatArray
from paper.methods import Method, Reading
from paper.section import Context, Scale

# One layer as the paper learns it, and as we do.

OURS = "deeptobit's defaults"


def default_layer(scale: Scale) -> SubspaceTobitRegressor:
    """One pass with steps of its own, averaging, intercepts and learned noise scales."""
    return SubspaceTobitRegressor(scale.rank, solver="online")


def paper_step(scale: Scale) -> float:
    """A constant step of the right size, 1/(T·R) ≈ 1/‖U‖²; the paper does not state its own.

    Examples
    --------
    >>> from paper.section import PAPER
    >>> round(paper_step(PAPER), 6)
    0.001
    """
    return 1.0 / (scale.n_tasks * scale.rank)


def _as_printed(scale: Scale, step: float, seed: int) -> dict[str, Any]:
    """Algorithm 1 as printed: constant step, last iterate, no intercept, known σ."""
    return {
        "solver": "online",
        "alpha": 0.0,
        "step_size": step,
        "averaging": False,
        "start": "random",
        "fit_intercept": False,
        "sigma": scale.sigma,
        "standardize": False,
        "random_state": seed,
    }


def paper_layer(scale: Scale, step: float, seed: int) -> SubspaceTobitRegressor:
    """One layer by Algorithm 1 of the paper."""
    return SubspaceTobitRegressor(scale.rank, **_as_printed(scale, step, seed))


_STEPS = (0.3, 1.0, 3.0)  # relative to paper_step


def recipe(scale: Scale, context: Context, rows: dict[int, str]) -> Method:
    """The paper's networks by depth: one pass of Algorithm 1 per layer, at three steps.

    Every layer is grown from the outputs below, and kept if it gains more log likelihood than it
    has parameters.
    """
    settings = [_as_printed(scale, share * paper_step(scale), context.seed) for share in _STEPS]
    networks = [
        SubspaceNetworkRegressor(scale.rank, joint_tuning=False, **each) for each in settings
    ]
    return grown(networks, rows)


# Networks of several depths from one growth.


@dataclass(eq=False)
class GrownDepths:
    """Networks that may grow to each of several depths.

    Growth is greedy, and layers that do not pay are removed: a network whose paying depth is p is
    that of every larger depth, too, and only shallower ones are grown again.

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


def grown(networks: Sequence[SubspaceNetworkRegressor], rows: dict[int, str]) -> Method:
    """Networks that grow layer by layer; the rows of the table are named by depth."""
    grid = tuple(GrownDepths(network, tuple(rows)) for network in networks)
    return Method(grid, {name: depth(number) for number, name in rows.items()})
