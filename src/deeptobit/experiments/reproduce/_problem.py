"""The rows of one split, and what each of them is for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.targets import CensoredTargets

Rows = NDArray[np.intp]


class Problem(NamedTuple):
    """Data, and which of its rows serve what.

    Parameters
    ----------
    X : array of shape (N, D)
    targets : CensoredTargets of shape (N, T)
    train, test : arrays of rows
    fold : pair of arrays of rows
        The two parts of ``train``: to fit candidates to, and to choose one by.
    """

    X: FloatArray
    targets: CensoredTargets
    train: Rows
    test: Rows
    fold: tuple[Rows, Rows]

    def fold_among(self, rows: Rows) -> tuple[Rows, Rows]:
        """The places of the fold's parts among ``rows``.

        Examples
        --------
        >>> from deeptobit import CensoredTargets
        >>> one, two, three, four = np.arange(4)[:, None]
        >>> train = np.array([3, 0, 1])
        >>> targets = CensoredTargets.from_bounds(np.ones(4))
        >>> problem = Problem(np.ones((4, 1)), targets, train, three, (np.array([0, 3]), two))
        >>> problem.fold_among(train)
        (array([0, 1]), array([2]))
        """
        first, second = (np.flatnonzero(np.isin(rows, part)) for part in self.fold)
        return first, second
