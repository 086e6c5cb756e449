"""The level at which E[y|x] is right on average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive

_STEPS = 20
_TOLERANCE = 1e-12  # of a step, in noise scales


def shift_of_level(predictive: Predictive, y: FloatArray, share: FloatArray) -> FloatArray:
    r"""By how much the level should rise so that E[y|x] is right on average, (T,).

    Where the noise is not what the model takes it for, the likelihood gets the mean wrong. The mean
    residual r of held-out rows is corrected by :math:`r(1 - se^2/r^2)_+`, through the level, so
    that the predictive distribution moves along.

    Parameters
    ----------
    predictive : Predictive
        Of the held-out rows.
    y : array of shape (N, T)
    share : array of shape (N, T)
        Weights of the rows, 0 where y is not known.
    """
    n_entries = share.sum(axis=0)
    unit = share / np.where(n_entries > 0.0, n_entries, 1.0)
    mean = predictive.mean()
    sigma = np.broadcast_to(predictive.sigma, unit.shape).mean(axis=0)
    residual = np.where(share > 0.0, y - mean, 0.0) / sigma  # whose squares do not overflow
    bias = (unit * residual).sum(axis=0)
    squared_error = (unit * np.square(residual - bias)).sum(axis=0) / np.maximum(n_entries, 1.0)
    kept = np.maximum(1.0 - squared_error / np.maximum(bias**2, 1e-300), 0.0)
    wanted = (unit * mean).sum(axis=0) + kept * bias * sigma
    shift = np.zeros_like(bias)
    for _ in range(_STEPS if kept.any() else 0):
        moved = replace(predictive, latent=predictive.latent + shift)
        slope = np.maximum((unit * moved.mean_slopes()[0]).sum(axis=0), 1e-3)
        step = (wanted - (unit * moved.mean()).sum(axis=0)) / slope
        step = np.where(kept > 0.0, np.clip(step, -0.5 * sigma, 0.5 * sigma), 0.0)
        shift += step
        if (np.abs(step) <= _TOLERANCE * sigma).all():
            break
    return np.asarray(shift)
