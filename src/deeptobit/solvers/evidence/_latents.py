"""The scores behind the censoring: what is expected of them, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.solvers.evidence._problem import EvidenceProblem


class Latents(NamedTuple):
    """Moments of the noise e = y*/σ − η given the intervals, each (N, T)."""

    fitted: FloatArray
    residual: FloatArray
    variance: FloatArray


def impute(
    problem: EvidenceProblem, coef: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> Latents:
    r"""The E-step: what the intervals say of the scores behind them, in units of σ.

    An observed entry is its value with variance 0, a missing one its fit with variance 1.

    Parameters
    ----------
    coef : array of shape (D, T)
        Δ = W/σ (Olsen's scale).
    intercept, sigma : arrays of shape (T,)
    """
    fitted = problem.matrix @ coef + intercept
    moments = likelihood.truncated_moments(problem.low / sigma, problem.high / sigma, fitted)
    return Latents(fitted, *moments)


def expect_missing(
    problem: EvidenceProblem, latents: Latents, correlation: FloatArray
) -> FloatArray:
    """The noise of all entries, that of missing ones as the others of their row tell, (N, T).

    Outcomes of one person err together. An entry whose fit were taken for its value would count as
    one that did not err where the others did, and pull their coefficients towards its own.
    """
    if not problem.missing.any():
        return latents.residual
    return likelihood.missing_noise(latents.residual, problem.missing, correlation)


def noise_correlation(latents: Latents, weight: FloatArray) -> FloatArray:
    r"""Correlation R of the noise between tasks, shrunk by T rows of independent noise, (T, T).

    Outcomes of one person err together. A prior that took this for a common effect of the features
    would share what is not shared. With n the sum of the weights w, and moments e, v of the noise,

    .. math:: R_{st} = \frac{n}{n + T} \frac{\sum_i w_i e_{is} e_{it}}{
        \sqrt{\sum_i w_i (e_{is}^2 + v_{is})} \sqrt{\sum_i w_i (e_{it}^2 + v_{it})}},
        \qquad s \ne t.

    A missing entry adds variance v = 1 and, as e = 0, no product: R shrinks towards independence
    with the share of missing entries, about as the share of rows that know both outcomes does.
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
