"""The ridge, with which W = UV is penalised by its trace norm."""

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.penalties.base import Penalty


@dataclass(frozen=True)
class Ridge(Penalty):
    r"""Half the squared norm of V, :math:`P(V) = \tfrac12\|V\|_F^2` (eq. 2 of the paper).

    Where the rank is not binding, the least :math:`\tfrac12(\|U\|_F^2 + \|V\|_F^2)` over the
    factors of a W is its trace norm.

    Examples
    --------
    >>> Ridge().value(np.array([[3.0, 0.0], [4.0, 1.0]]))
    13.0
    """

    @property
    def rotation_invariant(self) -> bool:
        """True: V counts only through VVᵀ."""
        return True

    def value(self, V: FloatArray) -> float:
        """½‖V‖²."""
        return 0.5 * float(np.square(V).sum())

    def gradient(self, V: FloatArray) -> FloatArray:
        """V."""
        return V

    def curvature(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        """The direction itself."""
        return direction

    def variances(self, V: FloatArray) -> FloatArray:
        """1 for every feature."""
        return np.ones(V.shape[1])
