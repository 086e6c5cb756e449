"""The coefficients given imputed latents: a Gaussian, diagonal in the right axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtri

from deeptobit.arrays import FloatArray
from deeptobit.solvers.evidence._spectrum import Spectrum


@dataclass(frozen=True)
class Posterior:
    r"""Posterior of Δ (D, T) under rows z = xΔ + e, e ~ N(0, R), and Δ ~ MN(0, diag ω, K).

    With :math:`R = LL^\top` and :math:`L^{-1} K L^{-\top} = Q \Lambda Q^\top` the axes
    :math:`F = L^{-\top} Q` of the tasks make both matrices diagonal. Along axis q the coefficients
    are a ridge regression with prior variances λ_q ω, and all axes share one spectrum.

    Parameters
    ----------
    spectrum : Spectrum
        Of r directions.
    to_tasks : array of shape (T, T)
        :math:`F^{-1}`: rows are axes.
    task_variance : array of shape (T,)
        λ.
    white : array of shape (D, T)
        Posterior mean divided by √ω, along the axes.
    gain : array of shape (r, T)
        λs/(λs + 1), the share of each direction that the data determine.
    """

    spectrum: Spectrum
    to_tasks: FloatArray
    task_variance: FloatArray
    white: FloatArray
    gain: FloatArray

    @classmethod
    def infer(
        cls,
        spectrum: Spectrum,
        moments: FloatArray,
        task_covariance: FloatArray,
        noise_correlation: FloatArray,
    ) -> Posterior:
        """Condition on the moments XᵀWZ (D, T) of the features with the latents.

        Examples
        --------
        One feature with Gram 3 and prior variance 1: the ridge estimate is XᵀZ/(3 + 1).

        >>> spectrum = Spectrum(np.ones(1), np.array([3.0]), np.ones((1, 1)))
        >>> Posterior.infer(spectrum, np.array([[2.0]]), np.eye(1), np.eye(1)).mean
        array([[0.5]])
        """
        root = np.linalg.cholesky(noise_correlation)
        # The shrunk correlation is far from singular: its inverse serves both, and is cheaper.
        whitener, _ = dtrtri(root, lower=1)
        whitened = whitener @ task_covariance @ whitener.T
        task_variance, axes = np.linalg.eigh(0.5 * (whitened + whitened.T))
        task_variance = np.maximum(task_variance, np.finfo(np.float64).eps)
        along = moments @ (whitener.T @ axes)
        feature_root = np.sqrt(spectrum.feature_variance)[:, None]
        signal = spectrum.values[:, None] * task_variance
        shrunk = spectrum.directions.T @ (feature_root * along) * (task_variance / (signal + 1.0))
        return cls(
            spectrum=spectrum,
            to_tasks=axes.T @ root.T,
            task_variance=task_variance,
            white=spectrum.directions @ shrunk,
            gain=signal / (signal + 1.0),
        )

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of Δ, (D, T)."""
        root = np.sqrt(self.spectrum.feature_variance)[:, None]
        return np.asarray((root * self.white) @ self.to_tasks)

    @property
    def freedom(self) -> FloatArray:
        """Σ_i w_i Var(x_iᵀΔ_t), the degrees of freedom of each task, (T,)."""
        return np.asarray(self.gain.sum(axis=0) @ np.square(self.to_tasks))

    def growth(self) -> FloatArray:
        """The EM update of ω over ω: mean over axes of E[Δ²]/(λω), (D,)."""
        undetermined = 1.0 - np.square(self.spectrum.directions) @ self.gain
        undetermined = np.maximum(undetermined, np.finfo(np.float64).eps)  # it may round below 0
        return np.asarray((np.square(self.white) / self.task_variance + undetermined).mean(axis=1))

    def task_covariance(self) -> FloatArray:
        """The EM update of K with trace T: mean over features of E[ΔΔᵀ]/ω, (T, T)."""
        n_features, n_tasks = self.white.shape
        undetermined = n_features - np.square(self.spectrum.directions).sum(axis=0) @ self.gain
        total = self.white.T @ self.white + np.diag(self.task_variance * undetermined)
        moments = self.to_tasks.T @ total @ self.to_tasks
        return np.asarray(moments * (n_tasks / np.trace(moments)))
