"""The features in the metric of their prior variances, diagonalised on the smaller side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.solvers.evidence._problem import EvidenceProblem

_RELATIVE_RANK = 1e-11  # of the largest eigenvalue


@dataclass(frozen=True)
class Spectrum:
    r"""Eigenpairs of :math:`\Omega^{1/2} X^\top W X\, \Omega^{1/2}`, Ω = diag ω.

    Parameters
    ----------
    feature_variance : array of shape (D,)
        ω, the prior variance of every feature's coefficients.
    values : array of shape (r,)
        Non-zero eigenvalues.
    directions : array of shape (D, r)
    """

    feature_variance: FloatArray
    values: FloatArray
    directions: FloatArray

    @classmethod
    def build(cls, problem: EvidenceProblem, feature_variance: FloatArray) -> Spectrum:
        """Diagonalise D × D, or N × N if there are more features than rows.

        Examples
        --------
        >>> from deeptobit import CensoredTargets
        >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [2.0]], lower=0)
        >>> problem = EvidenceProblem.build(np.array([[1.0], [2.0], [4.0]]), targets, np.ones(3))
        >>> Spectrum.build(problem, np.array([2.0])).values
        array([6.])
        """
        root = np.sqrt(feature_variance)
        n_samples, n_features = problem.matrix.shape
        if n_features <= n_samples:
            values, directions = np.linalg.eigh(problem.gram * np.outer(root, root))
            keep = values > _threshold(values)
            return cls(feature_variance, values[keep], directions[:, keep])
        rows = problem.weighted_rows * root
        values, sides = np.linalg.eigh(rows @ rows.T)
        keep = values > _threshold(values)
        values = values[keep]
        return cls(feature_variance, values, rows.T @ sides[:, keep] / np.sqrt(values))

    def scaled(self, factor: float) -> Spectrum:
        """The same directions with all prior variances multiplied by a factor."""
        return Spectrum(self.feature_variance * factor, self.values * factor, self.directions)


def _threshold(values: FloatArray) -> float:
    return float(_RELATIVE_RANK * values.max(initial=np.finfo(np.float64).tiny))
