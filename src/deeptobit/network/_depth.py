"""Whether a network's depth pays for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deeptobit.network._layer import NetworkLayer


def paying_depth(nlls: Sequence[float], n_rows: float, n_per_layer: int) -> int:
    """The depth from 1 on with the least Akaike criterion n·nll + number of parameters.

    A layer that is grown on top adds one number per component and output below to what is fitted
    to the outcomes; what lies below it is not touched.

    Parameters
    ----------
    nlls : sequence of float
        Mean negative log likelihood per row of networks of depth 1, 2, …
    n_rows : float
        Their total weight.
    n_per_layer : int
        R·T, the parameters on the outputs below.

    Examples
    --------
    >>> paying_depth([3.0, 2.5, 2.499], n_rows=1000, n_per_layer=50)
    2
    """
    criteria = [n_rows * nll + depth * n_per_layer for depth, nll in enumerate(nlls)]
    return int(np.argmin(criteria)) + 1


def deepened(layers: Sequence[NetworkLayer], n_layers: int) -> tuple[NetworkLayer, ...]:
    """The same function as a network of ``n_layers``, by repeating the first layer.

    The copies look at x alone (zeros for the outputs below), so that they pass on what the first
    layer says.
    """
    first = layers[0]
    copy = replace(first, V=np.pad(first.V, ((0, 0), (len(first.U), 0))))
    return (first, *[copy] * (n_layers - len(layers)), *layers[1:])


def tuning_gain(
    before: float,
    after: float,
    n_rows: float,
    grown: Sequence[NetworkLayer],
    tuned: Sequence[NetworkLayer],
) -> float:
    """Log likelihood gained over the number of parameters that tuning sets free.

    Above 1 tuning pays (Akaike). ``before`` and ``after`` are mean negative log likelihoods per
    row. In a grown network only the last layer is fitted to the outcomes, in a tuned one all are.
    """
    added = sum(layer.n_parameters for layer in tuned) - grown[-1].n_parameters
    return n_rows * (before - after) / max(added, 1)
