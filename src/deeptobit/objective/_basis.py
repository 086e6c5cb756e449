"""A basis of the feature space in which the problem is round and has no null directions."""

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective._design import Design

_MAX_GRAM = 4000  # above this an eigendecomposition costs more than the iterations it saves
_RELATIVE_RANK = 1e-11  # of the largest eigenvalue: condition numbers of X up to 3e5 are resolved


@dataclass(frozen=True)
class Basis:
    r"""Directions B with :math:`B^\top(G + \alpha I)B = I`, G the Gram matrix of the features.

    Coefficients are written :math:`\gamma = Bz`. Then the ridge :math:`\alpha\|\gamma\|^2` is
    diagonal in z, and dropping the null space of G leaves the minimum-norm solution.

    Parameters
    ----------
    vectors : array of shape (D, r)
    ridge : array of shape (r,)
        α‖B_j‖², the penalty on each z_j.
    dropped : int
        Number of null directions.
    """

    vectors: FloatArray
    ridge: FloatArray
    dropped: int


def find_basis(design: Design, alpha: float) -> Basis:
    """Diagonalise the Gram matrix, or only scale it where that would be too dear.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    >>> design = Design.build(X, np.full(3, 1 / 3), center=True, standardize=True)
    >>> find_basis(design, alpha=0.0).dropped
    1
    """
    n_samples, n_features = design.shape
    if n_features > n_samples and n_samples <= _MAX_GRAM and not design.is_sparse:
        values, vectors = _wide_spectrum(design)
    elif n_features <= _MAX_GRAM:
        values, vectors = np.linalg.eigh(design.gram())
    else:
        unit = np.ones(n_features)
        return Basis(np.diag(unit / np.sqrt(1.0 + alpha)), unit * alpha / (1.0 + alpha), 0)
    keep = values > _RELATIVE_RANK * max(values.max(initial=0.0), np.finfo(np.float64).tiny)
    values, vectors = values[keep], vectors[:, keep]
    return Basis(
        vectors / np.sqrt(values + alpha), alpha / (values + alpha), n_features - len(values)
    )


def _wide_spectrum(design: Design) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of the Gram matrix with non-zero values, from the smaller N × N matrix."""
    root = np.sqrt(design.weight)[:, None] * design.matrix
    values, rows = np.linalg.eigh(root @ root.T)
    values, rows = np.maximum(values, 0.0), rows
    keep = values > _RELATIVE_RANK * max(values.max(initial=0.0), np.finfo(np.float64).tiny)
    values, rows = values[keep], rows[:, keep]
    return values, root.T @ rows / np.sqrt(values)
