"""Moments of Gaussian noise that is known to lie in an interval."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._evaluate import closed_intervals
from deeptobit.likelihood import Gaussian, reference_evaluate

_GAUSSIAN = Gaussian()


def truncated_moments(
    low: FloatArray, high: FloatArray, latent: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Mean and variance of ε given low ≤ η + ε ≤ high, with ε ~ N(0, 1).

    .. math:: E[\varepsilon] = -\partial_\eta \mathrm{nll},\qquad
        \mathrm{Var}[\varepsilon] = 1 - \partial_\eta^2 \mathrm{nll}

    An observed entry has variance 0, one of which nothing is known has mean 0 and variance 1.

    Parameters
    ----------
    low, high, latent : arrays of shape (N, T)
        In units of the noise; NaN ends where nothing is known.

    Examples
    --------
    >>> low, high = np.array([[1.5, -np.inf, np.nan]]), np.array([[1.5, 0.0, np.nan]])
    >>> mean, variance = truncated_moments(low, high, np.ones((1, 3)))
    >>> mean.round(4), variance.round(4)
    (array([[ 0.5   , -1.5251,  0.    ]]), array([[0.    , 0.1991, 1.    ]]))
    """
    from deeptobit.kernels._gaussian import fill_moments  # numba loads on first use

    mean, variance = np.empty(latent.shape), np.empty(latent.shape)
    if fill_moments(low, high, latent, mean, variance):
        closed = closed_intervals(low, high)
        at = reference_evaluate(
            _GAUSSIAN, low[closed], high[closed], latent[closed], np.ones(int(closed.sum()))
        )
        mean[closed] = -at.latent
        variance[closed] = np.maximum(1.0 - at.latent_latent, 0.0)
    return mean, variance
