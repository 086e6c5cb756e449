"""EM for a censored layer whose prior is learned from the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.solvers._tobit import SIGMA_FLOOR
from deeptobit.solvers.evidence._latents import Latents, expect_missing, impute, noise_correlation
from deeptobit.solvers.evidence._posterior import Posterior
from deeptobit.solvers.evidence._problem import EvidenceProblem
from deeptobit.solvers.evidence._spectrum import Spectrum


@dataclass(frozen=True)
class EvidenceState:
    r"""A layer :math:`y^* = \sigma(\Delta^\top x + b + e)` and the prior it was fitted under.

    Parameters
    ----------
    spectrum : Spectrum
        The features in the metric of their prior variances ω.
    task_covariance : array of shape (T, T)
        K as the evidence has it, of trace T.
    coef : array of shape (D, T)
        Δ, in units of σ as the intercept is.
    intercept, sigma, freedom : arrays of shape (T,)
        ``freedom`` are the degrees of freedom of the fit.
    """

    spectrum: Spectrum
    task_covariance: FloatArray
    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    freedom: FloatArray


class Sharing(NamedTuple):
    """What tasks are taken to have in common.

    Parameters
    ----------
    shrinkage : float
        ρ: from 0, where effects are as related as the evidence has them, to 1, where each task is
        a ridge regression of its own.
    correlated : bool
        Whether the noise R of one row may be correlated between tasks. What is behind a censored
        entry is expected from its own interval alone, which is exact for independent noise; where
        much is censored, a correlated R takes effects that tasks share for noise.
    """

    shrinkage: float
    correlated: bool = True


def start(problem: EvidenceProblem, spectrum: Spectrum) -> EvidenceState:
    """The intercept-only model, and tasks that share nothing."""
    n_features, n_tasks = problem.matrix.shape[1], problem.low.shape[1]
    return EvidenceState(
        spectrum=spectrum,
        task_covariance=np.eye(n_tasks),
        coef=np.zeros((n_features, n_tasks)),
        intercept=problem.intercept / problem.sigma,
        sigma=problem.sigma,
        freedom=np.zeros(n_tasks),
    )


def fit_coefficients(
    problem: EvidenceProblem, state: EvidenceState, sharing: Sharing
) -> tuple[EvidenceState, Posterior]:
    r"""One EM step for Δ, intercepts and σ under a given prior.

    The covariance of the tasks is :math:`(1 - \rho) K + \rho R`. With ρ = 1 the prior is shaped as
    the noise R is, and each task is a ridge regression of its own.
    """
    state, latents = _update_sigma(problem, state)
    if sharing.correlated:
        noise = noise_correlation(latents, problem.weight)
    else:
        noise = np.eye(len(state.sigma))
    latent = latents.fitted + expect_missing(problem, latents, noise)
    weighted = problem.weight[:, None] * latent
    intercept = np.zeros_like(state.intercept)
    if problem.fit_intercept:
        intercept = weighted.sum(axis=0) / problem.total_weight
        weighted -= problem.weight[:, None] * intercept
    posterior = Posterior.infer(
        state.spectrum,
        problem.matrix.T @ weighted,
        (1.0 - sharing.shrinkage) * state.task_covariance + sharing.shrinkage * noise,
        noise,
    )
    fitted = replace(state, coef=posterior.mean, intercept=intercept, freedom=posterior.freedom)
    return fitted, posterior


def _update_sigma(problem: EvidenceProblem, state: EvidenceState) -> tuple[EvidenceState, Latents]:
    r"""Re-estimate σ with W = σΔ held: the share of the variance that the fit leaves.

    :math:`\sigma^2 \leftarrow \sigma^2 (\sum_i w_i E[e_i^2] + \mathrm{freedom})/n` over the known
    entries. Without the degrees of freedom σ would run to 0 as soon as D ≥ N.
    """
    latents = impute(problem, state.coef, state.intercept, state.sigma)
    known = problem.known_weight
    left = problem.weight @ (np.square(latents.residual) + latents.variance)
    left -= problem.total_weight - known  # entries of which nothing is known have variance 1
    left += state.freedom * known / problem.total_weight
    factor = np.sqrt(left / np.where(known > 0.0, known, 1.0))
    factor = np.where(problem.free_sigma & (known > 0.0), factor, 1.0)
    factor = np.maximum(factor, SIGMA_FLOOR / state.sigma)
    rescaled = replace(
        state,
        coef=state.coef / factor,
        intercept=state.intercept / factor,
        sigma=state.sigma * factor,
    )
    return rescaled, Latents(
        latents.fitted / factor, latents.residual / factor, latents.variance / factor**2
    )
