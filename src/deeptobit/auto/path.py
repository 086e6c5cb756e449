"""Layers under priors learned by EM, from separate tasks to tasks that share effects."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.auto import evidence
from deeptobit.auto.evidence import EvidenceProblem, Latents, Posterior, Spectrum
from deeptobit.layer import SIGMA_FLOOR, coefficients_to_user

_FIRST_STEPS = 15  # many more fit the variances of the features to noise
_STEPS = 10


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


class Prior(NamedTuple):
    """A prior of the path, and the one whose estimates it starts from.

    Parameters
    ----------
    feature_variance : {"shared", "own", "sparse"}
        One variance ω for all features (dense effects), one for each, or one for each that is 0
        for most (few features matter).
    shrinkage : float
        ρ: from 0, effects as related between tasks as the data say, to 1, a separate ridge
        regression for each task.
    after : int or None
        Position of the prior before it; None starts from the intercept-only model.
    correlated : bool
        Whether the noise R of a row may be correlated between tasks. A censored entry is imputed
        from its own interval alone, which is exact for independent noise. Where much is censored,
        a correlated R takes shared effects for noise.
    """

    feature_variance: str
    shrinkage: float
    after: int | None
    correlated: bool = True


PATH = (
    Prior("shared", 1.0, None),
    Prior("shared", 0.3, 0),
    Prior("shared", 0.1, 1),
    Prior("shared", 0.03, 0, correlated=False),
    Prior("shared", 0.001, 3, correlated=False),
    Prior("own", 1.0, None),
    Prior("sparse", 0.3, 5),
    Prior("sparse", 0.03, 5, correlated=False),
)


def start(problem: EvidenceProblem, spectrum: Spectrum) -> EvidenceState:
    """The intercept-only model, with tasks that share nothing."""
    sigma, n_tasks = problem.sigma, len(problem.sigma)
    coef, intercept = np.zeros((problem.matrix.shape[1], n_tasks)), problem.intercept / sigma
    return EvidenceState(spectrum, np.eye(n_tasks), coef, intercept, sigma, np.zeros(n_tasks))


class Expectation(NamedTuple):
    """What one E-step finds, given a layer: the noise, and the moments of the imputed latents.

    Parameters
    ----------
    noise : array of shape (T, T)
        Correlation R of the noise.
    moments : array of shape (D, T)
        XᵀWZ of the features with the latents Z, in units of σ.
    intercept : array of shape (T,)
        The mean of Z.
    """

    noise: FloatArray
    moments: FloatArray
    intercept: FloatArray


def expect(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior
) -> tuple[EvidenceState, Expectation]:
    """The state with σ re-estimated, and the E-step there.

    Outcomes of one person err together, so that the noise of a missing entry is predicted from its
    row. With noise 0 it would count as one without error beside others that err, and pull their
    coefficients towards its own.
    """
    latents = evidence.impute(problem, state.coef, state.intercept, state.sigma)
    factor = _sigma_factor(problem, state, latents)
    noise, errors = np.eye(len(factor)), latents.residual
    if prior.correlated:
        noise = evidence.noise_correlation(latents, problem.weight)
    if problem.missing.any():
        errors = factor * likelihood.missing_noise(errors / factor, problem.missing, noise)
    imputed = np.add(latents.fitted, errors, out=latents.fitted)
    # Features are centred if there is an intercept: it has no part in the moments.
    intercept = problem.weight @ imputed / problem.total_weight * float(problem.fit_intercept)
    moments = problem.weighted_matrix.T @ imputed
    scores: Any = {"coef": state.coef / factor, "intercept": state.intercept / factor}
    state = replace(state, **scores, sigma=state.sigma * factor)
    return state, Expectation(noise, moments / factor, intercept / factor)


def maximise(
    state: EvidenceState, expected: Expectation, prior: Prior
) -> tuple[EvidenceState, Posterior]:
    r"""The M-step for Δ and intercepts under the prior of the state.

    The covariance of the tasks is :math:`(1 - \rho) K + \rho R`. With ρ = 1 it is that of the
    noise, and each task is a separate ridge regression.
    """
    covariance = task_prior(state, expected, prior)
    posterior = Posterior.infer(state.spectrum, expected.moments, covariance, expected.noise)
    fitted = replace(
        state, coef=posterior.mean, intercept=expected.intercept, freedom=posterior.freedom
    )
    return fitted, posterior


def task_prior(state: EvidenceState, expected: Expectation, prior: Prior) -> FloatArray:
    """Prior covariance of the effects between tasks, (1 − ρ)K + ρR, (T, T)."""
    return (1.0 - prior.shrinkage) * state.task_covariance + prior.shrinkage * expected.noise


def em_step(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior
) -> tuple[EvidenceState, Posterior]:
    """One EM step for Δ, intercepts and σ under a given prior."""
    state, expected = expect(problem, state, prior)
    return maximise(state, expected, prior)


def _sigma_factor(problem: EvidenceProblem, state: EvidenceState, latents: Latents) -> FloatArray:
    r"""By what to multiply σ with W = σΔ fixed, from the variance that the fit leaves, (T,).

    :math:`\sigma^2 \leftarrow \sigma^2 (\sum_i w_i E[e_i^2] + \mathrm{freedom})/n` over the known
    entries. Without the degrees of freedom σ would run to 0 as soon as D ≥ N.
    """
    known = problem.known_weight
    left = problem.weight @ np.square(latents.residual) + problem.weight @ latents.variance
    left -= problem.total_weight - known  # missing entries have variance 1
    left += state.freedom * known / problem.total_weight
    factor = np.sqrt(left / np.where(known > 0.0, known, 1.0))
    factor = np.where(problem.free_sigma & (known > 0.0), factor, 1.0)
    return np.maximum(factor, SIGMA_FLOOR / state.sigma)


@dataclass(frozen=True)
class EvidenceMember:
    """A layer in the user's units, and the prior it comes from.

    Parameters
    ----------
    coef : array of shape (T, D)
    intercept, sigma : arrays of shape (T,)
    alpha : float
        1/(n ω) at the mean ω: the ridge of the prior, beside a mean over rows, on W/σ.
    """

    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    alpha: float

    def latent(self, X: Any) -> FloatArray:
        """Scores before censoring, (N, T)."""
        return np.asarray(X @ self.coef.T + self.intercept)


def with_those_before(wanted: Iterable[int]) -> list[int]:
    """Places of priors, and of those whose estimates they start from.

    Examples
    --------
    >>> with_those_before([0, 4, 6])
    [0, 3, 4, 5, 6]
    """
    needed = set(wanted)
    for place in reversed(range(len(PATH))):
        after = PATH[place].after
        if place in needed and after is not None:
            needed.add(after)
    return sorted(needed)


def learn_path(
    problem: EvidenceProblem,
    wanted: Collection[int] = range(len(PATH)),
    watch: Callable[[], None] | None = None,
) -> dict[int, EvidenceState]:
    r"""Layers under Δ = W/σ ~ matrix normal(0, diag ω, (1 − ρ)K + ρR), by their place in ``PATH``.

    ω is one variance for all features or one for each, of which most may vanish; K is the
    covariance of the effects between tasks, R that of the noise. All are learned by EM. The path
    begins with separate tasks, ρ = 1, and has two branches along which they share more and more,
    with warm starts: one learns R, the other assumes independent noise, R = I.
    Those that are wanted are learned, and those that they start from. ``watch`` is called after
    each layer.

    Examples
    --------
    >>> from deeptobit import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> Y = np.maximum(X[:, :1] + rng.normal(size=(200, 3)), 0.0)
    >>> problem = EvidenceProblem.build(X, CensoredTargets.from_bounds(Y, 0.0), np.ones(200))
    >>> states = learn_path(problem)
    >>> len(states), states[7].spectrum.feature_variance.round(2)
    (8, array([0.34, 0.01, 0.  , 0.  , 0.  ]))
    """
    n_features = problem.matrix.shape[1]
    even = Spectrum.build(problem, np.full(n_features, 1.0 / n_features))
    states: dict[int, EvidenceState] = {}
    for place in with_those_before(wanted):
        prior = PATH[place]
        before = start(problem, even) if prior.after is None else states[prior.after]
        n_steps = _FIRST_STEPS if prior.after is None else _STEPS
        states[place] = learn(problem, before, prior, n_steps)
        if watch is not None:
            watch()
    return states


def learn(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, n_steps: int
) -> EvidenceState:
    """EM over the layer and its prior."""
    for _ in range(n_steps):
        state, posterior = em_step(problem, state, prior)
        if prior.feature_variance == "shared":
            spectrum = state.spectrum.scaled(float(posterior.growth().mean()))
        else:
            sparse = prior.feature_variance == "sparse"
            factor = posterior.relevance() if sparse else posterior.growth()
            spectrum = Spectrum.build(problem, state.spectrum.feature_variance * factor)
        state = replace(state, task_covariance=posterior.task_covariance(), spectrum=spectrum)
    return state


def fit_members(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, strengths: Iterable[float]
) -> list[EvidenceMember]:
    """The layer under ω multiplied by factors c, its other parameters being fitted again.

    The data determine the shape of the prior better than its width.
    """
    members = []
    state, expected = expect(problem, state, prior)
    for strength in strengths:
        layer = replace(state, spectrum=state.spectrum.scaled(strength))
        layer, _ = maximise(layer, expected, prior)
        layer, _ = em_step(problem, layer, prior)
        members.append(to_user(problem, layer))
    return members


def settings(prior: Prior, strength: float) -> dict[str, Any]:
    """What a member is, in words and numbers for ``members_``.

    ``feature_variance`` ("shared", "own" or "sparse"), ``noise`` ("correlated", "independent", or
    "either" for separate tasks), ``shrinkage`` ρ and ``strength`` c.
    """
    noise = "correlated" if prior.correlated else "independent"
    return {
        "feature_variance": prior.feature_variance,
        "noise": "either" if prior.after is None else noise,  # the branches differ further on
        "shrinkage": prior.shrinkage,
        "strength": strength,
    }


def to_user(problem: EvidenceProblem, state: EvidenceState) -> EvidenceMember:
    """A layer in the user's units."""
    units, sigma = (problem.design, problem.scaling), state.sigma
    W, intercept = (state.coef * sigma).T, state.intercept * sigma
    width = problem.total_weight * float(state.spectrum.feature_variance.mean())
    return EvidenceMember(*coefficients_to_user(*units, W, intercept, sigma), 1.0 / width)


def mean_state(problem: EvidenceProblem, states: Sequence[EvidenceState]) -> EvidenceState:
    """The average of states that were learned from parts of the rows, for a problem of all rows.

    Variances ω are averaged by their logarithms.
    """
    names = ("task_covariance", "coef", "intercept", "sigma", "freedom")
    mean = {name: np.mean([getattr(one, name) for one in states], axis=0) for name in names}
    variance = np.exp(np.mean([np.log(one.spectrum.feature_variance) for one in states], axis=0))
    return EvidenceState(spectrum=Spectrum.build(problem, variance), **mean)
