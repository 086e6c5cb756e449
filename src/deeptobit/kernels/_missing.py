"""The noise of entries that are missing, as that of the other outcomes of the row tells it."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray


def missing_noise(noise: FloatArray, missing: BoolArray, correlation: FloatArray) -> FloatArray:
    r"""The noise of every row, with its expectation where it is missing, (N, T).

    .. math:: E[\varepsilon_m \mid \varepsilon_k] = -P_{mm}^{-1} P_{mk} \varepsilon_k,\qquad
        P = R^{-1}

    Parameters
    ----------
    noise : array of shape (N, T)
        0 where it is missing.
    missing : bool array of shape (N, T)
    correlation : array of shape (T, T)
        R, positive definite.

    Examples
    --------
    >>> missing = np.array([[False, True]])
    >>> missing_noise(np.array([[2.0, 0.0]]), missing, np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([[2., 1.]])
    """
    from deeptobit.kernels._missing_rows import fill_missing  # numba loads on first use

    filled = noise.copy()
    fill_missing(filled, missing, np.asarray(np.linalg.inv(correlation), dtype=np.float64))
    return filled


def reference_missing_noise(
    noise: FloatArray, missing: BoolArray, correlation: FloatArray
) -> FloatArray:
    r"""NumPy reference of :func:`missing_noise`, by the correlation instead of its inverse.

    .. math:: E[\varepsilon_m \mid \varepsilon_k] = R_{mk} R_{kk}^{-1} \varepsilon_k
    """
    filled = noise.copy()
    for row, gone in enumerate(missing):
        between = correlation[np.ix_(gone, ~gone)]
        within = correlation[np.ix_(~gone, ~gone)]
        filled[row, gone] = between @ np.linalg.solve(within, noise[row, ~gone])
    return filled
