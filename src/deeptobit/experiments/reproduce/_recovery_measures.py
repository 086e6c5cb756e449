"""How close a learned subspace is to the true one, and how close a random one is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.metrics import mutual_coherence, principal_angles, subspace_difference

_DRAWS = 200


class Recovery(NamedTuple):
    """The paper's three measures, and the ones that are invariant under U → UA.

    Parameters
    ----------
    difference : float
        ‖U − Û‖/‖U‖ with Û scaled to the norm of U.
    maximum, mean : float
        Mutual coherence of the columns.
    smallest_cosine, mean_cosine : float
        Of the principal angles.
    """

    difference: float
    maximum: float
    mean: float
    smallest_cosine: float
    mean_cosine: float


def compare(U: FloatArray, learned: FloatArray) -> Recovery:
    """Measure a learned subspace.

    Examples
    --------
    >>> U = np.eye(4)[:, :2]
    >>> [round(float(value), 2) for value in compare(U, 5.0 * U[:, ::-1])]
    [1.41, 1.0, 0.5, 1.0, 1.0]
    """
    scaled = learned * (np.linalg.norm(U) / np.linalg.norm(learned))
    coherence = mutual_coherence(U, learned)
    cosines = np.cos(principal_angles(U, learned))
    return Recovery(
        subspace_difference(U, scaled),
        coherence.maximum,
        coherence.mean,
        float(cosines.min()),
        float(cosines.mean()),
    )


def chance(n_rows: int, n_columns: int, seed: int) -> Recovery:
    """Means over pairs of independent Gaussian matrices.

    Examples
    --------
    >>> [round(float(value), 2) for value in chance(100, 10, seed=0)]
    [1.41, 0.27, 0.08, 0.02, 0.27]
    """
    rng = np.random.default_rng(seed)
    shape = n_rows, n_columns
    pairs = [(rng.standard_normal(shape), rng.standard_normal(shape)) for _ in range(_DRAWS)]
    return Recovery(*np.mean([compare(*pair) for pair in pairs], axis=0).tolist())
