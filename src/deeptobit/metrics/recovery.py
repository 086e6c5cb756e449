"""How well a task subspace was recovered."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orth, svdvals
from scipy.special import gammaln

from deeptobit.arrays import FloatArray


class MutualCoherence(NamedTuple):
    """Absolute cosines between all pairs of vectors of two matrices.

    Attributes
    ----------
    maximum, mean : float
    chance : float
        Expected mean for independent Gaussian vectors of that length.
    """

    maximum: float
    mean: float
    chance: float


def principal_angles(U: ArrayLike, U_hat: ArrayLike) -> FloatArray:
    r"""Principal angles between the column spaces of U and Û, in radians, ascending.

    .. math:: \cos\theta_k = \text{k-th singular value of } Q^\top \hat Q

    with orthonormal bases Q and Q̂ of the two column spaces. Sine and cosine are both computed, so
    that angles near 0 are as accurate as those near π/2. The largest is 0 if and only if the
    smaller space lies in the larger. Angles do not change under U → UA with A invertible, so they
    show whether the subspace was recovered.

    Parameters
    ----------
    U : array of shape (T, R)
    U_hat : array of shape (T, S)

    Returns
    -------
    array of shape (min(rank U, rank Û),)

    Examples
    --------
    >>> U = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> U_hat = np.array([[1.0, 5.0], [0.0, 1.0], [0.0, 1.0]])
    >>> np.degrees(principal_angles(U, U_hat)).round(4)
    array([ 0., 45.])
    """
    truth, estimate = _read_pair(U, U_hat)
    smaller, larger = sorted((orth(truth), orth(estimate)), key=np.size)
    overlap = larger.T @ smaller
    # scipy.linalg.subspace_angles picks sine or cosine in the wrong order (SciPy 1.17): beside an
    # angle above 45° it returns 0 for one of 1e-12. The arctangent needs no choice.
    return np.arctan2(svdvals(smaller - larger @ overlap)[::-1], svdvals(overlap))


def subspace_difference(U: ArrayLike, U_hat: ArrayLike) -> float:
    r"""The paper's subspace difference :math:`\|U - \hat U\|_F / \|U\|_F`.

    It is **not** invariant under U → UA, V → A⁻¹V, which leaves UV and every prediction as they
    are: even a rotation of a perfectly recovered subspace, or a change of sign, makes it large.
    Report :func:`principal_angles` beside it.

    Parameters
    ----------
    U, U_hat : arrays of shape (T, R)

    Returns
    -------
    float

    Examples
    --------
    >>> U = np.eye(3)[:, :2]
    >>> round(subspace_difference(U, 0.9 * U), 4), subspace_difference(U, -U)
    (0.1, 2.0)
    """
    truth, estimate = _read_matrix(U, "U"), _read_matrix(U_hat, "U_hat", may_be_zero=True)
    if truth.shape != estimate.shape:
        raise ValueError(f"U has shape {truth.shape} but U_hat has shape {estimate.shape}")
    size = np.abs(truth).max()
    return float(np.linalg.norm((truth - estimate) / size) / np.linalg.norm(truth / size))


def mutual_coherence(U: ArrayLike, U_hat: ArrayLike) -> MutualCoherence:
    r"""Absolute cosines between all pairs of columns of two matrices.

    .. math::
        \frac{|u_j^\top \hat u_k|}{\|u_j\|\,\|\hat u_k\|}, \qquad
        E|\cos| = \frac{\Gamma(n/2)}{\sqrt\pi\,\Gamma((n+1)/2)}

    The expectation is that of independent Gaussian vectors of length n = T, the level that the mean
    has by chance: 0.26 at n = 10, 0.08 at n = 100. The paper reports maximum and mean; neither is
    invariant under U → UA, and a mean at chance level says nothing of recovery. Report
    :func:`principal_angles` beside it.

    Parameters
    ----------
    U, U_hat : arrays of shapes (T, R) and (T, S)

    Returns
    -------
    MutualCoherence
        Named tuple (maximum, mean, chance).

    Examples
    --------
    >>> result = mutual_coherence([[1.0, 0.0], [0.0, 1.0]], [[1.0, 3.0], [0.0, 4.0]])
    >>> [round(value, 4) for value in result]
    [1.0, 0.6, 0.6366]
    """
    truth, estimate = _read_pair(U, U_hat)
    cosines = np.abs(_unit_columns(truth, "U").T @ _unit_columns(estimate, "U_hat"))
    length = len(truth)
    chance = np.exp(gammaln(0.5 * length) - gammaln(0.5 * (length + 1))) / np.sqrt(np.pi)
    return MutualCoherence(float(min(cosines.max(), 1.0)), float(cosines.mean()), float(chance))


def _read_pair(U: ArrayLike, U_hat: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two matrices with one row per task."""
    truth, estimate = _read_matrix(U, "U"), _read_matrix(U_hat, "U_hat")
    if len(truth) != len(estimate):
        shapes = f"U has shape {truth.shape} but U_hat has shape {estimate.shape}"
        raise ValueError(f"{shapes}; both need one row per task")
    return truth, estimate


def _read_matrix(matrix: ArrayLike, what: str, *, may_be_zero: bool = False) -> FloatArray:
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{what} must be a matrix, tasks by rank; got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{what} contains NaN or infinity")
    if not (may_be_zero or values.any()):
        raise ValueError(f"{what} is 0 everywhere: it spans no subspace")
    return values


def _unit_columns(vectors: FloatArray, what: str) -> FloatArray:
    size = np.abs(vectors).max(axis=0)
    for index in np.flatnonzero(size == 0.0).tolist():
        raise ValueError(f"column {index} of {what} is 0 and has no direction")
    scaled = vectors / size
    return np.asarray(scaled / np.linalg.norm(scaled, axis=0))
