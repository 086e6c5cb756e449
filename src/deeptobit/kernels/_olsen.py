"""Sums over rows of the likelihood in Olsen's coordinates, as a Newton step needs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray, SingleArray
from deeptobit.kernels._evaluate import closed_intervals
from deeptobit.likelihood import Gaussian, Noise, evaluate_olsen


@dataclass(frozen=True)
class OlsenRows:
    """Some rows' weighted contributions at (u, θ); τ is the change of log θ at a fixed line.

    Parameters
    ----------
    pull : array of shape (n, A)
        Derivatives by u.
    u_u, u_tau : single-precision arrays of shape (n, A)
        Curvatures by u, and by u and τ; they only shape search directions.
    sums : array of shape (3, A)
        Negative log likelihood, derivative and curvature by τ, summed over the rows.
    """

    pull: FloatArray
    u_u: SingleArray
    u_tau: SingleArray
    sums: FloatArray

    def __add__(self, other: OlsenRows) -> OlsenRows:
        """Entry-wise sum."""
        return OlsenRows(
            self.pull + other.pull,
            self.u_u + other.u_u,
            self.u_tau + other.u_tau,
            self.sums + other.sums,
        )


def olsen_rows(
    noise: Noise,
    low: FloatArray,
    high: FloatArray,
    u: FloatArray,
    theta: FloatArray,
    weight: FloatArray,
) -> OlsenRows:
    """Contributions of some rows, compiled where the noise has a kernel.

    Parameters
    ----------
    noise : Noise
    low, high, u : arrays of shape (n, A)
    theta : array of shape (A,)
    weight : array of shape (n,)

    Examples
    --------
    >>> low, high = np.array([[1.0], [-np.inf]]), np.array([[1.0], [0.0]])
    >>> u, theta, weight = np.full((2, 1), 4.0), np.array([2.0]), np.array([0.5, 0.5])
    >>> olsen_rows(Gaussian(), low, high, u, theta, weight).pull.ravel().round(4)
    array([1.    , 2.1128])
    """
    if not isinstance(noise, Gaussian):
        return reference_olsen_rows(noise, low, high, u, theta, weight)
    from deeptobit.kernels._gaussian import add_olsen  # numba loads on first use

    rows = OlsenRows(
        np.empty(u.shape),
        np.empty(u.shape, dtype=np.float32),
        np.empty(u.shape, dtype=np.float32),
        np.zeros((3, len(theta))),
    )
    if add_olsen(low, high, u, theta, weight, rows.pull, rows.u_u, rows.u_tau, rows.sums):
        closed = closed_intervals(low, high)
        low, high = np.where(closed, low, np.nan), np.where(closed, high, np.nan)
        rows += reference_olsen_rows(noise, low, high, u, theta, weight)
    return rows


def reference_olsen_rows(
    noise: Noise,
    low: FloatArray,
    high: FloatArray,
    u: FloatArray,
    theta: FloatArray,
    weight: FloatArray,
) -> OlsenRows:
    """NumPy reference of :func:`olsen_rows`, for every noise family and kind of entry."""
    at = evaluate_olsen(noise, low, high, u, theta)
    share = weight[:, None]
    # A change τ of log θ at a fixed line moves u by uτ and θ by θτ.
    by_tau = u * at.u + theta * at.theta
    u_tau = u * at.u_u + theta * at.u_theta
    tau_tau = u * (u_tau + theta * at.u_theta) + theta**2 * at.theta_theta
    return OlsenRows(
        share * at.u,
        (share * at.u_u).astype(np.float32),
        (share * u_tau).astype(np.float32),
        np.stack([weight @ at.nll, weight @ by_tau, weight @ tau_tau]),
    )
