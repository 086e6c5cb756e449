"""Second moments of features and outcomes, for tasks that are known in different rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.baselines._missing import blocks
from deeptobit.baselines._proximal import squared_norm


@dataclass(frozen=True, eq=False)
class Moments:
    """Tasks that are known in the same rows, and the moments of these rows.

    Parameters
    ----------
    tasks : array of shape (A,)
    mean_x, mean_y : arrays of shapes (D,) and (A,)
    root : array of shape (min(n, D), D)
        A square root of the features' second moments: rootᵀ root = XᵀX/N, centred.
    cross : array of shape (D, A)
        XᵀY/N, centred.
    total : float
        ‖Y‖²/N, centred.
    """

    tasks: NDArray[np.intp]
    mean_x: FloatArray
    mean_y: FloatArray
    root: FloatArray
    cross: FloatArray
    total: float

    @property
    def curvature(self) -> float:
        """The largest second moment in any direction."""
        return squared_norm(self.root)

    def times(self, W: FloatArray) -> FloatArray:
        """XᵀXW/N for coefficients W (D, A)."""
        return np.asarray(self.root.T @ (self.root @ W))


def moments(X: FloatArray, Y: FloatArray) -> Iterator[Moments]:
    """Moments of tasks by the rows in which they are known, each divided by all N rows.

    Examples
    --------
    >>> X, Y = np.array([[1.0], [3.0], [8.0]]), np.array([[0.0], [2.0], [np.nan]])
    >>> found = next(moments(X, Y))
    >>> found.mean_x, found.cross.round(4), round(found.curvature, 4)
    (array([2.]), array([[0.6667]]), 0.6667)
    """
    for known, tasks in blocks(Y):
        share, outcomes = X[known], Y[np.ix_(known, tasks)]
        count = max(len(share), 1)
        mean_x, mean_y = share.sum(axis=0) / count, outcomes.sum(axis=0) / count
        centred, deviations = (share - mean_x) / np.sqrt(len(X)), outcomes - mean_y
        root = np.asarray(np.linalg.qr(centred, "r")) if len(share) > X.shape[1] else centred
        cross = centred.T @ deviations / np.sqrt(len(X))
        total = float(np.square(deviations).sum()) / len(X)
        yield Moments(tasks, mean_x, mean_y, root, cross, total)
