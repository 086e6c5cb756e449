"""The interpreted reference of the benchmark does what the paper's Algorithm 1 says."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from paper.arrays import FloatArray

ROOT = Path(__file__).parents[2]


def test_a_step_follows_the_gradient_of_the_censored_likelihood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    one_pass = import_module("benchmarks.algorithm1").one_pass
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((4, 2)), rng.standard_normal((2, 3))
    x, y, sigma, step = rng.standard_normal(3), np.array([0.0, 1.5, 0.0, 2.0]), 2.0, 1e-3

    def nll(U: FloatArray, V: FloatArray) -> float:
        latent = U @ V @ x
        inside = norm.logpdf(y, latent, sigma)
        return -float(np.where(y > 0.0, inside, norm.logcdf(-latent / sigma)).sum())

    learned_U, learned_V = U.tolist(), V.tolist()
    one_pass([x.tolist()], [y.tolist()], learned_U, learned_V, step, sigma)
    V_expected = V - step * _gradient(lambda V: nll(U, V), V)
    np.testing.assert_allclose(learned_V, V_expected, atol=1e-9)
    U_expected = U - step * _gradient(lambda U: nll(U, V_expected), U)
    np.testing.assert_allclose(learned_U, U_expected, atol=1e-9)


def _gradient(function: Callable[[FloatArray], float], at: FloatArray) -> FloatArray:
    gradient, width = np.zeros_like(at), 1e-5
    for index in np.ndindex(*at.shape):
        shift = np.zeros_like(at)
        shift[index] = width
        gradient[index] = (function(at + shift) - function(at - shift)) / (2.0 * width)
    return gradient
