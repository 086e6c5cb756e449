"""Layers under priors learned by EM, from separate tasks to tasks that share effects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.auto import evidence
from deeptobit.auto.evidence import EvidenceProblem, Latents, Posterior, Spectrum
from deeptobit.layer import SIGMA_FLOOR

STRENGTHS = (0.3, 0.6, 1.2)
_FIRST_STEPS = 15  # many more fit the variances of the features to noise
_STEPS = 10
_POLISH_STEPS = 3


@dataclass(frozen=True)
class EvidenceState:
    r"""A layer :math:`y^* = \sigma(\Delta^\top x + b + e)` and the prior it was fitted under.

    Parameters
    ----------
    spectrum : Spectrum
        The features in the metric of their prior variances ω.
    task_covariance : array of shape (T, T)
        K, as learned from the data, of trace T.
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
    """What tasks are assumed to have in common.

    Parameters
    ----------
    shrinkage : float
        ρ: from 0, effects as related between tasks as the data say, to 1, a separate ridge
        regression for each task.
    correlated : bool
        Whether the noise R of a row may be correlated between tasks. A censored entry is imputed
        from its own interval alone, which is exact for independent noise. Where much is censored,
        a correlated R takes shared effects for noise.
    """

    shrinkage: float
    correlated: bool = True


def start(problem: EvidenceProblem, spectrum: Spectrum) -> EvidenceState:
    """The intercept-only model, with tasks that share nothing."""
    n_features, n_tasks = problem.matrix.shape[1], problem.low.shape[1]
    return EvidenceState(
        spectrum=spectrum,
        task_covariance=np.eye(n_tasks),
        coef=np.zeros((n_features, n_tasks)),
        intercept=problem.intercept / problem.sigma,
        sigma=problem.sigma,
        freedom=np.zeros(n_tasks),
    )


def em_step(
    problem: EvidenceProblem, state: EvidenceState, sharing: Sharing
) -> tuple[EvidenceState, Posterior]:
    r"""One EM step for Δ, intercepts and σ under a given prior.

    The covariance of the tasks is :math:`(1 - \rho) K + \rho R`. With ρ = 1 it is that of the
    noise, and each task is a separate ridge regression.

    Outcomes of one person err together, so that the noise of a missing entry is predicted from its
    row. With noise 0 it would count as one without error beside others that err, and pull their
    coefficients towards its own.
    """
    state, latents = _update_sigma(problem, state)
    noise, errors = np.eye(len(state.sigma)), latents.residual
    if sharing.correlated:
        noise = evidence.noise_correlation(latents, problem.weight)
    if problem.missing.any():
        errors = likelihood.missing_noise(errors, problem.missing, noise)
    weighted = problem.weight[:, None] * (latents.fitted + errors)
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
    r"""Re-estimate σ with W = σΔ fixed, from the variance that the fit leaves.

    :math:`\sigma^2 \leftarrow \sigma^2 (\sum_i w_i E[e_i^2] + \mathrm{freedom})/n` over the known
    entries. Without the degrees of freedom σ would run to 0 as soon as D ≥ N.
    """
    latents = evidence.impute(problem, state.coef, state.intercept, state.sigma)
    known = problem.known_weight
    left = problem.weight @ (np.square(latents.residual) + latents.variance)
    left -= problem.total_weight - known  # missing entries have variance 1
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


_SEPARATE = Sharing(1.0)  # where the path begins
_BRANCHES = {
    "shared": (
        (Sharing(0.3), Sharing(0.1)),
        (Sharing(0.1, correlated=False), Sharing(0.02, correlated=False)),
    ),
    "own": ((Sharing(0.3),), (Sharing(0.1, correlated=False),)),
}


