"""The depth of a network, chosen by rows that are set aside."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray
from deeptobit.estimators._diagnosis import check_determined
from deeptobit.estimators._network_training import NetworkTraining
from deeptobit.likelihood import evaluate
from deeptobit.network import NetworkLayer, latents
from deeptobit.targets import CensoredTargets


def validated_depth(
    training: NetworkTraining,
    matrix: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    *,
    n_layers: int,
    fraction: Any,
    random_state: Any,
) -> tuple[int, list[float]]:
    """The depth up to which some rows that are set aside are predicted better and better.

    Returns
    -------
    depth : int
        At most ``n_layers``.
    scores : list of float
        Negative log likelihood of the rows set aside, of every depth that was tried.
    """
    if not (isinstance(fraction, Real) and 0.0 < float(fraction) < 1.0):
        raise ValueError(f"validation_fraction must lie between 0 and 1; got {fraction!r}")
    order = check_random_state(random_state).permutation(np.flatnonzero(weight))
    n_aside = max(1, round(float(fraction) * len(order)))
    aside, rest = np.sort(order[:n_aside]), np.sort(order[n_aside:])
    check_determined(targets[rest], weight[rest], 0, 1.0)
    scores: list[float] = []
    for depth in range(1, n_layers + 1):
        layers = training.run(matrix[rest], targets[rest], weight[rest], depth).layers
        scores.append(_loss(training, layers, matrix[aside], targets[aside], weight[aside]))
        if depth > 1 and scores[-1] >= scores[-2]:
            return depth - 1, scores
    return n_layers, scores


def _loss(
    training: NetworkTraining,
    layers: tuple[NetworkLayer, ...],
    matrix: Any,
    targets: CensoredTargets,
    weight: FloatArray,
) -> float:
    """Negative log likelihood per entry, averaged over the tasks that have any."""
    *_, latent = latents(layers, matrix, targets.lower, targets.upper)
    nll = evaluate(training.online.noise, targets.low, targets.high, latent, layers[-1].sigma).nll
    known = weight @ ~targets.missing  # nothing, for tasks that are rare
    each = np.divide(weight @ nll, known, out=np.zeros_like(known), where=known > 0)
    return float(each.sum() / max(np.count_nonzero(known), 1))
