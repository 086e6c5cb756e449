"""EM steps against optima that are known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import truncnorm
from sklearn.linear_model import BayesianRidge, Ridge

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.auto.evidence import EvidenceProblem, Spectrum, impute, noise_correlation
from deeptobit.auto.path import EvidenceState, Prior, em_step, learn
from deeptobit.likelihood import Gaussian, evaluate
from tests.auto.problems import begun, linear, posed

_ALONE = Prior("shared", 1.0, None)
_OWN = Prior("own", 1.0, None)


def _repeat(problem: EvidenceProblem, state: EvidenceState, n_steps: int) -> EvidenceState:
    for _ in range(n_steps):
        state, _ = em_step(problem, state, _ALONE)
    return state


def test_without_censoring_a_given_prior_is_ridge_regression() -> None:
    X, Y = linear()
    problem = posed(X, Y)
    state = _repeat(problem, begun(problem, variance=0.1), 40)
    ridge = Ridge(alpha=10.0).fit(problem.matrix, (Y - Y.mean(axis=0)) / Y.std(axis=0))
    np.testing.assert_allclose((state.coef * state.sigma).T, ridge.coef_, rtol=1e-6, atol=1e-8)
    residual = problem.low - ridge.predict(problem.matrix)
    left = len(X) - state.freedom
    np.testing.assert_allclose(state.sigma**2, np.square(residual).sum(axis=0) / left, rtol=1e-4)


def test_with_a_wide_prior_a_censored_task_is_the_tobit() -> None:
    X, Y = linear(n_samples=300, n_tasks=1)
    Y = np.clip(Y, -0.5, 1.5)
    problem = posed(X, Y, lower=-0.5, upper=1.5)
    state = _repeat(problem, begun(problem, variance=1e8), 400)
    coef = (state.coef * state.sigma).T * problem.scaling.scale[:, None] / problem.design.scale
    sigma = state.sigma * problem.scaling.scale
    given = TobitRegressor(lower=-0.5, upper=1.5, sigma=sigma).fit(X, Y)
    np.testing.assert_allclose(coef, given.coef_, rtol=1e-5)
    # The likelihood divides by n, EM by n minus the degrees of freedom.
    np.testing.assert_allclose(sigma, TobitRegressor(lower=-0.5, upper=1.5).fit(X, Y).sigma_, 0.03)


def test_one_task_without_censoring_is_bayesian_ridge() -> None:
    X, Y = linear(n_tasks=1)
    problem = posed(X, Y)
    state = learn(problem, begun(problem), _ALONE, 400)
    tiny = 1e-12
    reference = BayesianRidge(
        max_iter=2000, tol=1e-12, alpha_1=tiny, alpha_2=tiny, lambda_1=tiny, lambda_2=tiny
    ).fit(problem.matrix, problem.low[:, 0])
    np.testing.assert_allclose((state.coef * state.sigma)[:, 0], reference.coef_, rtol=1e-5)
    np.testing.assert_allclose(state.sigma[0] ** -2, reference.alpha_, rtol=1e-4)
    width = state.spectrum.feature_variance[0] * state.sigma[0] ** 2
    np.testing.assert_allclose(1.0 / width, reference.lambda_, rtol=1e-4)


def test_missing_entries_of_correlated_tasks_count_for_nothing() -> None:
    X, Y = linear(n_samples=60, n_tasks=3)
    rng = np.random.default_rng(1)
    Y = Y + 2.0 * rng.normal(size=(60, 1))  # outcomes of one row err together
    Y[rng.uniform(size=Y.shape) < 0.3] = np.nan
    problem = posed(X, Y)
    state = _repeat(problem, begun(problem, variance=0.1), 500)
    latents = impute(problem, state.coef, state.intercept, state.sigma)
    noise = noise_correlation(latents, problem.weight)
    assert abs(noise[0, 1]) > 0.2
    error = problem.low / state.sigma - latents.fitted
    pull = np.zeros_like(error)  # the gradient of the log likelihood of what is known
    for row, known in enumerate(~np.isnan(error)):
        pull[row, known] = np.linalg.solve(noise[np.ix_(known, known)], error[row, known])
    prior = state.coef / 0.1 @ np.linalg.inv(noise)
    np.testing.assert_allclose(problem.matrix.T @ pull, prior, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(noise @ pull.sum(axis=0), 0.0, atol=1e-6)


def _evidence(problem: EvidenceProblem, state: EvidenceState) -> float:
    """Log marginal likelihood of one uncensored task."""
    y = problem.low[:, 0] - problem.intercept[0]
    omega = state.spectrum.feature_variance
    cov = np.eye(len(y)) + problem.matrix * omega @ problem.matrix.T
    cov *= state.sigma[0] ** 2
    return float(-0.5 * (np.linalg.slogdet(cov)[1] + y @ np.linalg.solve(cov, y)))


@pytest.mark.parametrize("prior", [_ALONE, _OWN])
def test_the_evidence_rises(prior: Prior) -> None:
    X, Y = linear(n_tasks=1, n_features=20, n_samples=60)
    problem = posed(X, Y)
    state = begun(problem)
    course = []
    for _ in range(25):
        state = learn(problem, state, prior, 1)
        course.append(_evidence(problem, state))
    assert (np.diff(course[1:]) > -1e-6).all()


def test_irrelevant_features_lose_their_variance() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    Y = X[:, :2] @ rng.normal(size=(2, 5)) + rng.normal(size=(300, 5))
    problem = posed(X, Y)
    omega = learn(problem, begun(problem), _OWN, 40).spectrum.feature_variance
    assert omega[2:].max() < 0.1 * omega[:2].min()


def _noisy(n_samples: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    common = rng.normal(size=(n_samples, 1))
    return rng.normal(size=(n_samples, 4)), common + rng.normal(size=(n_samples, 3))


def test_noise_that_tasks_share_is_found_and_not_taken_for_an_effect() -> None:
    X, Y = _noisy(2000)
    problem = posed(X, Y)
    state = _repeat(problem, begun(problem), 5)
    latents = impute(problem, state.coef, state.intercept, state.sigma)
    R = noise_correlation(latents, problem.weight)
    np.testing.assert_allclose(R[np.triu_indices(3, 1)], 0.5, atol=0.05)
    np.testing.assert_array_equal(np.diag(R), 1.0)


@pytest.mark.parametrize(("floor", "low", "high"), [(-np.inf, 0.98, 1.05), (0.0, 0.85, 0.97)])
def test_noise_taken_for_the_independent_it_is_pays_at_a_floor_alone(
    floor: float, low: float, high: float
) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 160))
    truth = rng.normal(size=(160, 4)) @ rng.normal(size=(4, 30)) / np.sqrt(160 * 4)
    Y = np.maximum(X @ truth + rng.normal(size=(80, 30)), floor)
    problem = posed(X, Y, lower=floor)
    separate = learn(problem, begun(problem), _ALONE, 15)
    errors = []
    for correlated in (True, False):
        state = learn(problem, separate, Prior("shared", 0.1, 0, correlated), 20)
        coef = state.coef * state.sigma * problem.scaling.scale
        errors.append(np.linalg.norm(coef - truth))
    assert low < errors[1] / errors[0] < high


ENTRIES = [(-np.inf, 0.2), (1.0, np.inf), (0.5, 0.5), (-1.0, 0.3), (np.nan, np.nan)]


@pytest.mark.parametrize(("low", "high"), ENTRIES)
def test_the_moments_of_a_latent_are_those_of_truncated_noise(low: float, high: float) -> None:
    X, Y = linear(n_tasks=1)
    shape, sigma, level = Y.shape, 0.7, 0.4
    problem = replace(posed(X, Y), low=np.full(shape, low), high=np.full(shape, high))
    found = impute(problem, np.zeros((6, 1)), np.array([level]), np.array([sigma]))
    a, b = low / sigma - level, high / sigma - level
    mean, variance = (0.0, 1.0) if np.isnan(a) else (a, 0.0)
    if a < b:
        mean, variance = truncnorm.mean(a, b), truncnorm.var(a, b)
    np.testing.assert_allclose(found.residual, mean, atol=1e-10)
    np.testing.assert_allclose(found.variance, variance, atol=1e-10)


def test_a_spectrum_scales() -> None:
    X, Y = linear()
    problem = posed(X, Y)
    once = Spectrum.build(problem, np.full(6, 0.3))
    again = Spectrum.build(problem, np.full(6, 0.1)).scaled(3.0)
    np.testing.assert_allclose(again.values, once.values, rtol=1e-12)
    np.testing.assert_allclose(again.feature_variance, once.feature_variance)


def test_the_compiled_moments_are_those_of_every_kind_of_entry() -> None:
    rng = np.random.default_rng(0)
    X, Y = linear(n_tasks=3)
    problem = posed(X, Y)
    low, high = problem.low.copy(), problem.high.copy()
    kinds = rng.integers(5, size=low.shape)
    low[kinds == 0], high[kinds == 1] = -np.inf, np.inf
    low[kinds == 2] -= 0.5
    low[kinds == 3] = high[kinds == 3] = np.nan
    problem = replace(problem, low=low, high=high)
    coef, intercept, sigma = rng.normal(size=(6, 3)), rng.normal(size=3), np.array([0.3, 1.0, 2.0])
    found = impute(problem, coef, intercept, sigma)
    at = evaluate(Gaussian(), low, high, sigma * (problem.matrix @ coef + intercept), sigma)
    np.testing.assert_allclose(found.residual, -sigma * at.latent, rtol=1e-12, atol=1e-12)
    variance = 1.0 - sigma**2 * at.latent_latent
    np.testing.assert_allclose(found.variance, variance, rtol=1e-12, atol=1e-12)
