"""What a problem of many tasks is solved by."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from deeptobit.arrays import FloatArray


class Solution(NamedTuple):
    """Coefficients of many tasks, features by tasks, in the units of their problem.

    Attributes
    ----------
    coef : array of shape (D, T)
        W, or γ = W/σ where σ is part of the problem.
    intercept : array of shape (T,)
        Likewise.
    theta : array of shape (T,)
        1/σ; 1 where σ is not part of the problem.
    certificate : float
        How far it may be from the optimum, as the problem measures it.
    """

    coef: FloatArray
    intercept: FloatArray
    theta: FloatArray
    certificate: float

    def latent(self, X: FloatArray) -> FloatArray:
        """Scores (N, T) before censoring."""
        return np.asarray((X @ self.coef + self.intercept) / self.theta)


class Problem(Protocol):
    """A loss of many tasks with a norm on their coefficients."""

    @property
    def alpha_max(self) -> float:
        """The least strength of the norm at which all coefficients are 0."""

    def null(self) -> Solution:
        """The solution from ``alpha_max`` on."""

    def solve(self, alpha: float, start: Solution, tol: float) -> Solution:
        """The optimum at α, from a start nearby, to a certificate of ``tol``."""
