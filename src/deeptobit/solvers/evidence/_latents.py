"""The scores behind the censoring: what is expected of them, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit import kernels
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian
from deeptobit.solvers.evidence._problem import EvidenceProblem

_GAUSSIAN = Gaussian()


class Latents(NamedTuple):
    """Moments of the noise e = y*/σ − η given the intervals, each (N, T)."""

    fitted: FloatArray
    residual: FloatArray
    variance: FloatArray


def impute(
    problem: EvidenceProblem, coef: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> Latents:
    r"""The E-step: moments of a truncated Gaussian are derivatives of its likelihood.

    .. math::
        E[y^*] = \eta - \sigma^2\, \partial_\eta \mathrm{nll},\qquad
        \mathrm{Var}[y^*] = \sigma^2 (1 - \sigma^2\, \partial_\eta^2 \mathrm{nll})

    An observed entry is its value with variance 0, a missing one its fit with variance σ².

    Parameters
    ----------
    coef : array of shape (D, T)
        Δ = W/σ, as all that is returned in units of σ (Olsen's scale).
    intercept, sigma : arrays of shape (T,)
    """
    fitted = problem.matrix @ coef + intercept
    at = kernels.evaluate(_GAUSSIAN, problem.low, problem.high, fitted * sigma, sigma)
    variance = np.maximum(1.0 - sigma**2 * at.latent_latent, 0.0)
    return Latents(fitted, -sigma * at.latent, variance)


def noise_correlation(latents: Latents, weight: FloatArray) -> FloatArray:
    r"""Correlation R of the noise between tasks, shrunk by T rows of independent noise, (T, T).

    Outcomes of one person err together. A prior that took this for a common effect of the features
    would share what is not shared.
    """
    n_tasks = latents.residual.shape[1]
    total = latents.residual.T @ (weight[:, None] * latents.residual)
    scale = np.sqrt(np.diag(total) + weight @ latents.variance)
    scale = np.where(scale > 0.0, scale, 1.0)
    correlation = total / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    rows = float(weight.sum())
    correlation *= rows / (rows + n_tasks)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
