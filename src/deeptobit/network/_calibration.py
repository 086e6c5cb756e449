"""Noise scales of scores that are already there."""

from __future__ import annotations

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective import TargetScaling
from deeptobit.solvers import SIGMA_FLOOR
from deeptobit.targets import CensoredTargets

_STEPS = 12
_LONGEST = 0.7  # of one step: σ at most doubles or halves


def residual_sigma(
    targets: CensoredTargets, weight: FloatArray, latent: FloatArray, scaling: TargetScaling
) -> FloatArray:
    r"""The paper's calibration :math:`\hat\sigma_t^2 = \overline{(y_t - \hat y_t)^2}`, (T,).

    Parameters
    ----------
    targets : CensoredTargets
        A censored entry counts with the bound it is recorded at.
    weight : array of shape (N,)
    latent : array of shape (N, T)
        ŷ, the scores before censoring, in standard units like the result.
    scaling : TargetScaling

    Returns
    -------
    array of shape (T,)
        1 where a task has no entries.
    """
    share = np.where(targets.missing, 0.0, weight[:, None])
    total = share.sum(axis=0)
    residual = np.where(targets.missing, 0.0, scaling.apply(targets.values) - latent)
    mean_square = (share * residual**2).sum(axis=0) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, np.maximum(np.sqrt(mean_square), SIGMA_FLOOR), 1.0)


def likelihood_sigma(
    targets: CensoredTargets,
    weight: FloatArray,
    latent: FloatArray,
    scaling: TargetScaling,
    noise: Noise,
) -> FloatArray:
    """The σ_t under which given scores (N, T) are most likely, by Newton steps on log σ, (T,)."""
    low, high = scaling.apply(targets.low), scaling.apply(targets.high)
    log_sigma = np.log(residual_sigma(targets, weight, latent, scaling))
    for _ in range(_STEPS):
        at = likelihood.evaluate(noise, low, high, latent, np.exp(log_sigma))
        slope = weight @ at.log_sigma
        bend = np.abs(weight @ at.log_sigma_log_sigma)
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0.0)
        log_sigma -= np.clip(step, -_LONGEST, _LONGEST)
    return np.maximum(np.exp(log_sigma), SIGMA_FLOOR)