@dataclass(frozen=True)
class EvidenceMember:
    """A layer in the user's units, and the prior it comes from.

    Parameters
    ----------
    coef : array of shape (T, D)
    intercept, sigma : arrays of shape (T,)
    alpha : float
        1/(n ω) at the mean ω: the ridge of the prior, beside a mean over rows, on W/σ.
    settings : dict
        ``feature_variance`` ("shared" or "own"), ``noise`` ("correlated", "independent", or
        "either" for separate tasks), ``shrinkage`` ρ and ``strength`` c.
    """

    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    alpha: float
    settings: dict[str, Any]

    def latent(self, X: Any) -> FloatArray:
        """Scores before censoring, (N, T)."""
        return np.asarray(X @ self.coef.T + self.intercept)


def evidence_path(problem: EvidenceProblem) -> Iterator[EvidenceMember]:
    r"""Empirical-Bayes layers: Δ = W/σ ~ matrix normal(0, c·diag ω, (1 − ρ)K + ρR).

    ω is one variance for all features (dense effects) or one for each (few features matter); K is
    the covariance of the effects between tasks, R that of the noise. All are learned by EM. The
    path begins with separate tasks, ρ = 1, and has two branches along which they share more and
    more, with warm starts: one learns R, the other assumes independent noise, R = I. At each ρ it
    runs over factors c of ω, because the data determine the shape of the prior better than its
    width.

    Examples
    --------
    >>> from deeptobit import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> Y = np.maximum(X[:, :1] + rng.normal(size=(200, 3)), 0.0)
    >>> problem = EvidenceProblem.build(X, CensoredTargets.from_bounds(Y, 0.0), np.ones(200))
    >>> members = list(evidence_path(problem))
    >>> len(members)
    24
    >>> members[-1].settings
    {'feature_variance': 'own', 'noise': 'independent', 'shrinkage': 0.1, 'strength': 1.2}
    >>> members[-1].coef[0].round(1)
    array([ 1. , -0.1, -0. , -0. , -0. ])
    """
    n_features = problem.matrix.shape[1]
    even = Spectrum.build(problem, np.full(n_features, 1.0 / n_features))
    for name, branches in _BRANCHES.items():
        own = name == "own"
        separate = _learn(problem, start(problem, even), _SEPARATE, _FIRST_STEPS, own=own)
        yield from _members(problem, separate, _SEPARATE, name)
        for branch in branches:
            state = separate
            for sharing in branch:
                state = _learn(problem, state, sharing, _STEPS, own=own)
                yield from _members(problem, state, sharing, name)


def _learn(
    problem: EvidenceProblem, state: EvidenceState, sharing: Sharing, n_steps: int, *, own: bool
) -> EvidenceState:
    """EM over the layer and its prior, with one variance for each feature (own) or for all."""
    for _ in range(n_steps):
        state, posterior = em_step(problem, state, sharing)
        growth = posterior.growth()
        if own:
            spectrum = Spectrum.build(problem, state.spectrum.feature_variance * growth)
        else:
            spectrum = state.spectrum.scaled(float(growth.mean()))
        state = replace(state, task_covariance=posterior.task_covariance(), spectrum=spectrum)
    return state


def _members(
    problem: EvidenceProblem, state: EvidenceState, sharing: Sharing, feature_variance: str
) -> Iterator[EvidenceMember]:
    """The layer under narrower and wider priors."""
    design, scaling = problem.design, problem.scaling
    noise = "correlated" if sharing.correlated else "independent"
    for strength in STRENGTHS:
        settings = {
            "feature_variance": feature_variance,
            "noise": "either" if sharing == _SEPARATE else noise,  # the branches differ further on
            "shrinkage": sharing.shrinkage,
            "strength": strength,
        }
        polished = replace(state, spectrum=state.spectrum.scaled(strength))
        for _ in range(_POLISH_STEPS):
            polished, _ = em_step(problem, polished, sharing)
        sigma = scaling.scale * polished.sigma
        coef = (polished.coef * sigma / design.scale[:, None]).T
        intercept = scaling.location + sigma * polished.intercept - coef @ design.mean
        width = problem.total_weight * float(polished.spectrum.feature_variance.mean())
        yield EvidenceMember(coef, intercept, sigma, 1.0 / width, settings)
