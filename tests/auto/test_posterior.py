"""The posterior against the formulas it avoids."""

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.auto.evidence import Posterior, Spectrum
from tests.auto.problems import linear, posed


def _covariance(rng: np.random.Generator, size: int) -> FloatArray:
    root = rng.normal(size=(size, size))
    return np.asarray(root @ root.T / size + 0.5 * np.eye(size))


@pytest.mark.parametrize("n_samples", [40, 4], ids=["tall", "wide"])
def test_mean_freedom_and_updates_are_those_of_the_full_gaussian(n_samples: int) -> None:
    rng = np.random.default_rng(1)
    X, Y = linear(n_samples=n_samples, n_features=5, n_tasks=3)
    problem = posed(X, Y)
    omega, K, R = rng.uniform(0.1, 1.0, 5), _covariance(rng, 3), _covariance(rng, 3)
    x, moments = problem.matrix, problem.matrix.T @ Y
    posterior = Posterior.infer(Spectrum.build(problem, omega), moments, K, R)

    prior = np.kron(np.diag(omega), K)  # of Δ row by row
    precision = np.linalg.inv(prior) + np.kron(x.T @ x, np.linalg.inv(R))
    covariance = np.linalg.inv(precision)
    mean = covariance @ (moments @ np.linalg.inv(R)).ravel()
    np.testing.assert_allclose(posterior.mean.ravel(), mean, rtol=1e-8, atol=1e-10)

    blocks = covariance.reshape(5, 3, 5, 3)
    freedom = np.einsum("ij,ik,jtkt->t", x, x, blocks)
    np.testing.assert_allclose(posterior.freedom, freedom, rtol=1e-8)

    second = np.einsum("dtdu->dtu", (covariance + np.outer(mean, mean)).reshape(5, 3, 5, 3))
    growth = np.einsum("dtu,tu->d", second, np.linalg.inv(K)) / 3 / omega
    np.testing.assert_allclose(posterior.growth(), growth, rtol=1e-8)
    shared = (second / omega[:, None, None]).mean(axis=0)
    np.testing.assert_allclose(
        posterior.task_covariance(), shared * 3 / np.trace(shared), rtol=1e-8
    )


def test_a_prior_shaped_like_the_noise_leaves_every_task_to_itself() -> None:
    rng = np.random.default_rng(2)
    X, Y = linear(n_tasks=3)
    problem = posed(X, Y)
    spectrum = Spectrum.build(problem, rng.uniform(0.1, 1.0, 6))
    R = _covariance(rng, 3)
    together = Posterior.infer(spectrum, problem.matrix.T @ Y, R, R).mean
    alone = Posterior.infer(spectrum, problem.matrix.T @ Y, np.eye(3), np.eye(3)).mean
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_a_wide_spectrum_is_that_of_the_large_matrix() -> None:
    X, Y = linear(n_samples=5, n_features=9, n_tasks=2)
    problem, omega = posed(X, Y), np.linspace(0.1, 1.0, 9)
    found = Spectrum.build(problem, omega)
    root = np.sqrt(omega)
    large = np.linalg.eigvalsh(problem.gram * np.outer(root, root))
    np.testing.assert_allclose(found.values, large[-len(found.values) :], rtol=1e-8)
    assert len(found.values) == 4  # centring takes one of five rows
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(4), atol=1e-10)
